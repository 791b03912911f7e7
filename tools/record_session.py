"""Record the terminal session in `docs/guides/cli.md`: a new project, a server, a version.

`python tools/record_session.py` prints the session, `--write` puts it into the page. What differs
from run to run (ports, times, request ids) is put in as it reads on a first day.
"""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs/guides/cli.md"
BEGIN, END = "<!-- session -->\n", "<!-- end of the session -->\n"

TEST = """\
cat > Tests/test_orders.py << 'END'
def test_an_order_line_is_named(client):
    assert client.get("/v1/orderline/42").json() == {"id": "42"}
END
"""
SERVER = "treefold dev"
EDIT = "sed -i 's/ok/fine/' Api/v1/Health/Get.py"
STEPS = (
    "treefold new shop",
    "cd shop",
    SERVER,
    "curl -s http://127.0.0.1:8000/v1/health",
    EDIT,
    "curl -s http://127.0.0.1:8000/v1/health",
    "treefold create 'order-line/[id]' get",
    "treefold routes",
    "treefold why post /v1/orderline/42",
    TEST,
    "treefold test '/v1/orderline/[id]' -q",
    "treefold check",
    "treefold version create 2 --plan",
    "treefold version create 2",
    "treefold version diff 1 2",
)
"""What is typed, in order; the server is stopped after the last request to it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command as it was typed, and what it printed."""

    typed: str
    output: str
    code: int


def record() -> Iterator[Step]:
    """Run the session in a folder of its own and yield each step."""
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        server: subprocess.Popen[str] | None = None
        port = ""
        former: Step | None = None
        try:
            for typed in STEPS:
                if typed.startswith("cd "):
                    here = here / typed.removeprefix("cd ")
                    yield Step(typed, "", 0)
                elif typed == SERVER:
                    server, shown, port = serve(here)
                    yield Step(typed, shown, 0)
                elif typed.startswith("curl "):
                    former = asked_until(typed, here, port, other_than=former)
                    yield former
                else:
                    if typed != EDIT:
                        stop(server)
                    yield run(typed, here, port)
        finally:
            stop(server)


def environment() -> dict[str, str]:
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    kept = {name: text for name, text in os.environ.items() if not name.startswith("TREEFOLD")}
    return kept | {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def run(typed: str, here: Path, port: str) -> Step:
    command = typed.replace(":8000", f":{port}")
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=here,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Step(typed, told(done.stdout, port), done.returncode)


def asked_until(typed: str, here: Path, port: str, *, other_than: Step | None) -> Step:
    """Ask until the answer is another one than before: the save between them is being taken up."""
    deadline = time.monotonic() + 10
    while (step := run(typed, here, port)) == other_than and time.monotonic() < deadline:
        time.sleep(0.05)
    return step


def serve(here: Path) -> tuple["subprocess.Popen[str]", str, str]:
    server = subprocess.Popen(
        ["bash", "-c", f"exec {SERVER} --port 0"],
        cwd=here,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    shown = ""
    assert server.stdout is not None  # noqa: S101 - a pipe was asked for
    for line in server.stdout:
        shown += line
        if found := re.search(r"serving on http://127.0.0.1:(\d+)", line):
            return server, told(shown, found[1]), found[1]
    raise SystemExit(f"the server did not start:\n{shown}")


def stop(server: "subprocess.Popen[str] | None") -> None:
    if server is not None and server.returncode is None:
        os.killpg(server.pid, signal.SIGINT)
        server.communicate(timeout=30)


def told(text: str, port: str) -> str:
    """Put in what differs from run to run."""
    text = text.replace(f":{port}", ":8000") if port else text
    return re.sub(r"in [0-9.]+ ?m?s\b", "in 12 ms", text)


def page(steps: Iterator[Step]) -> str:
    lines: list[str] = []
    for step in steps:
        lines.append("$ " + step.typed.strip().replace("\n", "\n> "))
        lines.extend(step.output.splitlines())
    return "```console\n" + "\n".join(lines) + "\n```\n"


def main() -> None:
    session = page(record())
    if "--write" not in sys.argv:
        print(session, end="")
        return
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGIN + session + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
