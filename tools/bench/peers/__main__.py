"""`hatch run bench`: treefold beside raw ASGI, raw drivers and installed peers, in one run.

    python tools/bench/peers [--rounds N] [--write]

All contenders take turns in short batches; a figure is the median of the ratios to the raw ASGI
application or the raw driver in the same round. `--write` puts the tables and plots into
`docs/project/performance.md` and `docs/project/plots/`.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import http_apps
import http_bench
import orm_calls
import orm_data
import plot
from boot_floor import await_bytecode
from http_cases import CASES, HELLO, App, Case, bare, project
from orm_measuring import on_one_cpu, timed

from treefold_http import Application
from treefold_logging import flush, get_logger
from treefold_orm import aclose_all, configure

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = ROOT / "docs/project/performance.md"
PLOTS = ROOT / "docs/project/plots"
BEGIN, END = "<!-- peers -->\n", "<!-- end of peers -->\n"
POSTGRES = os.environ.get(
    "TREEFOLD_BENCH_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres"
)
HTTP = {"hello": "JSON", "user": "path parameter", "items (fast)": "1 KB body, validated"}
ORM = {"get": "one row by key", "list": "1,000 instances", "insert": "one insert"}
CALLS = {"get": 150, "list": 5, "insert": 60}
EMPTY = "pass"
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder in memory, where there is one

Figures = dict[str, dict[str, float]]
Driver = Callable[[str, AsyncExitStack], Awaitable[orm_calls.Calls]]


def installed(peers: Mapping[str, tuple[str, object]]) -> dict[str, str]:
    """Return the peers of this environment with their versions."""
    found: dict[str, str] = {}
    for name, (distribution, _) in peers.items():
        try:
            found[name] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            print(f"{name} is not installed and therefore not measured", file=sys.stderr)
    return found


async def http_figures(rounds: int) -> Figures:
    """Return CPU of a request as multiples of a raw ASGI application that answers a constant."""
    figures: Figures = {}
    with project(1000) as root:
        ours = Application(root)
        ours.boot()
        await_bytecode()
        apps: dict[str, App] = {"treefold, log on": ours, "treefold, log off": ours}
        for name in installed(http_apps.PEERS):
            apps[name] = await http_apps.PEERS[name][1]()
        for case in CASES:
            if case.name not in HTTP:
                continue
            for name, app in apps.items():
                await check(name, app, case)
            found = await _rounds(apps, case, rounds)
            for name, ratios in found.items():
                figures.setdefault(name, {})[HTTP[case.name]] = median(ratios)
        ours.threads.shutdown()
    return figures


async def check(name: str, app: App, case: Case) -> None:
    """Send one request; the answer must be the one that is measured.

    Raises:
        RuntimeError: for another status or body.
    """
    sent: list[dict[str, Any]] = []

    async def keep(message: dict[str, Any]) -> None:
        sent.append(message)

    once = replace(case, count=1)
    await http_bench.run_batch(app, once, keep)
    status = sent[0]["status"]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    wanted = 201 if case.method == "POST" else 200
    words = {"hello": b"Hello", "user": b'"42"', "items (fast)": b"Left Hand"}
    if status != wanted or words[case.name] not in body:
        raise RuntimeError(f"{name} answered {case.name} with {status} {body[:200]!r}")


async def _rounds(apps: Mapping[str, App], case: Case, rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in apps}
    log = get_logger()
    for number in range(rounds + 1):
        before = await http_bench.run_batch(bare, case)
        for name, app in apps.items():
            log.setLevel("INFO" if name.endswith("log on") else "CRITICAL")
            spent = await http_bench.run_batch(app, case)
            after = await http_bench.run_batch(bare, case)
            if number:  # the first round warms up
                found[name].append(2 * spent / (before + after))
            before = after
    return found


def boot_figures(rounds: int) -> dict[str, float]:
    """Return milliseconds of CPU for import and 1,000 routes, over an empty interpreter."""
    with project(1000, {"v1/Hello/Get.py": HELLO}) as root:
        ours = f"from treefold import Application\nApplication({str(root)!r}).boot()\n"
        programs = {"treefold": ours} | {n: http_apps.BOOTS[n] for n in installed(http_apps.PEERS)}
        spent: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(max(3, rounds // 4)):
            floor = _cpu(EMPTY)
            for name, program in programs.items():
                spent[name].append(_cpu(program) - floor)
    return {name: median(times) * 1e3 for name, times in spent.items()}


def _cpu(program: str) -> float:
    """Return the seconds of CPU of a new process until the program has reached its end."""
    environment = os.environ | {"TREEFOLD_LOG_LEVEL": "CRITICAL", "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", f"{program}\nimport time; print(time.process_time())"]
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True)
    return float(done.stdout.splitlines()[-1])


async def orm_figures(address: str, raw: Driver, rounds: int) -> Figures:
    """Return CPU of a call as multiples of the raw driver, on one database."""
    figures: Figures = {}
    async with AsyncExitStack() as stack:
        calls = {"raw driver": await raw(address, stack)}
        calls["treefold"] = await orm_calls.treefold(address, stack)
        for name in installed(orm_calls.PEERS):
            calls[name] = await orm_calls.PEERS[name][1](address, stack)
        for kind, title in ORM.items():
            ratios: dict[str, list[float]] = {name: [] for name in calls}
            for number in range(rounds + 1):
                spent = {n: await _batch(own[kind], CALLS[kind]) for n, own in calls.items()}
                again = await _batch(calls["raw driver"][kind], CALLS[kind])
                floor = (spent["raw driver"] + again) / 2
                if number:
                    for name, time in spent.items():
                        ratios[name].append(time / floor)
            for name, found in ratios.items():
                if name != "raw driver":
                    figures.setdefault(name, {})[title] = median(found)
    return figures


async def _batch(call: orm_calls.Call, count: int) -> float:
    with timed(count) as taken:
        for _ in range(count):
            await call()
    return taken[0]


async def orm_on_sqlite(rounds: int) -> Figures:
    """Fill a file, in memory if the machine has such a folder, and measure on it."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:  # noqa: ASYNC240
        path = f"{folder}/bench.sqlite3"
        configure("sqlite", path)
        await orm_data.seed()
        figures = await orm_figures(path, orm_calls.raw_sqlite, rounds)
        await aclose_all()
    return figures


async def orm_on_postgres(rounds: int) -> Figures:
    """Fill a database of its own, and measure on it."""
    name = f"treefold_bench_{os.getpid()}"
    server = await orm_data.connect(POSTGRES)
    await server.execute(f"CREATE DATABASE {name}")
    address = re.sub(r"/[^/]*$", f"/{name}", POSTGRES)
    try:
        configure(database=address)
        await orm_data.seed()
        figures = await orm_figures(address, orm_calls.raw_postgres, rounds)
    finally:
        await aclose_all()
        await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await server.close()
    return figures


def machine() -> str:
    """Return the machine in one line."""
    model = "unknown processor"
    if (info := Path("/proc/cpuinfo")).exists():
        found = re.search(r"model name\s*: (.*)", info.read_text())
        model = found[1] if found else model
    cores = os.cpu_count()
    return f"{model}, {cores} cores, {platform.system()}, CPython {platform.python_version()}"


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--orm", choices=("sqlite", "postgres"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    rounds: int = options.rounds
    if options.orm:  # a process for each database: Django is configured once
        with on_one_cpu():
            work = orm_on_sqlite if options.orm == "sqlite" else orm_on_postgres
            print(json.dumps(asyncio.run(work(rounds))))
        return
    with on_one_cpu(), _log_to_nowhere():
        http = asyncio.run(http_figures(rounds))
    boot = boot_figures(rounds)
    orm = {engine: _orm_process(engine, rounds) for engine in ("sqlite", "postgres")}
    versions = installed(http_apps.PEERS) | installed(orm_calls.PEERS)
    parts = [
        f"Measured on {machine()}, in {rounds} rounds, by `hatch run bench --write`. Peers: "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + ". Peers write no request log; treefold is shown with its log on and off.",
        plot.table(http, list(HTTP.values()), "CPU of a request, multiples of raw ASGI"),
        "![CPU of a request](plots/http.svg)",
        plot.table(
            {name: {"ms": value} for name, value in boot.items()}, ["ms"], "import and 1,000 routes"
        ),
        "![CPU of a boot](plots/boot.svg)",
        plot.table(orm["sqlite"], list(ORM.values()), "SQLite, multiples of aiosqlite"),
        plot.table(orm["postgres"], list(ORM.values()), "PostgreSQL, multiples of asyncpg"),
        "![CPU of a read by key](plots/orm.svg)",
    ]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if options.write:
        _write(text, http, boot, orm["postgres"])


@contextmanager
def _log_to_nowhere() -> Generator[None]:
    """Write the request log, as in production, to the null device."""
    shown = os.dup(sys.stderr.fileno())
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stderr.fileno())
    try:
        yield
    finally:
        flush()
        os.dup2(shown, sys.stderr.fileno())
        os.close(shown)
        os.close(null)


def _orm_process(engine: str, rounds: int) -> Figures:
    command = [sys.executable, str(HERE), "--orm", engine, "--rounds", str(rounds)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(printed.splitlines()[-1])


def _write(text: str, http: Figures, boot: dict[str, float], orm: Figures) -> None:
    PLOTS.mkdir(exist_ok=True)
    column = HTTP["user"]
    plots = {
        "http": plot.bars(
            f"CPU of a request ({column})",
            {name: row[column] for name, row in http.items()},
            "multiples of raw ASGI; shorter is better",
        ),
        "boot": plot.bars(
            "CPU of import and 1,000 routes", boot, "milliseconds; shorter is better"
        ),
        "orm": plot.bars(
            "CPU of a read by key on PostgreSQL",
            {name: row[ORM["get"]] for name, row in orm.items()},
            "multiples of asyncpg; shorter is better",
        ),
    }
    for name, svg in plots.items():
        (PLOTS / f"{name}.svg").write_text(svg, encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
