"""Injection outside of requests: scripts, scheduled work, tests.

A scope replaces the connection of a request: generator dependencies are entered in it and exited
when it ends. The values of the application have scopes of their own, until the shutdown.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from treefold_http._injection.resolver import Injection, plan_call
from treefold_http._runtime.background import BackgroundTasks
from treefold_http._runtime.current_application import enter_application
from treefold_http._runtime.exit_callbacks import ExitCallback, run_exit_callbacks
from treefold_http._types.parameters import list_parameters
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

    def plan_values(
        self, fn: AnyCallable, *, given: Collection[str] = ()
    ) -> Callable[[], Awaitable[dict[str, Any]]] | None:
        """Plan the injected parameters of a function that other code calls.

        Args:
            given: the parameters that the caller passes.

        Returns:
            A function that returns the values by name, without those of parameters whose own
            default is used; None if there are none.

        Raises:
            InjectionError: as `call`.
        """
        collector = _make_collector(fn, given)
        run, contract = plan_call(collector, self._injection, kind="nothing")
        return partial(cast("Any", run), self) if contract.arguments else None

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


def _make_collector(fn: AnyCallable, given: Collection[str]) -> AnyCallable:
    """Return a function with the parameters of `fn` that are not given, which returns them."""
    kept = [one for one in list_parameters(fn) if one.name not in given]

    @functools.wraps(fn)  # annotations are resolved in the module of `fn`
    async def collect_values(**values: Any) -> dict[str, Any]:
        return values

    keyword_only = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in kept]
    cast("Any", collect_values).__signature__ = inspect.Signature(keyword_only)
    return collect_values
