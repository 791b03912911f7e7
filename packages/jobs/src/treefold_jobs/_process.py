"""What jobs know of the process they are in: the log of the application, development, its loop.

Jobs import neither the application nor its log; their extension is handed both.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

QUEUE = "treefold"
"""Begins the names of all queues; that of code without an application."""
OUTSIDE = "-"
"""The request id outside of any request."""


class LogContext(Protocol):
    """The parts of the request log that extensions use."""

    @property
    def request_id(self) -> ContextVar[str]:
        """The id of the request that the current code serves."""
        ...

    def mask(self, value: Any) -> Any:
        """Return a copy of a structure without the values of sensitive keys."""
        ...

    def scrub(self, text: str) -> str:
        """Return a text without the secrets that are known by their form."""
        ...


@dataclass
class Process:
    """This process; the last application that was set up in it counts.

    Attributes:
        queue: the name under which its jobs wait: applications may have one database.
    """

    queue: str = QUEUE
    log: LogContext | None = None
    dev: bool = False
    loop: asyncio.AbstractEventLoop | None = None

    def request_id(self) -> str:
        """Return the id of the current request, or an empty text."""
        found = OUTSIDE if self.log is None else self.log.request_id.get()
        return "" if found == OUTSIDE else found

    def set_request_id(self, request_id: str) -> None:
        """Set the id that the log lines of the current context carry."""
        if self.log is not None and request_id:
            self.log.request_id.set(request_id)


def choose_queue_name(names: Any) -> str:
    """Return the queue of an application.

    A name that is that of a folder is left out: the next release may lie in another one, and must
    find the jobs of this one.

    Args:
        names: `app.names`, or None without them.
    """
    if names is None:
        return QUEUE
    own: str = names.own.rstrip(":")
    return f"{QUEUE}:{names.environment}" if names.is_folder else own


here = Process()
