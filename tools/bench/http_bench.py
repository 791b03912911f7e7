"""What a request costs, beside a bare ASGI application and hand-written Python in the same run.

    hatch run bench-http [--rounds 20] [--only in-process|middleware|start|served]      (Linux)
    hatch run peers:bench-http       the middleware, and all of it beside BlackSheep

Each figure stands next to its bar; the command fails when one is missed. Contenders take turns in
short batches, ours between two of the other, and the median of these ratios counts: the clock of a
machine changes within a run, a ratio of neighbours does not. How bars are carried over to another
machine is said in docs/project/performance.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import http_middleware
import http_peer
import http_served
from boot_floor import TABLE as BOOT_FLOOR, await_bytecode, boot_floor
from http_cases import CASES, UPLOAD_CASE, App, Case, project
from turns import note_row, turn

from treefold_http import Application
from treefold_logging import configure, flush, get_logger

_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure and what it is held against; `more` says that more is better."""

    name: str
    figure: float
    bar: float
    unit: str
    beside: str = ""
    more: bool = False

    @property
    def holds(self) -> bool:
        """Return True if the bar is kept."""
        return self.figure >= self.bar if self.more else self.figure <= self.bar

    def __str__(self) -> str:
        sign = ">=" if self.more else "<="
        verdict = "" if self.holds else "MISSED"
        figure = f"{self.figure:9.2f} {self.unit:6} {sign} {self.bar:8.2f}"
        return f"{self.name:20} {figure}  {self.beside:34} {verdict}".rstrip()


async def _drop(message: Any) -> None:
    """Take a message of an answer, as a server that is quicker than any."""


async def run_batch(app: App, case: Case, send: Any = _drop) -> float:
    """Give microseconds of CPU for one request, or one part of it, as a server would hand it on."""
    pieces = [case.body[i : i + _CHUNK] for i in range(0, len(case.body), _CHUNK)] or [b""]
    messages = [
        {"type": "http.request", "body": piece, "more_body": piece is not pieces[-1]}
        for piece in pieces
    ]
    with turn():
        return await _time_batch(app, case, send, messages)


async def _time_batch(app: App, case: Case, send: Any, messages: list[dict[str, Any]]) -> float:
    state: dict[str, Any] = {}
    started = time.process_time()
    for _ in range(case.count):
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 51234),
            "scheme": "http",
            "root_path": "",
            "headers": list(case.headers),
            "state": state.copy(),
            "method": case.method,
            "path": case.path,
            "raw_path": case.path.encode(),
            "query_string": b"",
        }
        await app(scope, _receiver(messages), send)
    flush()
    return (time.process_time() - started) / case.count / case.per * 1e6


def _receiver(messages: list[dict[str, Any]]) -> Any:
    given = 0

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given == len(messages):  # only who looks for the end of the client asks again
            await asyncio.get_running_loop().create_future()
        given += 1
        return messages[given - 1]

    return receive


async def _compare(
    app: App, base: App, case: Case, rounds: int, row: str = ""
) -> tuple[float, float]:
    """Give how many times as long as `base` a request takes, and how long `base` takes."""
    for warm in (app, base):
        await run_batch(warm, case)
    before, bases, ratios = await run_batch(base, case), list[float](), list[float]()
    spent: list[float] = []
    for _ in range(rounds):
        ours, after = await run_batch(app, case), await run_batch(base, case)
        ratios.append(2 * ours / (before + after))
        bases.append(after)
        spent.append(ours)
        before = after
    if row:
        note_row(row, spent)
    return median(ratios), median(bases)


async def in_process(rounds: int) -> list[Row]:
    """Measure every scenario of `http_cases`."""
    rows: list[Row] = []
    with project(1000) as root:
        application = Application(root)
        application.boot()
        await_bytecode()
        for case in [*CASES, UPLOAD_CASE]:
            get_logger().setLevel("INFO" if case.logged else "CRITICAL")
            base = case.floor if case is UPLOAD_CASE and case.floor else case.bare
            ratio, spent = await _compare(application, base, case, rounds, case.name)
            scale, unit = (1.0, "floors") if case is UPLOAD_CASE else (case.bare_table, "us")
            beside = f"{ratio:.2f} times {spent:.2f} us"
            if case.floor is not None and base is not case.floor:
                floor = (await _compare(case.floor, base, case, rounds))[0]
                beside += f", floor {floor * scale:.2f}"
            rows.append(
                Row(name=case.name, figure=ratio * scale, bar=case.bar, unit=unit, beside=beside)
            )
        application.threads.shutdown()
    return rows


async def around_a_request(rounds: int) -> list[Row]:
    """Measure what each shipped middleware adds to `hello`."""
    get_logger().setLevel("CRITICAL")
    rows: list[Row] = []
    for entry in http_middleware.ENTRIES:
        cost, ratio = await http_middleware.added(run_batch, entry, rounds)
        name = f"+ {entry.name}"
        beside = f"hello takes {ratio:.2f} times as long"
        rows.append(Row(name=name, figure=cost, bar=entry.bar, unit="us", beside=beside))
    if http_peer.is_installed():
        ratio, spent = await http_middleware.all_beside_peer(run_batch, rounds)
        beside = f"{http_peer.NAME} with its line {spent:.2f} us"
        rows.append(
            Row(name="all six and the line", figure=ratio, bar=1.0, unit="peers", beside=beside)
        )
    return rows


_IMPORT = """
import json, pathlib, re, sys, time
began = time.process_time()
if len(sys.argv) > 1:
    import treefold
spent = (time.process_time() - began) * 1e3
status = pathlib.Path("/proc/self/status").read_text()
print(json.dumps([spent, int(re.search("VmRSS:\\s+([0-9]+)", status)[1]) / 1024]))
"""
_BOOT = """
import gc, json, sys, time, tracemalloc
from treefold_http import Application
from treefold_logging import configure, get_logger
configure(level="CRITICAL")
app = Application(sys.argv[1])
app.settings
get_logger().setLevel("CRITICAL")
if len(sys.argv) > 2:
    tracemalloc.start()
began = time.process_time()
app.boot()
spent = (time.process_time() - began) * 1e3
ours = 0
if len(sys.argv) > 2:
    gc.collect()
    found = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/treefold_*")])
    kept = found.statistics("filename")  # the modules are the author's, whoever makes them
    ours = sum(each.size for each in kept if "_project/modules" not in each.traceback[0].filename)
print(json.dumps([spent, ours / 1024]))
"""


def _child(code: str, *arguments: str) -> tuple[float, float]:
    environment = {**os.environ, "TREEFOLD_LOG_LEVEL": "CRITICAL", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    first, second = json.loads(done.stdout.splitlines()[-1])
    return first, second


def at_start(rounds: int) -> Iterator[Row]:
    """Measure importing the umbrella and booting 1,000 routes, each in a process of its own."""
    plain = [_child(_IMPORT) for _ in range(rounds)]
    imported = [_child(_IMPORT, "treefold") for _ in range(rounds)]
    spent = min(ms for ms, _ in imported) - min(ms for ms, _ in plain)
    used = min(mb for _, mb in imported) - min(mb for _, mb in plain)
    yield Row(name="import", figure=spent, bar=40.0, unit="ms")
    yield Row(name="import, memory", figure=used, bar=12.0, unit="MB")
    with project(1000, {}) as root:
        pairs = [(_child(_BOOT, str(root))[0], boot_floor(root)) for _ in range(rounds)]
        held = _child(_BOOT, str(root), "memory")[1]
    ratio, floor = median(boot / floor for boot, floor in pairs), min(floor for _, floor in pairs)
    yield Row(
        name="boot, 1,000 routes",
        figure=ratio * BOOT_FLOOR,
        bar=120.0,
        unit="ms",
        beside=f"{ratio:.2f} floors of {floor:.0f} ms; best {min(boot for boot, _ in pairs):.0f}",
    )
    yield Row(name="memory of a route", figure=held / 1000, bar=2.0, unit="KB")


def served(rounds: int) -> Iterator[Row]:
    """Measure behind uvicorn: what bare costs, as a part of what treefold costs."""
    with project() as root:
        for name, (part, spent) in http_served.compare(root, rounds=rounds).items():
            yield Row(
                name=f"served {name}",
                figure=part,
                bar=http_served.BARS[name],
                unit="bare",
                beside=f"bare {spent:.1f} us",
                more=True,
            )


def main() -> int:
    """Measure, print, and give 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", choices=["in-process", "middleware", "start", "served"])
    chosen = parser.parse_args()
    # The log lines are written, as in production; only nobody is to read them here.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    configure(level="CRITICAL")
    os.environ["TREEFOLD_LOG_LEVEL"] = "CRITICAL"
    missed = 0
    few = max(5, chosen.rounds // 4)
    if chosen.only in (None, "in-process"):
        missed += _show(asyncio.run(in_process(chosen.rounds)))
    if chosen.only in (None, "middleware"):
        missed += _show(asyncio.run(around_a_request(chosen.rounds)))
        if not http_peer.is_installed():
            how = http_peer.HOW_TO_MEASURE
            print(f"all six and the line: not measured, {http_peer.NAME} is not installed; {how}")
    if chosen.only in (None, "start"):
        missed += _show(at_start(few))
    if chosen.only in (None, "served"):
        missed += _show(served(chosen.rounds))
    print(f"{missed} missed" if missed else "every bar holds")
    return 1 if missed else 0


def _show(rows: list[Row] | Iterator[Row]) -> int:
    missed = 0
    for row in rows:
        print(row, flush=True)
        missed += not row.holds
    return missed


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:  # the stream for errors is nobody's here
        traceback.print_exc(file=sys.stdout)
        sys.exit(2)
