"""Which application the running code belongs to, for objects that a module makes for itself.

A cache or a `Rooms` of a module is found by handlers, hooks, jobs and scripts alike, and keeps what
it knows apart for each application. In a process with one application that one is meant, and a
request does nothing for it. While several run, each request enters its own.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Protocol

from treefold_http._runtime.name_space import NameSpace, load_project_namespace

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime


class Running(Protocol):
    """The lifespan of an application that has started."""

    @property
    def app(self) -> Runtime:
        """Its application."""
        ...

    @property
    def is_running(self) -> bool:
        """True until it stops, or its event loop is closed without a stop."""
        ...

    def update_serving_path(self) -> None:
        """Decide again whether a request can be served without a step before it."""
        ...


entered: ContextVar[Runtime | None] = ContextVar("treefold_application", default=None)
_running: list[weakref.ref[Running]] = []
_latest: list[weakref.ref[Runtime]] = []


@contextmanager
def enter_application(app: Runtime) -> Generator[None]:
    """Run a block as code of an application, threads and tasks that it starts included."""
    entry = entered.set(app)
    try:
        yield
    finally:
        leave_application(entry)


def leave_application(entered_token: Token[Runtime | None]) -> None:
    """Return to the application that was current before the `entered.set` of the token."""
    try:
        # Not set to None: every later request would pay for one more variable of its context.
        entered.reset(entered_token)
    except ValueError:  # a generator or a request that is closed from another context
        entered.set(None if entered_token.old_value is Token.MISSING else entered_token.old_value)


def set_latest_application(app: Runtime) -> None:
    """Note the application that was made last: without another one that runs it is current."""
    _latest[:] = [weakref.ref(app)]


def add_running_application(lifespan: Running) -> None:
    """Note a started application."""
    _forget_stopped_applications(also_forget=lifespan)
    _running.append(weakref.ref(lifespan))
    _update_serving_paths()


def remove_running_application(lifespan: Running) -> None:
    """Forget an application that stops."""
    _forget_stopped_applications(also_forget=lifespan)
    _update_serving_paths()


def has_several_applications() -> bool:
    """Return True while several applications run in this process."""
    return len(_running) > 1


def current_application() -> Runtime | None:
    """Return the application that the running code belongs to; None without any.

    Outside of requests, hooks and scopes it is the one that runs, or was made last.

    Raises:
        RuntimeError: outside of them, while applications of different names run.
    """
    if (app := entered.get()) is not None:
        return app
    if running := list_running_applications():
        if len({app.names for app in running}) > 1:
            raise RuntimeError(
                "Several applications run in this process, and this code belongs to none of them;"
                " run it inside of `async with app.scope():`"
            )
        return running[-1]
    return next((app for ref in _latest if (app := ref()) is not None), None)


def find_current_names() -> NameSpace:
    """Return the names of the current application, or of the project of a script.

    Raises:
        RuntimeError: as `current_application`.
        TreefoldError: there is no application and no project.
    """
    app = current_application()
    return load_project_namespace() if app is None else app.names


def list_running_applications() -> list[Runtime]:
    """Return the applications that have started in this process, and have not stopped."""
    found = (ref() for ref in _running)
    return [lifespan.app for lifespan in found if lifespan is not None and lifespan.is_running]


def _forget_stopped_applications(*, also_forget: Running) -> None:
    kept = [(ref, lifespan) for ref in _running if (lifespan := ref()) is not None]
    _running[:] = [ref for ref, one in kept if one.is_running and one is not also_forget]


def _update_serving_paths() -> None:
    for ref in _running:
        if (lifespan := ref()) is not None:
            lifespan.update_serving_path()
