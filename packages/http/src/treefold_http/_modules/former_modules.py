"""The modules of a project as they were before a reload, for the code that runs during it.

While a thread imports modules again, `sys.modules` lacks the former ones, and module locks may be
held for long. Requests go on in other threads, on the former modules: their imports are answered
from here. A module that is imported there for the first time may outlast the reload; what it
imports further is still answered from here, so that it is of one generation.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

_thread = threading.local()


class FormerModules:
    """What imports outside the importing thread find.

    Args:
        modules: all modules of the project before the reload, by dotted name.
    """

    def __init__(self, modules: Mapping[str, ModuleType]) -> None:
        self._modules = modules
        self._thread = threading.get_ident()

    def serves_this_thread(self) -> bool:
        """Return True in any thread but the importing one."""
        return threading.get_ident() != self._thread

    def find_import_result(
        self, name: str, globals: Mapping[str, Any] | None, fromlist: Sequence[str], level: int
    ) -> ModuleType | None:
        """Return what `__import__` returns for the same arguments; None if it must import."""
        if level:
            package = (globals or {}).get("__package__") or ""
            name = importlib.util.resolve_name("." * level + name, package)
        module = self._modules.get(name)
        if module is None or not fromlist:
            # `import a.b` binds `a`
            return None if module is None else self._modules.get(name.partition(".")[0])
        known = all(hasattr(module, each) or each == "*" for each in fromlist)
        return module if known else None

    def find_module(self, name: str) -> ModuleType | None:
        """Return a module by its dotted name, as `importlib.import_module`."""
        return self._modules.get(name)

    def import_with_former_modules(
        self, function: Callable[..., ModuleType], *args: Any
    ) -> ModuleType:
        """Import what is not found here; `find_modules_of_thread` returns these meanwhile."""
        outer, _thread.former = find_modules_of_thread(), self
        try:
            return function(*args)
        finally:
            _thread.former = outer


def find_modules_of_thread() -> FormerModules | None:
    """Return the modules of the generation that an import in this thread began with."""
    return getattr(_thread, "former", None)
