"""Injection outside of requests: scripts, scheduled work, tests.

A scope replaces the connection of a request: generator dependencies are entered in it and exited
when it ends. The values of the application have scopes of their own, until the shutdown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from treefold_http._injection.resolver import Injection, plan_call
from treefold_http._runtime.background import BackgroundTasks
from treefold_http._runtime.current_application import enter_application
from treefold_http._runtime.exit_callbacks import ExitCallback, run_exit_callbacks
from treefold_http._wire.aliases import AnyCallable

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime


class InjectionContext:
    """A context for calls with injected values: `async with app.scope() as s: await s.call(fn)`.

    Attributes:
        app: the application.
        background: tasks to start when the scope ends without an error.
    """

    def __init__(self, app: Runtime, injection: Injection) -> None:
        self.app = app
        self._injection = injection
        self.background = BackgroundTasks()
        self._exit_callbacks: list[ExitCallback] = []

    def on_exit(self, leave: ExitCallback) -> None:
        """Register an exit callback; it is awaited with the exception of the scope or None."""
        self._exit_callbacks.append(leave)

    async def call(self, fn: AnyCallable) -> Any:
        """Call a function with injected parameters, like a handler.

        Raises:
            InjectionError: for a parameter that needs a request or has no provider.
        """
        run: Callable[[Any], Any] = plan_call(fn, self._injection, kind="nothing")[0]
        return await run(self)

    async def close(self, error: BaseException | None = None) -> None:
        """Exit the generator dependencies, last first.

        Raises:
            BaseException: the exception of a part after `yield`, other than that of the scope.
        """
        exit_callbacks, self._exit_callbacks = self._exit_callbacks, []
        outcome = await run_exit_callbacks(exit_callbacks, error)
        # the exception of the scope itself goes on by itself after `__aexit__`
        if outcome is not None and outcome is not error:
            raise outcome
        if error is None:
            self.app.background.start_work(self.background)

    async def __aenter__(self) -> InjectionContext:
        self._entering = enter_application(self.app)
        self._entering.__enter__()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            await self.close(error)
        finally:
            self._entering.__exit__(None, None, None)
