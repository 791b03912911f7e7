"""Measuring for `orm_bench`: batches that take turns, and a table of figures beside their bars.

Nothing here knows what is measured.
"""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from turns import note_row, turn

Pair = tuple[float, float]  # the raw driver and the ORM, in batches that are neighbours
Sync = Callable[[], Any]
Async = Callable[[], Awaitable[Any]]
Clock = Callable[[], float]


class Table:
    """Prints each result next to its bar and counts those above it."""

    def __init__(self) -> None:
        self.missed = 0

    def add(self, name: str, pairs: list[Pair], bar: float) -> None:
        """Add one scenario of neighbouring batches in microseconds, whose ratio has a bar."""
        raw, ours = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        times = f"raw {raw:9.2f} us   ours {ours:9.2f} us"
        ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
        note_row(name, [pair[1] for pair in pairs])
        self._line(name, times, ratio, bar, digits=2)

    def count(self, name: str, found: float, bar: float) -> None:
        """Add a number that has a bar of its own."""
        note_row(name, [found])
        self._line(name, " " * 37, found, bar, digits=0)

    def _line(self, name: str, middle: str, found: float, bar: float, *, digits: int) -> None:
        above = found > bar
        self.missed += above
        figures = f"{found:8.{digits}f}   bar {bar:6.{digits}f}"
        print(f"{name:36} {middle}   {figures}   {'ABOVE' if above else 'ok'}", flush=True)


def measure(
    pair: tuple[Sync, Sync], *, calls: int, rounds: int, clock: Clock = time.process_time
) -> list[Pair]:
    """Microseconds per call of both functions, in batches that take turns: of CPU time, unless
    another clock is given.
    """

    def batch(function: Sync) -> float:
        with timed(calls, clock) as taken:
            for _ in range(calls):
                function()
        return taken[0]

    found = [batch(function) for function in (*pair, *turns(pair, rounds))][2:]
    return paired(found)


async def ameasure(
    pair: tuple[Async, Async], *, calls: int, rounds: int, clock: Clock = time.process_time
) -> list[Pair]:
    """`measure` for async functions, on the running loop."""

    async def batch(function: Async) -> float:
        with timed(calls, clock) as taken:
            for _ in range(calls):
                await function()
        return taken[0]

    found = [await batch(function) for function in (*pair, *turns(pair, rounds))][2:]
    return paired(found)


T = TypeVar("T")


def turns(pair: tuple[T, T], rounds: int) -> list[T]:
    """Both in turns, and the other one first in every second round."""
    return [side for i in range(rounds) for side in (pair if i % 2 == 0 else pair[::-1])]


def paired(found: list[float]) -> list[Pair]:
    """The batches of `turns` as neighbours, the raw driver first."""
    rounds = [(found[i], found[i + 1]) for i in range(0, len(found), 2)]
    return [(b, a) if i % 2 else (a, b) for i, (a, b) in enumerate(rounds)]


@contextlib.contextmanager
def timed(calls: int, clock: Clock = time.process_time) -> Generator[list[float]]:
    """Yield a list that gets the microseconds for each of so many calls."""
    taken: list[float] = []
    gc.collect()
    with turn():
        gc.disable()
        start = clock()
        try:
            yield taken
            taken.append((clock() - start) / calls * 1e6)
        finally:
            gc.enable()


@contextlib.contextmanager
def on_one_cpu() -> Generator[None]:
    """Keep all threads of this process on one CPU."""
    if not hasattr(os, "sched_setaffinity"):  # Windows and macOS have no such call
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@contextlib.contextmanager
def calls_of(package: str) -> Generator[Counter[str]]:
    """Count the Python functions of a package that are entered in this thread."""
    found: Counter[str] = Counter()

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call" and str(frame.f_globals.get("__name__", "")).startswith(package):
            found[frame.f_code.co_name] += 1

    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(None)


_YARDSTICK = "import argparse, asyncio, email.message, http.client, json, logging, xml.dom.minidom"
_YARDSTICK_AT_REST = 70.0
"""Milliseconds that it takes where the bar was set, as for the budgets of the command line."""


def imported(table: Table, rounds: int) -> None:
    """CPU milliseconds of `import treefold_orm` over those of the interpreter alone.

    Carried over to a machine at rest by what a part of the standard library takes beside it.
    """
    import resource  # not on Windows

    def cpu(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # bytecode of its own, so that the first child compiles and none does afterwards
        cache = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        subprocess.run([sys.executable, "-c", code], env={**os.environ, **cache}, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return used * 1e3

    with tempfile.TemporaryDirectory() as folder:
        cpu(f"{_YARDSTICK}; import treefold_orm")
        parts: list[float] = []
        for _ in range(rounds):
            bare, ours, yardstick = map(cpu, ("pass", "import treefold_orm", _YARDSTICK))
            parts.append((ours - bare) / (yardstick - bare))
    found = statistics.median(parts) * _YARDSTICK_AT_REST
    table.count("import over the interpreter, ms", found, 60)
