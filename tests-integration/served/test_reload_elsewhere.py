"""No bytecode of a former save runs, and code from other places starts the process again."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from serving import PATIENCE, Lines, write_tree

LONG = pytest.mark.long
VALUE = "Api/v1/X/Get.py"
FILES = {
    VALUE: "import {module}\nasync def handler(request):\n    return [{module}.N]\n",
}


class Dev:
    """`python -m treefold dev` in the folder of a project."""

    def __init__(self, root: Path, arguments: Sequence[str], **environment: str) -> None:
        self.root = root
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("TREEFOLD_", "PYTHON"))}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "treefold", "dev", "--port", "0", *arguments],
            cwd=root,
            env=plain | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._out, self._err = Lines(self._process.stdout), Lines(self._process.stderr)
        line = self._out.wait_for(lambda lines: [one for one in lines if "serving on " in one])[0]
        self._address = line.split("serving on ")[1].split()[0]

    def lines(self, part: str, count: int = 1) -> list[str]:
        def find(lines: list[str]) -> list[str]:
            found = [line for line in lines if part in line]
            return found if len(found) >= count else []

        return self._err.wait_for(find)

    def get(self) -> Any:
        try:
            with urlopen(f"{self._address}/v1/x", timeout=PATIENCE) as answer:
                return json.load(answer)
        except HTTPError as error:
            return error.code

    def until(self, value: object) -> None:
        deadline = time.monotonic() + PATIENCE
        while (now := self.get()) != value:
            assert time.monotonic() < deadline, f"still {now!r}:\n{self._err.text()}"
            time.sleep(0.01)

    @property
    def text(self) -> str:
        return self._err.text()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE)
        self._out.close()
        self._err.close()


Start = Callable[..., Dev]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as running:

        def make(files: dict[str, str], *arguments: str, **environment: str) -> Dev:
            dev = Dev(write_tree(tmp_path / "project", files), arguments, **environment)
            running.callback(dev.stop)
            if "--no-reload" not in arguments:
                dev.lines("watching ")
            return dev

        yield make


def using(module: str) -> dict[str, str]:
    return {VALUE: FILES[VALUE].format(module=module)}


@pytest.mark.parametrize("environment", [{}, {"PYTHONPATH": "."}], ids=["-m", "PYTHONPATH"])
@pytest.mark.parametrize(
    ("module", "file"),
    [
        ("core.words", "core/words.py"),
        ("core", "core/__init__.py"),
        ("prices", "prices.py"),
        ("domain.words", "domain/words.py"),  # a folder without `__init__.py`
    ],
)
def test_saves_of_one_size_within_a_second_are_all_served(
    start: Start, module: str, file: str, environment: dict[str, str]
) -> None:
    files = {"core/__init__.py": "", file: "N = 100\n"} | using(module)
    dev = start(files, **environment)
    dev.until([100])
    for number in range(101, 111):
        (dev.root / file).write_text(f"N = {number}\n")
        dev.until([number])
    assert "restarting" not in dev.text


def test_a_restart_after_a_save_of_the_same_second_runs_the_new_source(start: Start) -> None:
    source = "import sys\nsys.path.insert(0, 'src')\nimport shop\n"
    handler = "async def handler(request):\n    return [shop.N]\n"
    dev = start({VALUE: source + handler, "src/shop/__init__.py": "N = 100\n"})
    dev.until([100])
    for number in range(101, 104):
        (dev.root / "src/shop/__init__.py").write_text(f"N = {number}\n")
        dev.until([number])
    assert "restarting: src/shop/__init__.py changed, which is imported as shop" in dev.text


def test_a_source_elsewhere_that_does_not_compile_restarts_nothing(start: Start) -> None:
    source = "import sys\nsys.path.insert(0, 'src')\nimport shop\n"
    handler = "async def handler(request):\n    return [shop.N]\n"
    dev = start({VALUE: source + handler, "src/shop.py": "N = 1\n"})
    (dev.root / "src/shop.py").write_text("N = (\n")
    dev.lines("restart deferred: src/shop.py does not compile")
    assert dev.get() == [1]
    (dev.root / "src/shop.py").write_text("N = 2\n")
    dev.until([2])


@pytest.mark.parametrize("way", ["setting", "option"])
def test_a_watched_folder_outside_restarts_the_process(
    start: Start, tmp_path: Path, way: str
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/prices.py").write_text("N = 100\n")
    files = using("prices")
    arguments: list[str] = []
    if way == "setting":
        files["treefold.toml"] = 'watch = ["../lib"]\n'
    else:
        arguments = ["--reload-dir", "../lib"]
    dev = start(files, *arguments, PYTHONPATH=str(tmp_path / "lib"))
    dev.until([100])
    for number in (101, 102):
        (tmp_path / "lib/prices.py").write_text(f"N = {number}\n")
        dev.until([number])
    assert f"restarting: {tmp_path / 'lib/prices.py'} changed" in dev.text


@pytest.mark.parametrize("way", ["setting", "option"])
def test_an_included_data_file_restarts_the_process(start: Start, way: str) -> None:
    handler = """
        from pathlib import Path
        N = int(Path("Data/n.txt").read_text())
        async def handler(request):
            return [N]
    """
    files = {VALUE: handler, "Data/n.txt": "1"}
    arguments: list[str] = []
    if way == "setting":
        files["treefold.toml"] = 'watch_include = ["*.txt"]\n'
    else:
        arguments = ["--reload-include", "Data/*.txt"]
    dev = start(files, *arguments)
    dev.until([1])
    (dev.root / "Data/n.txt").write_text("2")
    dev.until([2])
    assert "restarting: Data/n.txt changed" in dev.text


def test_no_reload_watches_nothing(start: Start) -> None:
    dev = start(using("prices") | {"prices.py": "N = 1\n"}, "--no-reload")
    (dev.root / "prices.py").write_text("N = 2\n")
    values = [dev.get() for _ in itertools.repeat(None, 20)]
    assert values == [[1]] * 20
    assert "watching" not in dev.text


def test_a_folder_to_watch_that_is_missing_is_an_error(tmp_path: Path) -> None:
    write_tree(tmp_path, using("prices"))
    done = subprocess.run(
        [sys.executable, "-m", "treefold", "dev", "--port", "0", "--reload-dir", "nowhere"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "there is no folder" in done.stderr


def test_a_restarted_process_goes_on_without_a_folder_that_is_missing(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    dev = start({VALUE: "async def handler(request):\n    return [1]\n"}, "--reload-dir", "../lib")
    dev.until([1])
    (dev.root / "treefold.toml").write_text('watch = ["../nowhere"]\n')
    dev.lines("Cannot watch '../nowhere': there is no folder")
    dev.until([1])
    (tmp_path / "lib").rmdir()
    (dev.root / "treefold.toml").write_text("")
    dev.lines(f"Cannot watch '{tmp_path / 'lib'}': there is no folder")
    dev.until([1])
    (dev.root / VALUE).write_text("async def handler(request):\n    return [2]\n")
    dev.until([2])


def test_a_default_version_whose_folder_is_gone_takes_nothing_down(start: Start) -> None:
    source = "async def handler(request):\n    return [{n}]\n"
    files = {VALUE: source.format(n=1), "Api/v2/Y/Get.py": source.format(n=2)}
    dev = start(files, "--default-version", "v2")
    (dev.root / "Api/v2").rename(dev.root / "Api/v3")
    text = "Setting default_version must name a folder of Api/, got 'v2'; use 'latest', v1, v3"
    dev.lines(text)
    assert dev.get() == [1]
    (dev.root / "treefold.toml").write_text("grace = 5\n")
    dev.lines("restarting: the settings in treefold.toml changed")
    dev.lines(text, 2)
    dev.until([1])
    (dev.root / VALUE).write_text(source.format(n=3))
    dev.until([3])


ONCE = """
import platform  # a module of another package that refuses a second definition of a name
names = vars(platform).setdefault("names_of_metrics", set())
if "sales" in names:
    raise ValueError("Duplicated timeseries in CollectorRegistry: {'sales'}")
names.add("sales")
N = %d
"""

COUNTER = """
from prometheus_client import Counter
sales = Counter("sales", "what was sold")
N = %d
"""


@pytest.mark.parametrize(
    "source",
    [pytest.param(ONCE, id="plain"), pytest.param(COUNTER, marks=LONG, id="prometheus_client")],
)
def test_a_module_that_loads_once_in_a_process_restarts_it(start: Start, source: str) -> None:
    dev = start(using("metrics") | {"metrics.py": source % 1})
    assert dev.get() == [1]
    (dev.root / "metrics.py").write_text(source % 2)
    deadline = time.monotonic() + PATIENCE
    while (answer := dev.get()) != [2]:
        assert answer == [1], dev.text
        assert time.monotonic() < deadline, dev.text
    assert "restarting: metrics.py loads in a new process" in dev.text
    assert "Duplicated timeseries" in dev.text


def test_what_a_restart_has_healed_restarts_at_once_the_next_time(start: Start) -> None:
    note = "import os\nopen('processes', 'a').write(f'{os.getpid()} ')\n"
    dev = start(using("metrics") | {"metrics.py": note + ONCE % 1})
    for number in (2, 3):
        (dev.root / "metrics.py").write_text(note + ONCE % number)
        dev.until([number])
    assert dev.text.count("restarting: metrics.py loads in a new process") == 2
    assert dev.text.count("Duplicated timeseries") == 3  # the traceback of the first one
    # the process itself, which keeps its number, and one that was tried
    assert len({*(dev.root / "processes").read_text().split()}) == 2

    (dev.root / "metrics.py").write_text(note + ONCE % 4 + "{}['missing']\n")
    dev.lines("failed to load: KeyError")
    (dev.root / "metrics.py").write_text(note + ONCE % 5)
    dev.until([5])


def test_a_module_that_fails_in_every_process_keeps_its_last_good_version(start: Start) -> None:
    dev = start(using("prices") | {"prices.py": "N = 1\n"})
    (dev.root / "prices.py").write_text("{}['missing']\n")
    dev.lines("broken, its last good version serves: prices.py")
    assert dev.get() == [1]
    (dev.root / "prices.py").write_text("N = 2\n")
    dev.until([2])
    assert "restarting" not in dev.text


BLOCKS = {
    "sleep": "import time\ntime.sleep(60)\n",
    "lock": "import _thread\nlock = _thread.allocate_lock()\nlock.acquire()\nlock.acquire()\n",
    "hash": "import hashlib\nhashlib.pbkdf2_hmac('sha256', b'', b'', 2_000_000_000)\n",
    "loop": "while True: pass\n",
}


@pytest.mark.parametrize(
    "blocks",
    ["hash", *(pytest.param(name, marks=LONG) for name in BLOCKS if name != "hash")],
)
def test_an_import_that_blocks_does_not_take_the_server_with_it(start: Start, blocks: str) -> None:
    """Not even one that no signal and no exception can end; the save that mends it is served."""
    source = "async def handler(request):\n    import prices\n    return [prices.N]\n"
    dev = start({VALUE: source, "prices.py": "N = 1\n", "Api/v1/Y/Get.py": source})
    assert dev.get() == [1]
    (dev.root / "prices.py").write_text(f"open('begun', 'w').close()\n{BLOCKS[blocks]}N = 2\n")
    deadline = time.monotonic() + PATIENCE
    while not (dev.root / "begun").exists():
        assert time.monotonic() < deadline
    for _ in range(50):
        assert dev.get() == [1]  # within its timeout, while the import goes on and on
    (dev.root / "prices.py").write_text("N = 3\n")
    dev.until([3])
    assert "restarting: prices.py changed, and the import of a former save did not" in dev.text


@LONG
def test_an_import_that_is_blocked_for_ten_seconds_is_named(start: Start) -> None:
    dev = start(using("prices") | {"prices.py": "N = 1\n"})
    (dev.root / "prices.py").write_text(BLOCKS["sleep"])
    dev.lines("the import of prices.py does not end, after 10 seconds; until a save that loads")
    assert dev.get() == [1]
    (dev.root / "prices.py").write_text("N = 2 / 0\n")
    dev.lines("not reloaded: prices.py; the import of a former save has not ended")
    assert dev.get() == [1]
    (dev.root / "prices.py").write_text("N = 2\n")
    dev.until([2])


@LONG
def test_an_import_of_a_loop_is_ended_after_ten_seconds(start: Start) -> None:
    dev = start(using("prices") | {"prices.py": "N = 1\n"})
    (dev.root / "prices.py").write_text(BLOCKS["loop"])
    dev.lines("prices.py failed to load: TimeoutError: the import took longer than 10 seconds")
    assert dev.get() == [1]
    (dev.root / "prices.py").write_text("N = 2\n")
    dev.until([2])
    assert "restarting" not in dev.text


PARTS = {
    "append": ("found = []", "found.append(1)"),
    "dictionary": ("found = {}", "found[str(N)] = 1"),
    "decorator": ("found = {}\ndef on(f):\n    found[f()] = f", "@on\ndef act(): return N"),
    "subclass": (
        "found = []\nclass Base:\n    def __init_subclass__(cls): found.append(cls)",
        "class Own(Base): pass",
    ),
    "log_handler": (
        "import logging\nfound = logging.getLogger('own').handlers",
        "logging.getLogger('own').addHandler(logging.NullHandler())",
    ),
    "thread": (
        "import threading\nended = threading.Event()\n"
        "class Found:\n"
        "    def __len__(self):\n"
        "        return [t.name for t in threading.enumerate()].count('own')\n"
        "found = Found()",
        "threading.Thread(target=ended.wait, name='own', daemon=True).start()",
    ),
}


@pytest.mark.parametrize(
    "parts",
    [pytest.param(["append", "thread"], id="short"), pytest.param([*PARTS], marks=LONG, id="all")],
)
def test_each_way_to_register_is_served_by_the_new_code_alone(
    start: Start, parts: list[str]
) -> None:
    handler: list[str] = []
    files = {"Services/__init__.py": ""}
    for name in parts:
        registry, part = PARTS[name]
        files[f"Services/{name}.py"] = f"{registry}\n"
        files[f"Services/{name}_part.py"] = f"from Services.{name} import *\nN = 1\n{part}\n"
        handler.append(f"from Services import {name}, {name}_part")
    values = ", ".join(f"len({name}.found), {name}_part.N" for name in parts)
    handler.append(f"async def handler(request):\n    return [{values}]\n")
    dev = start({VALUE: "\n".join(handler), **files})
    expected = [1, 1] * len(parts)
    assert dev.get() == expected
    for at, name in enumerate(parts):
        file = dev.root / f"Services/{name}_part.py"
        file.write_text(file.read_text().replace("N = 1", "N = 2"))
        former, expected = expected, [*expected]
        expected[2 * at + 1] = 2
        deadline = time.monotonic() + PATIENCE
        while (answer := dev.get()) != expected:
            if name in ("log_handler", "thread"):  # the former process has it twice until it ends
                answer[2 * at] = 1
            assert answer == former, f"{name}:\n{dev.text}"
            assert time.monotonic() < deadline, f"{name}:\n{dev.text}"
        dev.lines("restarting: ", at + 1)
