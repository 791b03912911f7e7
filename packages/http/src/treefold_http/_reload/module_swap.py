"""Remove modules from `sys.modules` for a new import; put them back if it fails.

The new modules are new objects: running code keeps the old ones and their contents. `reloader`
decides which modules are swapped.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from types import CodeType, ModuleType
from typing import Any

from treefold_http._modules.former_modules import FormerModules, find_modules_of_thread
from treefold_http._modules.modules import ModuleSpace, attach_submodules, remove_module
from treefold_http._modules.source_loader import SourceLoader
from treefold_http._reload.search_path import remove_bytecode


class SourceOnlyLoader(SourceLoader):
    """Loads from source only: bytecode records the time of its source in whole seconds.

    A second save within one second, of the same size, would not be noticed. Existing bytecode is
    removed for the same reason: the next start would take it as that of the new source.
    """

    def __init__(self, name: str, path: str, space: ModuleSpace) -> None:
        super().__init__(name, path, space)
        self._text: bytes | None = None

    def read_executed_source(self) -> bytes | None:
        """Return the source that was compiled, even if the file has changed since."""
        return self._text

    def get_code(self, fullname: str) -> CodeType | None:
        """Compile the source and remove its bytecode."""
        path = self.get_filename(fullname)
        text = self._text = self.get_data(path)
        code = self.space.versions.share_code(path, text, lambda: self.source_to_code(text, path))
        remove_bytecode(path)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run a module; a package first gets its submodules that were not replaced."""
        former = find_modules_of_thread() or self.space.former
        if former is not None and former.serves_this_thread():
            # loaded by a request during the swap: it binds former modules, so the swap unloads it
            self.space.late.add(module.__name__)
        if hasattr(module, "__path__"):
            attach_submodules(module)
        super().exec_module(module)


class ModuleSwap:
    """A context manager that removes modules of a root while they are imported again.

    An exception inside restores all modules.

    Args:
        space: the modules of the root, which must be the current one throughout.
        names: the modules to replace.

    Attributes:
        former: the removed modules by name.
    """

    def __init__(self, space: ModuleSpace, names: Iterable[str]) -> None:
        self._before = space.find_loaded_modules()
        self._space = space
        self.former = {name: self._before[name] for name in names if name in self._before}
        self._hidden: list[_HiddenSubmodule] = []

    def __enter__(self) -> ModuleSwap:
        # first, so that a request that imports while the entries disappear is answered from here
        self._space.former = FormerModules(self._before)
        for name, module in self.former.items():
            del sys.modules[name]
            package, _, leaf = name.rpartition(".")
            parent = self._before.get(package)
            # a package that is imported again is a new object, which begins without the attribute
            if parent is not None and package not in self.former:
                self._hidden.append(_HiddenSubmodule(parent, leaf, module))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            for name in self._space.find_loaded_modules():
                # loaded by the failed attempt only: it holds objects of modules that are discarded
                if name not in self._before and name not in self._space.late:
                    remove_module(name)
            self.restore_modules(self.former, replace_new=True)
        # after the modules are back, as other threads see a hidden one through `__getattr__` alone;
        # in reverse, as several submodules of one package chain their `__getattr__`
        for hidden in reversed(self._hidden):
            hidden.unhide_submodule()
        self._space.former = None
        self._space.remove_modules_imported_meanwhile()

    def restore_modules(self, names: Iterable[str], *, replace_new: bool = False) -> set[str]:
        """Restore former modules that have no new version; return the restored names.

        Args:
            replace_new: restore them even if there is a new version.
        """
        back = {name for name in names if name in self.former}
        back = {name for name in back if replace_new or name not in sys.modules}
        for name in back:
            sys.modules[name] = self.former[name]
            package, _, leaf = name.rpartition(".")
            if package in sys.modules:
                setattr(sys.modules[package], leaf, self.former[name])
        return back


class _HiddenSubmodule:
    """Hides a submodule attribute of a package from the importing thread only.

    `from Services import mail` reads the attribute before it looks for a module, and would get the
    old one; other threads, which run old code, still need `Services.mail`.
    """

    def __init__(self, package: ModuleType, leaf: str, module: ModuleType) -> None:
        self._names: dict[str, Any] = vars(package)
        self._leaf = leaf
        self._thread = threading.get_ident()
        self._module = module
        self._next = self._names.get("__getattr__")
        # PEP 562; set before the attribute is removed: between the two a thread would find neither
        self._names["__getattr__"] = self._get_attribute
        # a package may have bound another object to the name of its submodule
        if self._names.get(leaf) is module:
            del self._names[leaf]

    def _get_attribute(self, name: str) -> Any:
        if name == self._leaf and threading.get_ident() != self._thread:
            return self._module
        if self._next is not None:
            return self._next(name)
        # `from package import leaf` imports the submodule only after an AttributeError
        raise AttributeError(f"module {self._names['__name__']!r} has no attribute {name!r}")

    def unhide_submodule(self) -> None:
        if self._next is None:
            del self._names["__getattr__"]
        else:
            self._names["__getattr__"] = self._next
