"""A life: one generation of the project's code, from its startup hooks to its shutdown hooks.

A reload that reruns the hooks begins a second life beside the one that serves. While both exist,
each sees its own modules and its own `app.state`. `_starting` and `_lifespan` decide which hooks
run, and when.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from treefold_http._datastructures import State
from treefold_http._modules import View, seen

if TYPE_CHECKING:
    from treefold_http._application import Application

_lived: ContextVar[Life | None] = ContextVar("treefold_life", default=None)


class Life:
    """One generation of the code; its hooks, and the tasks and threads they start, run in it.

    Args:
        app: the application.
        state: the value of `app.state` in it.
        view: its modules, if they differ from those in `sys.modules`.

    Attributes:
        declared: its providers of `providers.py`, if they differ from the application's.
    """

    def __init__(self, app: Application, state: State, view: View | None = None) -> None:
        self.app = app
        self.state = state
        self.view = view or View(app.root)
        self.declared: Mapping[Any, Any] | None = None
        self._copied: dict[str, Any] = {}

    def next(self, view: View, declared: Mapping[Any, Any]) -> Life:
        """Return the next life; its state begins as a copy of this one's."""
        life = Life(self.app, State(vars(self.state)), view)
        life.declared = declared
        life._copied = dict(vars(self.state))
        return life

    def catch_up(self, former: Life) -> None:
        """Copy the state that the former life changed since `next`, unless this one changed it."""
        missing = object()
        own, copied, now = vars(self.state), self._copied, vars(former.state)
        for name in {*copied, *now}:
            before = copied.get(name, missing)
            if own.get(name, missing) is not before or now.get(name, missing) is before:
                continue
            if name in now:
                own[name] = now[name]
            else:
                del own[name]
        self._copied = {}

    def enter(self) -> None:
        """Make this the current life for the rest of this context."""
        _lived.set(self)
        seen.set(self.view)

    @staticmethod
    def of(app: Application) -> Life | None:
        """Return the application's life of this context; None outside of any life's hooks."""
        life = _lived.get()
        return life if life is not None and life.app is app else None
