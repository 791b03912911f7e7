"""Startup hooks that rerun in a reload, while the former code serves.

They run in a life of their own. The reload that began them acts on the outcome: the new site
replaces the former, or is discarded. Nothing here replaces a module or a site.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias

from treefold_http._background import is_async
from treefold_http._boot import Site
from treefold_http._life import Life
from treefold_http._lifespan import hook_name
from treefold_http._teardown import must_go_on
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._application import Application

Hooks: TypeAlias = Sequence[Callable[..., Any]]

_PATIENCE = 2.0
"""Seconds for abandoned hooks to end."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A startup hook that failed.

    Attributes:
        hook: its name.
        error: its exception.
    """

    hook: str
    error: BaseException

    @property
    def is_taken(self) -> bool:
        """True if it needs a port or a lock that the running code holds."""
        error = self.error
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        return taken or isinstance(error, BlockingIOError)


class Starting:
    """The startup of a reloaded site: its new startup hooks run before it serves.

    Args:
        app: the started application.
        former: the site that serves.
        site: the site to start.
        life: the life of the new site.

    Attributes:
        hooks: the startup hooks to run.
        ends: the shutdown hooks of the former site, to run after its last request.
        failure: the first failure of a hook, once they have run.
    """

    def __init__(self, app: Application, former: Site, site: Site, life: Life) -> None:
        self.app, self.site, self.life = app, site, life
        self.hooks = other_hooks(site.on_startup, former.on_startup)
        self.ends = other_hooks(former.on_shutdown, site.on_shutdown)
        self.failure: Failure | None = None
        self._undone_by = other_hooks(site.on_shutdown, former.on_shutdown)
        self._is_through = False
        self._task: asyncio.Task[None] | None = None

    @property
    def names(self) -> list[str]:
        """The names of the startup hooks."""
        return [hook_name(hook) for hook in self.hooks]

    def begin(self) -> asyncio.Task[None]:
        """Run the startup hooks in a separate task, which never fails."""
        self._task = asyncio.create_task(self._run())
        return self._task

    async def abandon(self) -> None:
        """Cancel the running hook and undo the completed ones; do not wait for a hanging hook."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task], timeout=2 * _PATIENCE)
        if not self._task.done():
            get_logger().warning("startup hooks that do not end are left alone")
        elif not self._task.cancelled() and self.failure is None:
            await asyncio.create_task(self._undo())  # all hooks had completed

    async def _undo(self) -> None:
        await self.app.lifespan.end_hooks(self._undone_by, self.life)

    async def _run(self) -> None:
        self.life.enter()
        hook: Any = None
        try:
            for hook in self.hooks:
                await self._call(hook)
                self._is_through = True
        except BaseException as error:  # the former site continues to serve in any case
            if self._is_through:
                await self._undo()
            if must_go_on(error):
                raise
            self.failure = Failure(hook_name(hook), error)

    async def _call(self, hook: Callable[..., Any]) -> None:
        run = self.app.lifespan.run_startup_hook
        if is_async(hook):
            await run(hook)
            return
        ended, loop = asyncio.Event(), asyncio.get_running_loop()

        @wraps(hook)
        def noting(*args: Any) -> Any:
            try:
                return hook(*args)
            finally:
                loop.call_soon_threadsafe(ended.set)

        try:
            await run(noting)
        except asyncio.CancelledError:
            # Its thread continues: a resource that it opens must be closed before the next run.
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await ended.wait()
                self._is_through = True
            raise


def other_hooks(hooks: Hooks, known: Hooks) -> Hooks:
    """Return the hooks that are not among the known ones."""
    return [hook for hook in hooks if not any(_is_same(hook, one) for one in known)]


def _is_same(hook: Any, other: Any) -> bool:
    if isinstance(hook, MethodType) and isinstance(other, MethodType):
        return hook.__self__ is other.__self__ and hook.__func__ is other.__func__
    return hook is other
