"""What each shipped middleware adds to a request that it lets through, in process.

The same handler is served without and with one entry in `Middleware/`; short batches take turns,
each of the middleware between two without it. The difference counts, as a part of what `bare` takes
in the same round.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from statistics import median

from http_cases import HEADERS, HELLO, App, Case, bare, project

from treefold_http import Application

Batch = Callable[[App, Case], Awaitable[float]]

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


async def added(batch: Batch, entry: Entry, rounds: int) -> tuple[float, float]:
    """Return what an entry adds in microseconds of the machine of the bars, and as a ratio.

    Returns:
        The cost added, and how many times as long the request takes with it.
    """
    code = f"from treefold_http.middleware import *\nmiddlewares = [{entry.code}]\n"
    tree = {"v1/Hello/Get.py": HELLO}
    with project(0, tree) as plain_root, project(0, tree) as root:
        (root / "Middleware").mkdir()
        (root / "Middleware" / "__init__.py").write_text(code)
        plain, ours = Application(plain_root), Application(root)
        plain.boot()
        ours.boot()
        for app in (plain, ours, bare):
            await batch(app, replace(_CASE, count=2000))
        costs, ratios = list[float](), list[float]()
        before = await batch(plain, _CASE)
        for _ in range(rounds):
            base = await batch(bare, _CASE)
            spent = await batch(ours, _CASE)
            after = await batch(plain, _CASE)
            without = (before + after) / 2
            costs.append((spent - without) / base * _CASE.bare_table)
            ratios.append(spent / without)
            before = after
        for app in (plain, ours):
            app.threads.shutdown()
    return median(costs), median(ratios)
