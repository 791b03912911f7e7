"""What jobs know of the process they are in: the log of the application, development, its loop.

Jobs import neither the application nor its log; their extension is handed both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

PlanValues: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
"""Resolves the injected parameters of a function, by name."""

QUEUE = "treefold"
"""Begins the names of all queues; that of code without an application."""
OUTSIDE = "-"
"""The request id outside of any request."""


class InjectionScope(Protocol):
    """A scope of an application, in which dependencies are entered and left."""

    async def __aenter__(self) -> InjectionScope: ...

    async def __aexit__(self, kind: Any, error: Any, trace: Any, /) -> None: ...

    def plan_values(
        self, fn: Callable[..., Any], *, given: Collection[str] = ()
    ) -> PlanValues | None:
        """Plan the parameters of a function that are not given; None if nothing provides any."""
        ...


class WorkerThreads(Protocol):
    """The threads of an application for plain functions.

    Attributes:
        limit: how many there are at most.
    """

    limit: int

    async def run(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Call a function in a thread, which the end of the process does not wait for."""
        ...

    def allow_one_more(self) -> AbstractContextManager[None]:
        """Raise the limit for a block in which one of them waits for the event loop."""
        ...


class Lifespan(Protocol):
    """Startup and shutdown of an application, its hooks and extensions included.

    Attributes:
        started: True between the two.
    """

    started: bool

    def __call__(self) -> AbstractAsyncContextManager[Any]:
        """Start the application for a block."""
        ...


class Settings(Protocol):
    """The settings that jobs read."""

    @property
    def job_log_days(self) -> int:
        """How many days the steps of jobs that have ended are kept."""
        ...


class Application(Protocol):
    """The parts of a treefold application that jobs use."""

    @property
    def settings(self) -> Settings:
        """Its settings."""
        ...

    @property
    def lifespan(self) -> Lifespan:
        """Its startup and shutdown."""
        ...

    @property
    def threads(self) -> WorkerThreads:
        """Its threads for plain functions."""
        ...

    def scope(self) -> InjectionScope:
        """Return a scope for injection outside of requests."""
        ...


class Outbox(Protocol):
    """Holds jobs in place of running them."""

    def add(self, call: Any) -> None:
        """Hold a call."""
        ...


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
        app: the application, which provides parameters; None for the ORM alone.
        outbox: takes all jobs, in a test that looks at them.
    """

    queue: str = QUEUE
    log: LogContext | None = None
    dev: bool = False
    loop: asyncio.AbstractEventLoop | None = None
    app: Application | None = None
    outbox: Outbox | None = None

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
