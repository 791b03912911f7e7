"""The outermost middleware with `dev=True`: notes on each request, and local hosts only.

Extensions may watch a request: `watch()` starts it and returns a function that ends it and returns
a note. On a terminal a short summary is printed beside the request line, which itself never
changes. Without `dev=True` nothing of this is in any chain.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from treefold_http._chains.middleware_chain import call_with_end_callback
from treefold_http._headers.host_names import split_host
from treefold_http._runtime.unhandled import is_from_test_client
from treefold_http._wire.errors import BadRequest
from treefold_logging import log_summary, request_target, shows_summaries

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._requests.request import Request
    from treefold_http._responses.endpoints import CallNext
    from treefold_http._responses.response import Response

Watch = Callable[[], Callable[[], str]]


class Write(Protocol):
    """Writes a summary; `treefold_logging.log_summary` is one."""

    def __call__(
        self, method: str, target: str, status: int, *, seconds: float, notes: Sequence[str]
    ) -> None: ...


def build_development_entries(extensions: Sequence[Any]) -> list[Any]:
    """Return the outermost middleware, if extensions watch requests or summaries are shown."""
    watches = [extension.watch for extension in extensions if hasattr(extension, "watch")]
    write = log_summary if shows_summaries() else None
    return [Development(watches, write=write)] if watches or write else []


def build_missing_host_check(middlewares: Sequence[Any]) -> list[Any]:
    """Return the middleware that refuses foreign host names, unless the project has its own."""
    checked = any(getattr(entry, "checks_hosts", None) is True for entry in middlewares)
    return [] if checked else [LocalHosts()]


class Development:
    """Watches each request to its very end, a stream included.

    Args:
        watches: functions that start watching and return one that ends it and returns a note.
        write: writes the summary; None if no terminal shows it.
    """

    is_for_requests = True

    def __init__(self, watches: Sequence[Watch], *, write: Write | None) -> None:
        self._watches = watches
        self._write = write

    async def http(self, request: Request, call_next: CallNext) -> Response:
        """Return the response of `call_next`; write the summary when the request is over."""
        ends = [watch() for watch in self._watches]
        started = perf_counter()

        def log_summary(status: int | None) -> None:
            if status is None:
                return
            # in reverse, as each watch began inside of the one before
            notes = [note for end in reversed(ends) if (note := end())]
            if self._write is not None:
                seconds = perf_counter() - started
                masked = request.find_masked_segments()
                target = request_target(request.raw_path, b"", masked_segments=masked)
                self._write(request.method, target, status, seconds=seconds, notes=notes)

        return await call_with_end_callback(request, call_next, log_summary)


_TEST = "testserver"


class LocalHosts:
    """The outermost middleware with `dev=True`, if the project has no `TrustedHosts` (S-117).

    A foreign web page can resolve its own host name to this machine (DNS rebinding) and read the
    responses of a development server. Production lists its hosts with `TrustedHosts`; so may a
    project that is developed under a public name, and then this middleware is not used.

    Args:
        own: the host name of this machine; it is served whole, and with `.local` behind its first
            label. By default the name that the operating system gives.
    """

    checks_hosts = True

    def __init__(self, own: str | None = None) -> None:
        own = (socket.gethostname() if own is None else own).lower()
        self._own = {own, f"{own.partition('.')[0]}.local"} if own else set[str]()

    def before(self, connection: Connection) -> None:
        """Refuse a request or a socket whose host is neither a local name nor an address."""
        name, _ = split_host(connection.host)
        # only in a test: any page could send this name to a development server
        if name == _TEST and is_from_test_client(connection.scope):
            return
        if name not in self._own and not _is_local_or_address(name):
            raise BadRequest(
                "In development the names of this machine and addresses are answered, not"
                f" {name!r}; use 'localhost', or list it in TrustedHosts in Middleware/__init__.py"
            )


def _is_local_or_address(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
