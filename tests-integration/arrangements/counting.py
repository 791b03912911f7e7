"""Many arrangements, each in a process of its own, and the counts of what came of them.

Each process is forked from one that has imported everything, so that no arrangement finds what
another one has left in memory; in Redis each lane has a database, emptied before each arrangement.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import pickle
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from http_redis import connected

from arrangements.judging import SILENT, Finding, Kind
from arrangements.refusals import names_remedy
from arrangements.running import Outcome, run_arrangement
from treefold_http._redis import client

LEAST_BOOTED = 0.7
"""The share of arrangements that must boot: a refusal is no answer to everything."""
LEAST_OF_USE = 0.5
"""The share of arrangements with a cache in which a response comes from it."""
PATIENCE = 60.0
"""Seconds after which an arrangement is killed."""

_LOADED = (
    "jwt",
    "prometheus_client",
    "redis.asyncio",
    "treefold.auth",
    "treefold.cache",
    "treefold.middleware",
    "treefold_http._built_in.docs",
    "treefold_http._built_in.health",
    "treefold_http._redis",
    "treefold_http.auth._jwt",
    "treefold_http.cache._redis",
    "treefold_http.cache._responses",
    "treefold_http.middleware._metrics",
    "treefold_http.middleware._sessions",
    "treefold_http.openapi",
    "uvicorn.protocols.http.auto",
)


@dataclass(frozen=True, slots=True)
class Counts:
    """The outcomes of many arrangements."""

    outcomes: Sequence[Outcome]

    @property
    def booted(self) -> Sequence[Outcome]:
        """Those that booted."""
        return [outcome for outcome in self.outcomes if outcome.refusal is None]

    @property
    def unclear(self) -> Sequence[Outcome]:
        """Those that were refused without the line to write."""
        return [each for each in self.outcomes if each.refusal and not names_remedy(each.refusal)]

    @property
    def cached(self) -> Sequence[Outcome]:
        """Those that booted with a cache."""
        return [outcome for outcome in self.booted if outcome.is_cached]

    @property
    def with_hits(self) -> Sequence[Outcome]:
        """Those with a cache that answered in place of the handler."""
        return [outcome for outcome in self.cached if outcome.hits]

    @property
    def failing(self) -> Sequence[Outcome]:
        """Those with any finding."""
        return [outcome for outcome in self.outcomes if outcome.findings]

    @property
    def silent(self) -> Sequence[Outcome]:
        """Those in which somebody got what was not his, and nobody noticed."""
        return [
            outcome
            for outcome in self.outcomes
            if any(finding.kind in SILENT for finding in outcome.findings)
        ]

    @property
    def problems(self) -> Sequence[str]:
        """What must not be: holes, unclear refusals, and applications that cannot be used."""
        checks = {
            f"{len(self.failing)} arrangements fail": not self.failing,
            f"{len(self.unclear)} refusals do not say what to write": not self.unclear,
            f"only {len(self.booted)} of {len(self.outcomes)} arrangements boot": (
                len(self.booted) >= LEAST_BOOTED * len(self.outcomes)
            ),
            f"only {len(self.with_hits)} of {len(self.cached)} caches are of use": (
                len(self.with_hits) >= LEAST_OF_USE * len(self.cached)
            ),
        }
        return [text for text, holds in checks.items() if not holds]

    def summary(self) -> str:
        """Return the counts in a few lines."""
        kinds = Counter(
            kind for each in self.outcomes for kind in {finding.kind for finding in each.findings}
        )
        requests = sum(outcome.requests for outcome in self.outcomes)
        return "\n".join(
            [
                f"{len(self.outcomes)} arrangements, {requests} requests",
                f"{len(self.booted)} booted; {len(self.unclear)} refusals without a remedy",
                f"{len(self.with_hits)} of {len(self.cached)} with a cache had hits",
                f"{len(self.silent)} with a silent hole; {len(self.failing)} with any finding",
                *(f"  {number} {kind}" for kind, number in kinds.most_common()),
            ]
        )


def count_arrangements(
    seeds: Sequence[int], *, redis: str, parser: str | None = None, jobs: int = 2
) -> Counts:
    """Run the arrangements of seeds.

    Args:
        redis: the address of a server that nothing else uses.
        parser: as in `run_arrangement`.
        jobs: processes at the same time, at most 16.
    """
    for name in _LOADED:
        importlib.import_module(name)
    # A busy machine may take longer than the 100 ms of a request, which would then be a 503.
    client.TIMEOUT = PATIENCE
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page
    waiting = iter(seeds)
    lanes = [_Lane(f"{redis}/{number}", parser) for number in range(min(jobs, 16))]
    outcomes: list[Outcome] = []
    running = [lane for lane in lanes if lane.begin_next(waiting)]
    while running:
        ready = select.select([lane.pipe for lane in running], [], [], 1.0)[0]
        for lane in list(running):
            if lane.pipe in ready or lane.is_late:
                outcomes.append(lane.finish())
                if not lane.begin_next(waiting):
                    running.remove(lane)
    return Counts(sorted(outcomes, key=lambda outcome: outcome.seed))


class _Lane:
    """Runs one arrangement after the other, each in a forked process."""

    def __init__(self, redis: str, parser: str | None) -> None:
        self.pipe = -1
        self._redis, self._parser = redis, parser
        self._seed, self._pid, self._began = 0, 0, 0.0
        self._folder = ""

    def begin_next(self, seeds: Iterator[int]) -> bool:
        """Begin the next arrangement; False if there is none."""
        seed = next(seeds, None)
        if seed is None:
            return False
        with connected(self._redis) as client:
            client.flushdb()
        self._seed, self._began = seed, time.monotonic()
        self._folder = tempfile.mkdtemp(prefix="arrangement-")
        self.pipe, writing = os.pipe()
        sys.stdout.flush()
        self._pid = os.fork()
        if self._pid == 0:
            _become_arrangement(seed, Path(self._folder), self._redis, self._parser, writing)
        os.close(writing)
        return True

    @property
    def is_late(self) -> bool:
        """True if the process must be killed."""
        return time.monotonic() - self._began > PATIENCE

    def finish(self) -> Outcome:
        """Read the outcome and end the process."""
        if self.is_late:
            os.kill(self._pid, signal.SIGKILL)
        with os.fdopen(self.pipe, "rb") as reading:
            data = reading.read()
        os.waitpid(self._pid, 0)
        log = (Path(self._folder) / "log").read_text(encoding="utf-8", errors="replace")
        shutil.rmtree(self._folder)
        if data:
            return pickle.loads(data)
        last = log.splitlines()[-12:]
        return Outcome(self._seed, findings=[Finding(Kind.HANG, "\n".join(["it died", *last]))])


def _become_arrangement(
    seed: int, root: Path, redis: str, parser: str | None, writing: int
) -> NoReturn:
    log = os.open(root / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 2)
    os.chdir(root)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    code = 1
    try:
        outcome = asyncio.run(run_arrangement(seed, root, redis=redis, parser=parser))
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(outcome, pipe)
        code = 0
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr.flush()
    os._exit(code)
