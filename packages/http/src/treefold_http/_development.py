"""The outermost layer with `dev=True`: what a developer is told of each request.

It lets extensions watch a request (`watch()` gives what ends it and says what was seen), and on a
terminal adds a short summary beside the request line, which itself never changes. Without
`dev=True` nothing of this is in any chain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from treefold_logging import get_logger, request_target

if TYPE_CHECKING:
    from treefold_http._request import Request
    from treefold_http._response import Response
    from treefold_http._types import CallNext

Watch = Callable[[], Callable[[], str]]

_COLOURS = {2: "32", 3: "36", 4: "33", 5: "31"}


def development_entries(extensions: Sequence[Any]) -> list[Any]:
    """Give the middleware that goes around all other, where there is something to tell."""
    watches = [extension.watch for extension in extensions if hasattr(extension, "watch")]
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    return [Development(watches, on_terminal=on_terminal)] if watches or on_terminal else []


class Development:
    """Watches each request to its very end, a stream included.

    Args:
        watches: start watching; each gives what ends it and returns what to say.
        on_terminal: whether somebody reads a summary.
    """

    def __init__(self, watches: Sequence[Watch], *, on_terminal: bool) -> None:
        self._watches = watches
        self._on_terminal = on_terminal

    async def http(self, request: Request, call_next: CallNext) -> Response:
        """Answer as `call_next` does; what is to be told is told when the request is over."""
        ends = [watch() for watch in self._watches]
        started = perf_counter()
        answered: list[Response] = []
        left = False

        def tell() -> None:
            notes = [note for end in reversed(ends) if (note := end())]
            if self._on_terminal:
                seconds = perf_counter() - started
                get_logger().info("%s", _summary(request, answered[0].status, seconds, notes))

        async def leave(error: BaseException | None) -> None:
            nonlocal left
            left = True
            if answered:
                tell()

        request.on_leave(leave)
        answered.append(await call_next(request))
        if left:  # it failed inside, and what it held was left before the answer was made
            tell()
        return answered[0]


def _summary(request: Request, status: int, seconds: float, notes: Sequence[str]) -> str:
    target = request_target(request.raw_path, b"", masked_segments=_masked(request))
    told = ", ".join([f"{seconds * 1000:.1f}ms", *notes])
    colour = _COLOURS.get(status // 100, "31")
    return f"\x1b[{colour}m{status}\x1b[0m {request.method} {target} \x1b[2m{told}\x1b[0m"


def _masked(request: Request) -> Sequence[int]:
    return request.plan.masked_in(request.raw_path) if request.plan is not None else ()
