"""One line of log for a process that has no file descriptor left to accept a connection with.

asyncio reports each attempt to accept with a traceback, thousands in a second; uvloop closes the
connections and reports nothing. Both go on by themselves once descriptors are free.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import time
from typing import Any

from treefold_logging import get_logger

if sys.platform != "win32":
    import resource

_EXHAUSTED = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_REPEAT_SECONDS = 60.0
"""Seconds after which a process that still has none says so again."""


class DescriptorWatch:
    """Notices that descriptors are exhausted, on any event loop."""

    def __init__(self) -> None:
        self._said_at: float | None = None

    def install_accept_error_handler(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the loop's reports of failed accepts; other reports go on as before."""
        former = loop.get_exception_handler()

        def handle_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if _is_failed_accept(context, error):
                self._log_shortage(error)
            elif former is not None:
                former(loop, context)
            else:
                loop.default_exception_handler(context)

        loop.set_exception_handler(handle_loop_error)

    def probe_free_descriptor(self) -> None:
        """Open and close a file, as accepting a connection would."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno in _EXHAUSTED:
                self._log_shortage(error)

    def _log_shortage(self, error: Any) -> None:
        now = time.monotonic()
        if not isinstance(error, OSError):
            return
        if self._said_at is None or now - self._said_at >= _REPEAT_SECONDS:
            self._said_at = now
            get_logger().error(
                "cannot accept connections: %s%s; raise the limit of the process (ulimit -n,"
                " LimitNOFILE)",
                error.strerror,
                _describe_descriptor_limit(),
            )


def _is_failed_accept(context: dict[str, Any], error: BaseException | None) -> bool:
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        return "socket" in context
    # asyncio tries again after a second for each failure, also when the server is closed meanwhile.
    return isinstance(error, ValueError) and "_start_serving" in context.get("message", "")


def _describe_descriptor_limit() -> str:
    if sys.platform == "win32":
        return ""
    return f" (at most {resource.getrlimit(resource.RLIMIT_NOFILE)[0]})"
