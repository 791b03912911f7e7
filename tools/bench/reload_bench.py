"""Milliseconds from a change of the tree to its answer, by its size, and the memory of reloads.

`python tools/bench/reload_bench.py [--contract] [ROUTES ...]` runs `treefold dev` over trees of 10
to 5,000 routes with six middlewares and a model. A service, a provider and a model reach one route;
`Middleware/` reaches all of them. With `--contract`, a lock and a client follow the saves.
"""

import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BARS = {10: 35, 100: 60, 1000: 80, 5000: 200}
"""Routes to the most milliseconds, as a median of 30 changes."""
CHANGES, RELOADS = 30, 500
MEMORY = 1
"""The most megabytes that 500 reloads may keep."""
MIDDLEWARE = (
    "async def tell(request, call_next):\n"
    "    request.state.m = {}\n"
    "    return await call_next(request)\n"
    + "".join(
        f"async def pass{n}(request, call_next):\n    return await call_next(request)\n"
        for n in range(5)
    )
    + "middlewares = [tell, pass0, pass1, pass2, pass3, pass4]\n"
)
MODEL = (
    "from treefold.orm import Model, fields\nN = {}\n"
    "class Book(Model):\n    name = fields.TextField()\n"
)
SOURCES = {
    "Api/v1/Y/Get.py": "from Services.n import N\nfrom Models.book import N as M\n"
    "def handler(request, p):\n    return [{}, N, p, request.state.m, M]\n",
    "Services/n.py": "N = {}\n",
    "providers.py": "providers = {{'p': lambda: {}}}\n",
    "Middleware/__init__.py": MIDDLEWARE,
    "Models/book.py": MODEL,
}
"""The saved files; each has a number that is in the answer, at its place."""
Change = Callable[[int], None]


def make_tree(root: Path, routes: int) -> None:
    files = {
        f"Api/v1/R{n // 50}/S{n % 50}/[id]/Get.py": f"def handler(id: int):\n    return [id, {n}]\n"
        for n in range(routes)
    }
    files |= {"Services/__init__.py": "", "Models/__init__.py": ""}
    files |= {"treefold.toml": '[databases]\ndefault = "sqlite:///bench.sqlite3"\n'}
    files |= {name: text.format(1000) for name, text in SOURCES.items()}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def read_memory(process: int) -> float:
    """Return the megabytes that a process holds."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def list_rows(
    root: Path, ask: Callable[[str], tuple[int, Any]]
) -> Iterator[tuple[str, Change, Callable[[int], bool]]]:
    """Yield what is measured: its name, a change, and whether that is served."""
    for place, (file, text) in enumerate(SOURCES.items()):

        def save(number: int, file: str = file, text: str = text) -> None:
            (root / file).write_text(text.format(number))

        def is_saved(number: int, place: int = place) -> bool:
            status, answer = ask("/v1/y")
            return status == 200 and answer[place] == number

        yield file, save, is_saved

    def create(number: int) -> None:
        (root / f"Api/v1/New{number}").mkdir()
        (root / f"Api/v1/New{number}/Get.py").write_text(f"def handler():\n    return [{number}]\n")

    def delete(number: int) -> None:
        (root / f"Api/v1/New{number}/Get.py").unlink()

    def rename(number: int) -> None:
        os.rename(root / f"Api/v1/Moved{number - 1}", root / f"Api/v1/Moved{number}")

    yield "a new file", create, lambda number: ask(f"/v1/new{number}") == (200, [number])
    yield "a deleted file", delete, lambda number: ask(f"/v1/new{number}")[0] == 404
    shutil.copytree(root / "Api/v1/R0", root / "Api/v1/Moved1000")
    yield "a renamed folder", rename, lambda n: ask(f"/v1/moved{n}/s0/5") == (200, [5, 0])


def measure(routes: int, *, has_contract: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        make_tree(root, routes)
        command = [sys.executable, "-m", "treefold", "dev", "--port", "0"]
        if has_contract:
            with (root / "treefold.toml").open("a") as settings:
                settings.write("[contract]\nauto = true\n")
            command += ["--client", "ts:web/api"]
        with subprocess.Popen(
            command, cwd=name, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None  # noqa: S101 - a pipe
            found = None
            while found is None:
                found = re.search(r"serving on http://([\d.]+):(\d+)", process.stdout.readline())
            client = http.client.HTTPConnection(found[1], int(found[2]))

            def ask(path: str) -> tuple[int, Any]:
                client.request("GET", path)
                answer = client.getresponse()
                return answer.status, json.loads(answer.read())

            time.sleep(2)  # the imports are read in advance
            for row, change, is_served in list_rows(root, ask):
                time.sleep(0.5)
                count = RELOADS if routes == min(BARS) and row == "Services/n.py" else CHANGES
                took: list[float] = []
                before = 0.0
                for number in range(1001, 1001 + count):
                    change(number)
                    started = time.perf_counter()
                    while not is_served(number):
                        pass
                    took.append(time.perf_counter() - started)
                    before = before or read_memory(process.pid)
                median, longest = statistics.median(took[:CHANGES]) * 1000, max(took) * 1000
                line = f"{routes:5} routes, {row:22} {median:6.0f} ms, at most {longest:.0f}"
                line += f"  (bar {BARS.get(routes, 0)} ms)"
                if count == RELOADS:
                    grown = read_memory(process.pid) - before
                    line += f"  memory {grown:+.1f} MB after {count} reloads (bar {MEMORY} MB)"
                print(line, flush=True)
            process.terminate()


if __name__ == "__main__":
    numbers = [each for each in sys.argv[1:] if each != "--contract"]
    for count in map(int, numbers or BARS):
        measure(count, has_contract="--contract" in sys.argv)
