"""The outermost middleware with `dev=True`: notes on each request for the developer.

Extensions may watch a request: `watch()` starts it and returns a function that ends it and returns
a note. On a terminal a short summary is printed beside the request line, which itself never
changes. Without `dev=True` nothing of this is in any chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from treefold_http._local_hosts import LocalHosts
from treefold_logging import log_summary, request_target, shows_summaries

if TYPE_CHECKING:
    from treefold_http._request import Request
    from treefold_http._response import Response
    from treefold_http._types import CallNext

Watch = Callable[[], Callable[[], str]]


class Write(Protocol):
    """Writes a summary; `treefold_logging.log_summary` is one."""

    def __call__(
        self, method: str, target: str, status: int, *, seconds: float, notes: Sequence[str]
    ) -> None: ...


def development_entries(extensions: Sequence[Any]) -> list[Any]:
    """Return the outermost middleware, if extensions watch requests or summaries are shown."""
    watches = [extension.watch for extension in extensions if hasattr(extension, "watch")]
    write = log_summary if shows_summaries() else None
    return [Development(watches, write=write)] if watches or write else []


def local_hosts(middlewares: Sequence[Any]) -> list[Any]:
    """Return the middleware that refuses foreign host names, unless the project has its own."""
    from treefold_http.middleware import TrustedHosts

    return [] if any(isinstance(entry, TrustedHosts) for entry in middlewares) else [LocalHosts()]


class Development:
    """Watches each request to its very end, a stream included.

    Args:
        watches: functions that start watching and return one that ends it and returns a note.
        write: writes the summary; None if no terminal shows it.
    """

    def __init__(self, watches: Sequence[Watch], *, write: Write | None) -> None:
        self._watches = watches
        self._write = write

    async def http(self, request: Request, call_next: CallNext) -> Response:
        """Return the response of `call_next`; write the summary when the request is over."""
        ends = [watch() for watch in self._watches]
        started = perf_counter()
        answered: list[Response] = []
        left = False

        def tell() -> None:
            notes = [note for end in reversed(ends) if (note := end())]
            if self._write is not None:
                seconds = perf_counter() - started
                masked = request.app.masked_in(request)
                target = request_target(request.raw_path, b"", masked_segments=masked)
                status = answered[0].status
                self._write(request.method, target, status, seconds=seconds, notes=notes)

        async def leave(error: BaseException | None) -> None:
            nonlocal left
            left = True
            if answered:
                tell()

        request.on_leave(leave)
        answered.append(await call_next(request))
        if left:  # it failed inside, so the exit callbacks ran before the response was made
            tell()
        return answered[0]
