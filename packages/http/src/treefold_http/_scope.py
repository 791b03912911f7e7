"""Injection outside of requests: scripts, scheduled work, tests.

A scope stands where a connection stands in a request: generators are entered in it and left when it
ends. The application has one of its own, which lasts as long as it does.
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
    """A stretch of work with injected values: `async with app.scope() as s: await s.call(fn)`.

    Attributes:
        app: the application.
        background: work to start when the scope ends.
    """

    def __init__(self, app: Application) -> None:
        self.app = app
        self.background = BackgroundTasks()
        self._leaves: list[Leave] = []

    def on_leave(self, leave: Leave) -> None:
        """Have `leave` awaited when the scope ends, with the exception it failed with or None."""
        self._leaves.append(leave)

    async def call(self, fn: Callable[..., Any]) -> Any:
        """Call a function with its parameters provided as a handler's are.

        Raises:
            InjectionError: for a parameter that needs a request, or that nothing provides.
        """
        run: Callable[[Any], Any] = plan_call(fn, self.app.injection, kind="nothing")
        return await run(self)

    async def close(self, error: BaseException | None = None) -> None:
        """Leave what was entered, last first.

        Raises:
            BaseException: what a part after `yield` raised, when the scope itself had not failed.
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
