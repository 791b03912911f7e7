"""`Runtime`: the part of an application that requests, responses and middleware use.

Modules name this protocol in place of the class `Application`, so that no room depends on the
module that composes all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from treefold_http._wire.aliases import AnyCallable

if TYPE_CHECKING:
    from treefold_http._runtime.background import BackgroundOwner
    from treefold_http._runtime.disconnect_watcher import DisconnectWatcher
    from treefold_http._runtime.name_space import NameSpace
    from treefold_http._runtime.settings import Settings
    from treefold_http._runtime.threads import WorkerThreads
    from treefold_http._wire.datastructures import State
    from treefold_router import Route, RouteTable


Role: TypeAlias = Literal["serve", "worker", "command", "test"]
"""The process of an application: a server, a worker of jobs, a command of the tool, a test run."""


class Runtime(Protocol):
    """The application that serves a connection.

    Attributes:
        root: the application root, the folder that holds `Api/`.
        dev: True in development.
        role: the kind of its process.
        state: attributes of the project, set by its startup hooks.
        threads: worker threads for plain functions.
        background: runs background tasks.
        disconnects: watches for disconnects during streams.
    """

    root: Path
    dev: bool
    role: Role
    state: State
    threads: WorkerThreads
    background: BackgroundOwner
    disconnects: DisconnectWatcher

    @property
    def overrides(self) -> Mapping[AnyCallable, AnyCallable]:
        """Dependencies and their replacements, in tests."""
        ...

    @property
    def has_docs(self) -> bool:
        """True if the OpenAPI documents and docs are served."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings of the application."""
        ...

    @property
    def names(self) -> NameSpace:
        """Its names in Redis."""
        ...

    @property
    def stopping(self) -> asyncio.Event:
        """Set at shutdown; long-lived streams wait on it."""
        ...

    @property
    def table(self) -> RouteTable:
        """The route table."""
        ...

    @property
    def default_version(self) -> str | None:
        """The version that serves a path without one; None for no version."""
        ...

    @property
    def extensions(self) -> Sequence[Any]:
        """The extensions: installed ones, then those of `extensions.py`."""
        ...

    @property
    def installed(self) -> Sequence[Any]:
        """The extensions of installed distributions."""
        ...

    async def run_in_thread(self, function: AnyCallable, /, *args: Any, **kwargs: Any) -> Any:
        """Call a plain function in a worker thread; await its result here if it is awaitable."""
        ...

    async def render(self, error: BaseException, request: Any) -> Any:
        """Return the response for an exception of a request."""
        ...

    def find_route(self, path: bytes | str) -> Route | None:
        """Return a route at a path, of any method; None without one, or before the boot."""
        ...

    def find_masked_segments(self, raw_path: bytes, root_path: str) -> tuple[int, ...]:
        """Return the indexes of path segments to mask in logs, for a path without a plan."""
        ...
