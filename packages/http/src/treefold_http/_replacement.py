"""Modules taken out of `sys.modules`, to be imported anew; and put back where that fails.

The new ones are new objects: code that runs keeps the old ones, with everything in them. Which
modules are replaced is decided in `_reload`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from importlib.util import cache_from_source
from types import CodeType, ModuleType, TracebackType
from typing import Any

from treefold_http._modules import ModuleSpace, SourceLoader, adopt, show


class FreshLoader(SourceLoader):
    """Loads from the source alone: bytecode knows the time of its source in whole seconds only.

    Two saves in one second with the same size would be one to it. The bytecode that is there is
    removed for the same reason: the next start would take it for the new source's.
    """

    def get_code(self, fullname: str) -> CodeType | None:
        """Compile the source, whatever bytecode there is."""
        path = self.get_filename(fullname)
        code = self.source_to_code(self.get_data(path), path)
        with suppress(OSError, NotImplementedError):
            os.unlink(cache_from_source(path))
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run a module; a package finds those of its modules that were not replaced."""
        if hasattr(module, "__path__"):
            adopt(module)
        super().exec_module(module)


class Replacement:
    """Takes modules of a root out for as long as they are imported anew; a context manager.

    An exception inside puts everything back as it was.

    Args:
        space: the modules of the root, which is the current one and stays it.
        names: the modules to replace.

    Attributes:
        former: those that were there.
    """

    def __init__(self, space: ModuleSpace, names: Iterable[str]) -> None:
        self._before = space.loaded()
        self._space = space
        self.former = {name: self._before[name] for name in names if name in self._before}
        self._hidden: list[_Hidden] = []

    def __enter__(self) -> Replacement:
        for name, module in self.former.items():
            del sys.modules[name]
            package, _, leaf = name.rpartition(".")
            parent = self._before.get(package)
            if parent is not None and package not in self.former:
                self._hidden.append(_Hidden(parent, leaf, module))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            for name in self._space.loaded():
                if name not in self._before:
                    del sys.modules[name]
            self.restore(self.former, anyway=True)
        for hidden in reversed(self._hidden):
            hidden.end()

    def restore(self, names: Iterable[str], *, anyway: bool = False) -> set[str]:
        """Put former modules back where no new one took their place; give their names.

        Args:
            anyway: in the place of new ones, too.
        """
        back = {name for name in names if name in self.former}
        back = {name for name in back if anyway or name not in sys.modules}
        for name in back:
            sys.modules[name] = self.former[name]
            package, _, leaf = name.rpartition(".")
            if package in sys.modules:
                setattr(sys.modules[package], leaf, self.former[name])
        return back

    def step_aside(self) -> dict[str, ModuleType | None]:
        """Put every former module back, for now; give the new ones, and None for what is gone.

        Whoever runs goes on with what it had; the new ones are for a `View`, and for `follow`.
        """
        loaded = self._space.loaded()
        fresh: dict[str, ModuleType | None] = dict.fromkeys(self.former.keys() - loaded.keys())
        fresh |= {n: module for n, module in loaded.items() if self._before.get(n) is not module}
        self._take_out(fresh)
        self.restore(self.former, anyway=True)
        return fresh

    def follow(self, fresh: Mapping[str, ModuleType | None]) -> dict[str, ModuleType | None]:
        """Let new modules that had stepped aside take over; give what they replace.

        What former code has imported for the first time since then is imported anew.
        """
        former = {name: self.former.get(name) for name in fresh}
        meanwhile = self._space.loaded().keys() - self._before.keys()
        self._take_out({*fresh, *meanwhile})
        show(fresh)
        for name, module in fresh.items():
            package, _, leaf = name.rpartition(".")
            if module is not None and package in sys.modules:
                setattr(sys.modules[package], leaf, module)
        return former

    def _take_out(self, names: Collection[str]) -> None:
        """Take modules out of `sys.modules`, and out of those packages that stay."""
        for name in names:
            sys.modules.pop(name, None)
            package, _, leaf = name.rpartition(".")
            if package in self._before and package not in self.former:
                vars(self._before[package]).pop(leaf, None)


class _Hidden:
    """A module as an attribute of its package: hidden from who imports, there for everybody else.

    `from Services import mail` takes the attribute before it looks for a module, and would get the
    old one; a thread that runs old code goes on to use `Services.mail`.
    """

    def __init__(self, package: ModuleType, leaf: str, module: ModuleType) -> None:
        self._names: dict[str, Any] = vars(package)
        self._leaf = leaf
        self._thread = threading.get_ident()
        self._module = module
        self._next = self._names.get("__getattr__")
        self._names["__getattr__"] = self._get
        if self._names.get(leaf) is module:
            del self._names[leaf]

    def _get(self, name: str) -> Any:
        if name == self._leaf and threading.get_ident() != self._thread:
            return self._module
        if self._next is not None:
            return self._next(name)
        raise AttributeError(f"module {self._names['__name__']!r} has no attribute {name!r}")

    def end(self) -> None:
        if self._next is None:
            del self._names["__getattr__"]
        else:
            self._names["__getattr__"] = self._next
