"""`hatch run elsewhere`: conditions are true where the suites run, and what is left is found."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import http_redis
import orm_postgres
import pytest

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from elsewhere import conditions, needs, worlds
from elsewhere.conditions import CONDITIONS, Condition
from elsewhere.leftovers import Traces, read_traces

NOW = datetime(2026, 11, 23, 22, 30, tzinfo=UTC)
TOOL = Path(needs.__file__).parent


# The table


@pytest.mark.parametrize(
    ("moment", "now", "then"),
    [
        (conditions.in_401_days, NOW, datetime(2027, 12, 29, 22, 30, tzinfo=UTC)),
        (conditions.on_31_january, NOW, datetime(2027, 1, 31, 22, 30, tzinfo=UTC)),
        (conditions.on_29_february, NOW, datetime(2028, 2, 29, 22, 30, tzinfo=UTC)),
        (
            conditions.on_29_february,
            datetime(2028, 3, 1, tzinfo=UTC),
            datetime(2032, 2, 29, tzinfo=UTC),
        ),
        (conditions.before_midnight, NOW, datetime(2026, 11, 23, 23, 55, tzinfo=UTC)),
        (
            conditions.before_midnight,
            datetime(2026, 12, 31, 23, 56, tzinfo=UTC),
            datetime(2027, 1, 1, 23, 55, tzinfo=UTC),
        ),
        (conditions.after_2038, NOW, datetime(2038, 1, 20, tzinfo=UTC)),
    ],
)
def test_a_clock_is_set_to_the_next_such_moment(
    moment: conditions.Moment, now: datetime, then: datetime
) -> None:
    assert moment(now) == then


def test_every_suite_of_a_condition_exists(repository: Path) -> None:
    table = tomllib.loads((repository / "hatch.toml").read_text(encoding="utf-8"))["envs"]
    for suite in {suite for each in CONDITIONS for suite in each.runs}:
        words = shlex.split(suite)
        script = words[1] if words[0].startswith("+") else words[0]
        environment, _, name = script.rpartition(":")
        scripts = table[environment or "default"]["scripts"]
        assert name in scripts or name == "pytest", suite
        paths = [word for word in words if "/" in word]
        assert [path for path in paths if not (repository / path).exists()] == []


def test_the_conditions_are_those_of_the_page(repository: Path) -> None:
    page = (repository / "docs/project/contributing.md").read_text(encoding="utf-8")
    section = page.partition("## Elsewhere\n")[2].partition("\n## ")[0]
    listed = re.findall(r"`([\w.-]+)`", "".join(re.findall(r"^\| (.*?) \|", section, re.M)))
    assert sorted(listed) == sorted(each.name for each in CONDITIONS)


def test_a_clock_leaves_nothing_as_it_is_without_a_reason() -> None:
    assert all(len(reason.split()) > 4 for reason in conditions.NOT_SHIFTED.values())


# The command


def elsewhere(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, TOOL, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_unknown_condition_is_refused_with_those_that_there_are() -> None:
    done = elsewhere("32-january")
    assert done.returncode == 1
    assert done.stderr.startswith("Unknown condition '32-january'; use one of in-401-days, ")


def test_the_names_are_a_list_for_workflows() -> None:
    assert json.loads(elsewhere("--names").stdout) == [each.name for each in CONDITIONS]


def test_what_is_missing_is_named_and_nothing_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = elsewhere("in-401-days", "language-de")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "in-401-days needs a C compiler named cc (apt-get install gcc libc6-dev)",
        "language-de needs the source of the locale de_DE (apt-get install locales)",
    ]


def test_a_version_of_python_that_is_not_there_is_named() -> None:
    condition = Condition(name="old", changes="", place="clone", python="2.1")
    assert needs.missing_needs(condition) == ["Python 2.1, on the search path"]


# Clocks

CLOCKS = """
import asyncio, json, multiprocessing, os, pathlib, sqlite3, subprocess, sys, threading, time
shift = float(os.environ["CLOCK_SHIFT"])
real = float(sys.argv[1])
file = pathlib.Path(sys.argv[2])
file.write_text("x")
now = time.time()
began = time.monotonic()
time.sleep(0.01)
threading.Event().wait(0.01)
threading.Lock().acquire(timeout=0.01)
asyncio.run(asyncio.sleep(0.01))
multiprocessing.Semaphore(0).acquire(timeout=0.01)
slept = time.monotonic() - began
written = file.stat().st_mtime
os.utime(file, (now - 60, now - 60))
entry = next(entry for entry in os.scandir(file.parent) if entry.name == file.name)
shown = subprocess.check_output(["stat", "-c", "%Y", file], text=True)
print(json.dumps({
    "wall clock": now - shift - real,
    "sqlite": sqlite3.connect(":memory:").execute("SELECT unixepoch()").fetchone()[0] - now,
    "other programs": float(subprocess.check_output(["date", "+%s"])) - now,
    "written file": written - now,
    "set time": file.stat().st_mtime + 60 - now,
    "set time, listed": entry.stat().st_mtime + 60 - now,
    "set time, other programs": float(shown) + 60 - now,
    "five waits of 10 ms": slept,
}))
"""


@pytest.mark.parametrize("shift", [401 * 86400, 12 * 366 * 86400, -86400])
def test_a_clock_is_shifted_for_all_that_reads_it_and_for_no_timeout(
    tmp_path: Path, shift: int
) -> None:
    library = worlds.build_clock(tmp_path)
    variables = {**os.environ, "LD_PRELOAD": str(library), "CLOCK_SHIFT": str(shift)}
    # the clock of this test may be shifted as well
    real = datetime.now(UTC).timestamp() - float(os.environ.get("CLOCK_SHIFT", "0"))
    done = subprocess.run(
        [sys.executable, "-c", CLOCKS, str(real), tmp_path / "file"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    apart = json.loads(done.stdout)
    assert {name: value for name, value in apart.items() if abs(value) > 30} == {}
    assert apart["five waits of 10 ms"] >= 0.05


# Less of the machine


def confine(*words: str) -> str:
    """Run a program in Python with options of `confine.py`; return what it prints."""
    *options, program = words
    command = [sys.executable, TOOL / "confine.py", *options, "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


REACH = """
import socket
def ask(address):
    try:
        with socket.create_connection(address, 5) as one:
            one.sendall(b"PING\\r\\n")
            return one.recv(100).split(b"\\r\\n")[0].decode()
    except OSError as error:
        return type(error).__name__
"""


@pytest.fixture(scope="module")
def refusal() -> str:
    """What the command says before it runs, on a machine that lets only root make a network."""
    condition = Condition(name="apart", changes="", confine=("--no-network",))
    return "".join(needs.missing_needs(condition))


def check_confined(refusal: str, words: tuple[str, ...], printed: str) -> None:
    if refusal:
        assert re.fullmatch("Cannot make a network namespace: .+; run this as root", refusal)
        assert os.geteuid() != 0
    else:
        assert confine(*words) == printed


def test_without_a_network_no_server_of_the_machine_answers(refusal: str) -> None:
    with http_redis.started() as server:
        program = f"{REACH}\nprint(ask(('127.0.0.1', {server.port})))"
        assert confine(program) == "+PONG"
        check_confined(refusal, ("--no-network", program), "ConnectionRefusedError")


def test_on_a_taken_port_something_else_answers(refusal: str) -> None:
    program = f"{REACH}\nprint(ask(('127.0.0.1', 5432)), ask(('localhost', 6379)))"
    printed = "HTTP/1.1 400 Bad Request HTTP/1.1 400 Bad Request"
    check_confined(refusal, ("--taken", "5432,6379", program), printed)


def test_without_ipv6_there_is_only_ipv4(refusal: str) -> None:
    program = """
import socket
socket.socket().bind(("127.0.0.1", 0))
try:
    socket.socket(socket.AF_INET6).bind(("::1", 0))
except OSError as error:
    print(error.strerror)
"""
    check_confined(refusal, ("--no-ipv6", program), "Cannot assign requested address")


def test_one_processor_is_all_that_a_program_sees() -> None:
    program = "import os; print(len(os.sched_getaffinity(0)))"
    assert confine("--processors", "1", program) == "1"


# Leftovers

LEAVE = """
import subprocess, tempfile
subprocess.Popen(["sleep", "600"], start_new_session=True)
tempfile.mkstemp(prefix="kept-")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    return folder


@pytest.fixture
def servers(postgres_server: str) -> Iterator[dict[str, str]]:
    with http_redis.server() as redis:
        yield {"TREEFOLD_TEST_POSTGRES": postgres_server, "TREEFOLD_TEST_REDIS": redis}


def traces(checkout: Path, servers: dict[str, str], temporary: Path) -> Traces:
    return read_traces(
        checkout, os.environ, servers=servers, temporary=temporary, kept=[checkout / ".git"]
    )


def test_databases_keys_and_files_that_are_left_are_named(
    checkout: Path, servers: dict[str, str], tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before = traces(checkout, servers, temporary)
    key = f"left-{os.getpid()}"
    with (
        orm_postgres.database(servers["TREEFOLD_TEST_POSTGRES"]) as database,
        http_redis.connected(f"{servers['TREEFOLD_TEST_REDIS']}/3") as redis,
    ):
        redis.set(key, "1")
        (checkout / "left.txt").write_text("")
        (checkout / ".git" / "hooks" / "new").write_text("")
        (temporary / "pytest-of-user").mkdir()
        (temporary / "left").mkdir()
        found = before.added(traces(checkout, servers, temporary))
        redis.delete(key)
    assert {
        "file: ?? left.txt",
        "temporary file: left",
        f"database: {database.rpartition('/')[2]}",
        f"key: 3 {key}",
    } <= set(found)
    assert any(line.startswith(f"kept file: {checkout}/.git/hooks/new ") for line in found)
    assert "temporary file: pytest-of-user" not in found


def leftovers(temporary: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in Python under the tool, beside no server."""
    nowhere = {
        "TREEFOLD_TEST_POSTGRES": "postgresql://postgres@127.0.0.1:1/postgres",
        "TREEFOLD_TEST_REDIS": "redis://127.0.0.1:1",
    }
    return subprocess.run(
        [sys.executable, TOOL / "leftovers.py", sys.executable, "-c", program, temporary],
        env={**os.environ, **nowhere, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_process_that_is_left_is_named_and_ended(tmp_path: Path) -> None:
    """Also one of a session of its own, whose parent has ended."""
    done = leftovers(tmp_path, LEAVE)
    assert done.returncode == 1
    assert done.stdout.startswith("left behind:\n")
    (number,) = re.findall(r"process: (\d+) sleep 600", done.stdout)
    assert not Path("/proc", number).exists()
    assert "  temporary file: kept-" in done.stdout


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_of_a_command_that_leaves_nothing_is_its_own(
    tmp_path: Path, code: int
) -> None:
    done = leftovers(tmp_path, f"raise SystemExit({code})")
    assert (done.returncode, done.stdout) == (code, "nothing is left behind\n")
