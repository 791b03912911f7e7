"""A life of the project's code: from its startup hooks to its shutdown hooks.

A reload that starts the hooks over begins another life beside the one that serves. Each sees its
own modules and its own `app.state`, for as long as both are there. Which hooks run, and when, is
decided in `_starting` and `_lifespan`.
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
    """One life; its hooks, and the tasks and worker threads that they start, run in it.

    Args:
        app: the application.
        state: what `app.state` is in it.
        view: its modules, where others are everybody else's.

    Attributes:
        declared: what `providers.py` says in it, where the application has other providers.
    """

    def __init__(self, app: Application, state: State, view: View | None = None) -> None:
        self.app = app
        self.state = state
        self.view = view or View(app.root)
        self.declared: Mapping[Any, Any] | None = None
        self._copied: dict[str, Any] = {}

    def next(self, view: View, declared: Mapping[Any, Any]) -> Life:
        """Give the life that is to follow: its state begins as a copy."""
        life = Life(self.app, State(vars(self.state)), view)
        life.declared = declared
        life._copied = dict(vars(self.state))
        return life

    def catch_up(self, former: Life) -> None:
        """Take over what was set in the former life meanwhile, unless this one set it too."""
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
        """Have the rest of this context run in this life."""
        _lived.set(self)
        seen.set(self.view)

    @staticmethod
    def of(app: Application) -> Life | None:
        """Give the life of an application that this context runs in; None for whichever serves."""
        life = _lived.get()
        return life if life is not None and life.app is app else None
