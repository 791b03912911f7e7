"""What each shipped middleware adds to a request that it lets through, in process.

The same handler is served without and with one entry in `Middleware/`; short batches take turns,
each of the middleware between two without it. The difference counts, as a part of what `bare` takes
in the same round. All six together, the request line written, are held against a peer that has the
line and none of the six.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from http_cases import HEADERS, HELLO, App, Case, bare, project
from http_peer import logging_peer
from turns import note_row

from treefold_http import Application
from treefold_logging import get_logger

Batch = Callable[..., Awaitable[float]]
"""Takes an application, a case and perhaps a `send`; returns the microseconds of a request."""

_HEADERS = [*HEADERS, (b"origin", b"https://app.example.com")]
_CASE = Case(name="hello", path="/v1/hello", headers=_HEADERS, bar=0, count=500)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of `middlewares`, and the microseconds that it may add where `bare` takes 0.95."""

    name: str
    code: str
    bar: float


ENTRIES = [
    Entry("TrustedHosts", "TrustedHosts(['127.0.0.1'])", 1.0),
    Entry("SecurityHeaders", "SecurityHeaders()", 1.0),
    Entry("GZip", "GZip()", 3.0),
    Entry("RateLimit", "RateLimit('100000000/s', burst=999999999)", 3.0),
    Entry("CORS", "CORS(['https://app.example.com'])", 3.0),
    Entry("Sessions", "Sessions(secret='s' * 32)", 3.0),
]


_ORDER = ("SecurityHeaders", "TrustedHosts", "CORS", "RateLimit", "Sessions", "GZip")
ALL_SIX = ", ".join(entry.code for name in _ORDER for entry in ENTRIES if entry.name == name)
_FIELDS = {b"content-security-policy", b"access-control-allow-origin", b"ratelimit"}
"""Fields by which an answer shows that it went through."""


@contextmanager
def _serving(code: str) -> Generator[Application]:
    """Boot `hello` behind a list of entries."""
    with project(0, {"v1/Hello/Get.py": HELLO}) as root:
        (root / "Middleware").mkdir()
        text = f"from treefold_http.middleware import *\nmiddlewares = [{code}]\n"
        (root / "Middleware" / "__init__.py").write_text(text)
        app = Application(root)
        app.boot()
        yield app
        app.threads.shutdown()


async def added(batch: Batch, entry: Entry, rounds: int) -> tuple[float, float]:
    """Return what an entry adds in microseconds of the machine of the bars, and as a ratio.

    Returns:
        The cost added, and how many times as long the request takes with it.
    """
    with _serving("") as plain, _serving(entry.code) as ours:
        for app in (plain, ours):
            await _alone(batch, app, count=2000)
        await batch(bare, replace(_CASE, count=2000))
        costs, ratios, times = list[float](), list[float](), list[float]()
        before = await _alone(batch, plain)
        for _ in range(rounds):
            base = await batch(bare, _CASE)
            spent = await _alone(batch, ours)
            after = await _alone(batch, plain)
            without = (before + after) / 2
            costs.append((spent - without) / base * _CASE.bare_table)
            ratios.append(spent / without)
            times.append(spent)
            before = after
    note_row(f"+ {entry.name}", times)
    return median(costs), median(ratios)


async def _alone(batch: Batch, app: Application, count: int = _CASE.count) -> float:
    """Run a batch while no other application runs; several in one process cost each a step."""
    async with app.lifespan():
        await batch(app, replace(_CASE, count=1))  # makes what the first request makes
        return await batch(app, replace(_CASE, count=count))


async def all_beside_peer(batch: Batch, rounds: int) -> tuple[float, float]:
    """Hold all six with the request line on against a peer that has the line alone.

    Returns:
        How many times as long as the peer a request takes, and the microseconds of the peer.
    """
    get_logger().setLevel("INFO")
    peer = await logging_peer()
    with _serving(ALL_SIX) as ours:
        await _check(batch, ours, _FIELDS)
        await _check(batch, peer, set())
        for app in (ours, peer):
            await batch(app, replace(_CASE, count=2000))
        spent, ratios = list[float](), list[float]()
        before = await batch(peer, _CASE)
        for _ in range(rounds):
            taken, after = await batch(ours, _CASE), await batch(peer, _CASE)
            ratios.append(2 * taken / (before + after))
            spent.append(after)
            before = after
    get_logger().setLevel("CRITICAL")
    return median(ratios), median(spent)


async def _check(batch: Batch, app: App, names: set[bytes]) -> None:
    """Refuse to measure what does not answer as it should."""
    messages: list[Any] = []

    async def keep(message: Any) -> None:
        messages.append(message)

    await batch(app, replace(_CASE, count=1), keep)
    start, body = messages[0], b"".join(message["body"] for message in messages[1:])
    missing = names - {name for name, _ in start["headers"]}
    if (start["status"], body, missing) != (200, b'{"message":"Hello"}', set()):
        raise RuntimeError(f"Answer {start!r} with {body!r} is not the one to measure")
