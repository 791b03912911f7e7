"""The rows of the soak: each brings one condition about and returns figures beside their bars.

The numbers are those of `docs/project/security.md`. `scale` is the part of the full size: 1 is
minutes, 0.01 is what the tests run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from soak_clients import (
    Address,
    Tally,
    ask_at_once,
    echo,
    fetch,
    keep_asking,
    mixed,
    read_answer,
    request,
)
from soak_server import Holding, SoakServer, raise_own_limit, serving


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure and its bar; `least` says that more is better."""

    name: str
    value: float
    bar: float
    unit: str
    least: bool = False

    @property
    def holds(self) -> bool:
        """True if the bar is kept."""
        return self.value >= self.bar if self.least else self.value <= self.bar

    def __str__(self) -> str:
        sign = ">=" if self.least else "<="
        return f"{self.name}: {self.shown} (bar {sign} {self.bar:,.10g})"

    @property
    def shown(self) -> str:
        """The value in three digits at least, with its unit."""
        digits = ",.0f" if self.value >= 1000 else ".3g"
        return f"{self.value:{digits}} {self.unit}".strip()


def leaks_nothing(scale: float) -> list[Figure]:
    """Mixed requests, none like another: the server holds no more at the end than when warm."""
    return asyncio.run(_leaks_nothing(scale))


async def _leaks_nothing(scale: float) -> list[Figure]:
    total, warm = int(1_000_000 * scale), int(50_000 * max(scale, 0.04))
    with serving() as server:
        tally = Tally()
        found: list[tuple[Holding, int, int]] = []
        for goal in (warm, total):
            await _crowd(server.address, tally, goal)
            await echo(server.address, max(10, int(10_000 * scale)))
            await asyncio.sleep(6)  # idle connections are closed after 5
            process = fetch(server.address, "/v1/process?collect=true").json()
            found.append((server.holding(), process["objects"], process["tasks"]))
        (before, objects_before, tasks_before), (now, objects, tasks) = found
        unexpected = sum(n for s, n in tally.statuses.items() if s not in _EXPECTED)
    return [
        Figure("requests answered", tally.answered, total, "", least=True),
        Figure("requests without an answer", len(tally.failures), 0, ""),
        Figure("answers of another status", unexpected, 0, ""),
        Figure("growth of memory", (now.memory - before.memory) / 1e6, 5, "MB"),
        Figure("growth of objects", (objects / objects_before - 1) * 100, 1, "%"),
        Figure("more descriptors", now.descriptors - before.descriptors, 0, ""),
        Figure("more tasks", tasks - tasks_before, 0, ""),
    ]


_EXPECTED = {200, 201, 404, 405, 422, 500}


async def _crowd(address: Address, tally: Tally, goal: int, clients: int = 16) -> None:
    def enough() -> bool:
        return tally.answered + len(tally.failures) >= goal

    await asyncio.gather(
        *(keep_asking(address, mixed(n * 100_000_000), tally, enough) for n in range(clients))
    )
    tally.seconds.clear()


def idle_connections(scale: float) -> list[Figure]:
    """Ten thousand open connections that send nothing more cost little and are closed."""
    return asyncio.run(_idle_connections(scale))


async def _idle_connections(scale: float) -> list[Figure]:
    wanted = int(10_000 * scale)
    raise_own_limit(wanted + 500)
    with serving(limit=wanted + 500) as server:
        await _crowd(server.address, Tally(), 500)
        await asyncio.sleep(6)
        before = server.holding()
        began = time.monotonic()
        opened = [await asyncio.open_connection(*server.address) for _ in range(wanted)]
        await asyncio.sleep(2)  # the last ones are connected before the server accepts them
        during, tally = server.holding(), Tally()
        for _ in range(50):
            await keep_asking(
                server.address, iter([request("/v1/health")] * 4), tally, lambda: False
            )
        deadline = began + 40
        while server.holding().descriptors > before.descriptors and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        closed_after = time.monotonic() - began
        left = server.holding().descriptors - before.descriptors
        for _, writer in opened:
            writer.close()
    return [
        Figure("connections held", during.descriptors - before.descriptors, wanted, "", least=True),
        Figure("memory of one", (during.memory - before.memory) / wanted / 1e3, 8, "kB"),
        Figure("p99 of requests beside them", tally.percentile(0.99), 20, "ms"),
        Figure("descriptors left", left, 0, ""),
        Figure("closed after", closed_after, 12 + wanted / 1000, "s"),
    ]


def descriptors_run_out(scale: float) -> list[Figure]:
    """More connections than descriptors: the server lives, says it once, and serves again."""
    return asyncio.run(_descriptors_run_out())


async def _descriptors_run_out() -> list[Figure]:
    with serving(limit=128) as server:
        opened = [
            await asyncio.wait_for(asyncio.open_connection(*server.address), 5) for _ in range(250)
        ]
        await asyncio.sleep(2.5)
        for _, writer in opened:
            writer.close()
        began = time.monotonic()
        answer = None
        while answer is None and time.monotonic() < began + 10:
            with contextlib.suppress(OSError):  # one that arrived before is closed
                answer = await asyncio.to_thread(fetch, server.address, "/v1/health")
        recovered = time.monotonic() - began
        about = [line for line in server.lines if "descriptor" in line or "Too many" in line]
        code = server.stop()
    return [
        Figure("served again after", recovered, 2, "s"),
        Figure("lines about it", len(about), 1, ""),
        Figure("exit code", abs(code), 0, ""),
    ]


def aborted_requests(scale: float) -> list[Figure]:
    """Clients that go away in the middle of a request leave nothing behind."""
    return asyncio.run(_aborted_requests(scale))


async def _aborted_requests(scale: float) -> list[Figure]:
    with serving() as server:
        await _crowd(server.address, Tally(), 500)
        await asyncio.sleep(6)
        before = server.holding()
        tasks_before = fetch(server.address, "/v1/process").json()["tasks"]
        for _ in range(max(2, int(50 * scale))):
            started = [await asyncio.open_connection(*server.address) for _ in range(100)]
            for _, writer in started:
                writer.write(request("/v1/waiting?seconds=0.2"))
                await writer.drain()
            await asyncio.sleep(0.05)
            for _, writer in started:
                writer.transport.abort()
        await asyncio.sleep(1.2)
        tasks = fetch(server.address, "/v1/process").json()["tasks"]
        left = server.holding().descriptors - before.descriptors
    return [
        Figure("descriptors left after 1 s", left, 0, ""),
        Figure("tasks left after 1 s", tasks - tasks_before, 0, ""),
    ]


def slow_readers(scale: float) -> list[Figure]:
    """Clients that read a byte now and then hold little memory of a stream of 100 MB."""
    return asyncio.run(_slow_readers(scale))


async def _slow_readers(scale: float) -> list[Figure]:
    clients = max(5, int(100 * scale))
    with serving() as server:
        await _crowd(server.address, Tally(), 500)
        before = server.holding()
        opened = [await asyncio.open_connection(*server.address, limit=1) for _ in range(clients)]
        for reader, writer in opened:
            writer.write(request("/v1/stream"))
            await reader.readexactly(1)
        await asyncio.sleep(3)
        during = server.holding()
        for _, writer in opened:
            writer.transport.abort()
        await asyncio.sleep(0.1)  # the sockets are closed by the loop, before the server stops
    grown = (during.memory - before.memory) / clients / 1e6
    return [Figure("memory of a slow reader", grown, 1, "MB")]


def blocking_handlers(scale: float) -> list[Figure]:
    """Sixty plain handlers that block a second each: two turns of 40 threads, and async goes on."""
    return asyncio.run(_blocking_handlers())


async def _blocking_handlers() -> list[Figure]:
    with serving() as server:
        beside, done = Tally(), False
        asking = asyncio.ensure_future(
            keep_asking(server.address, _again("/v1/health"), beside, lambda: done)
        )
        await asyncio.sleep(0.1)
        began = time.monotonic()
        tally = await ask_at_once(server.address, [request("/v1/blocking?seconds=1")] * 60)
        took = time.monotonic() - began
        done = True
        await asking
    return [
        Figure("all 60 after", took, 2.4, "s"),
        Figure("answered with 200", tally.statuses.get(200, 0), 60, "", least=True),
        Figure("p99 of async requests meanwhile", beside.percentile(0.99), 20, "ms"),
    ]


def _again(path: str) -> Iterator[bytes]:
    while True:
        yield request(path)


def large_bodies(scale: float) -> list[Figure]:
    """Two thousand bodies of 1 MiB at once: refused or served, within bounded memory."""
    return asyncio.run(_large_bodies(scale))


async def _large_bodies(scale: float) -> list[Figure]:
    count = max(50, int(2000 * scale))
    raise_own_limit(count + 500)
    body = request("/v1/body", "POST", b"x" * 1048576)
    with serving(limit=count + 500) as server:
        most = 0
        sending = asyncio.ensure_future(ask_at_once(server.address, [body] * count))
        while not sending.done():
            most = max(most, server.holding().memory)
            await asyncio.sleep(0.05)
        tally = await sending
        answer = await asyncio.to_thread(fetch, server.address, "/v1/health")
    served = tally.statuses.get(200, 0) + tally.statuses.get(503, 0)
    return [
        Figure(
            "answered with 200 or 503, or closed", served + len(tally.failures), count, "", True
        ),
        Figure("status afterwards", answer.status, 200, ""),
        Figure("most memory", most / 1e9, 1.5, "GB"),
    ]


def worker_crash(scale: float) -> list[Figure]:
    """A worker that crashes is replaced; the other one serves meanwhile."""
    return asyncio.run(_worker_crash())


async def _worker_crash() -> list[Figure]:
    clients = 8
    with serving("--workers", "2") as server:
        tally, done = Tally(), False
        workers: set[int] = set()
        deadline = time.monotonic() + 20
        while len(workers) < 2 and time.monotonic() < deadline:
            workers.add(fetch(server.address, "/v1/process").json()["pid"])
        asking = [
            asyncio.ensure_future(
                keep_asking(server.address, _again("/v1/health"), tally, lambda: done)
            )
            for _ in range(clients)
        ]
        await asyncio.sleep(0.3)
        began = time.monotonic()
        os.kill(min(workers), signal.SIGSEGV)
        replaced = 0.0
        while not replaced and time.monotonic() < began + 10:
            answer = await asyncio.to_thread(fetch_or_none, server)
            if answer is not None and answer not in workers:
                replaced = time.monotonic() - began
        done = True
        await asyncio.gather(*asking)
    return [
        Figure("another worker serves after", replaced or 10.0, 2, "s"),
        Figure("requests that failed", len(tally.failures), clients, ""),
    ]


def fetch_or_none(server: SoakServer) -> int | None:
    """Return the number of the process that answers, or None."""
    with contextlib.suppress(OSError, ValueError):
        return fetch(server.address, "/v1/process").json()["pid"]
    return None


def reload_under_load(scale: float) -> list[Figure]:
    """Saves while requests arrive, good ones and half-written ones: no request fails."""
    return asyncio.run(_reload_under_load(scale))


async def _reload_under_load(scale: float) -> list[Figure]:
    saves = max(4, int(100 * scale))
    with serving(dev=True) as server:
        tally, done = Tally(), False
        asking = [
            asyncio.ensure_future(
                keep_asking(server.address, _again("/v1/user/7"), tally, lambda: done)
            )
            for _ in range(4)
        ]
        file = server.root / "Api/v1/User/[id]/Get.py"
        newest = ""
        for number in range(saves):
            newest = f"save {number}"
            half = "async def handler(id: str): return {'id'"
            whole = f"async def handler(id: str): return {{'id': id, 'save': {newest!r}}}\n"
            file.write_text(half if number % 4 == 3 else whole)
            await asyncio.sleep(0.15)
        file.write_text("async def handler(id: str): return {'id': id, 'save': 'last'}\n")
        deadline = time.monotonic() + 5
        is_served = False
        while not is_served and time.monotonic() < deadline:
            answer = await asyncio.to_thread(fetch, server.address, "/v1/user/7")
            is_served = b"last" in answer.body
        done = True
        await asyncio.gather(*asking)
    return [
        Figure("requests answered", tally.answered, 1, "", least=True),
        Figure("requests that failed", len(tally.failures), 0, ""),
        Figure("answers other than 200", tally.answered - tally.statuses.get(200, 0), 0, ""),
        Figure("last save served", is_served, 1, "", least=True),
    ]


def colliding_numbers(scale: float) -> list[Figure]:
    """A thousand JSON members whose names are colliding integers cost no more than others."""
    return asyncio.run(_colliding_numbers())


async def _colliding_numbers() -> list[Figure]:
    step = 2**61 - 1  # integers that are multiples of it have one hash
    members = ", ".join(f'"{n * step}": 1' for n in range(1000))
    body = ('{"name": "n", ' + members + "}").encode()
    with serving() as server:
        reader, writer = await asyncio.open_connection(*server.address)
        times: list[float] = []
        for _ in range(50):
            began = time.perf_counter()
            writer.write(request("/v1/items", "POST", body, "Content-Type: application/json"))
            await read_answer(reader)
            times.append(time.perf_counter() - began)
        writer.close()
    return [Figure("median of a request", sorted(times)[25] * 1e3, 5, "ms")]


ROWS: dict[str, tuple[str, Callable[[float], list[Figure]]]] = {
    "R-09": ("clients that go away in the middle of a request", aborted_requests),
    "R-10": ("slow readers of a stream of 100 MB", slow_readers),
    "R-14": ("idle connections", idle_connections),
    "R-15": ("no descriptors left", descriptors_run_out),
    "R-16": ("mixed requests, none like another, and sockets", leaks_nothing),
    "R-24": ("plain handlers that block for a second", blocking_handlers),
    "R-26": ("bodies of 1 MiB at once", large_bodies),
    "R-27": ("a worker that crashes under load", worker_crash),
    "R-30": ("saves under load", reload_under_load),
    "R-32": ("JSON members with colliding hashes", colliding_numbers),
}
"""Number to title and function."""
