"""Injection outside of requests: scripts, scheduled work, tests.

A scope replaces the connection of a request: generator dependencies are entered in it and exited
when it ends. The values of the application have scopes of their own, until the shutdown.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from treefold_http._background import BackgroundTasks
from treefold_http._injection import plan_call
from treefold_http._teardown import Leave, leave_all

if TYPE_CHECKING:
    from treefold_http._application import Application


class Scope:
    """A context for calls with injected values: `async with app.scope() as s: await s.call(fn)`.

    Attributes:
        app: the application.
        background: tasks to start when the scope ends.
    """

    def __init__(self, app: Application) -> None:
        self.app = app
        self.background = BackgroundTasks()
        self._leaves: list[Leave] = []

    def on_leave(self, leave: Leave) -> None:
        """Register an exit callback; it is awaited with the exception of the scope or None."""
        self._leaves.append(leave)

    async def call(self, fn: Callable[..., Any]) -> Any:
        """Call a function with injected parameters, like a handler.

        Raises:
            InjectionError: for a parameter that needs a request or has no provider.
        """
        run: Callable[[Any], Any] = plan_call(fn, self.app.injection, kind="nothing")
        return await run(self)

    async def close(self, error: BaseException | None = None) -> None:
        """Exit the generator dependencies, last first.

        Raises:
            BaseException: the exception of a part after `yield`, other than that of the scope.
        """
        leaves, self._leaves = self._leaves, []
        outcome = await leave_all(leaves, error)
        if outcome is not None and outcome is not error:
            raise outcome
        self.app.background.start(self.background)

    async def __aenter__(self) -> Scope:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(error)
