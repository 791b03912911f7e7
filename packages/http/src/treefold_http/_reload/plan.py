"""Plan a reload from the changed files: the modules to import again, and whether to restart.

The objects of `hooks.py` and `extensions.py` are used once, at the start: the process restarts when
these modules, or modules that they import, have changed. Nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

from treefold_http._project.modules import dotted
from treefold_http._reload.import_graph import importers_by_module, transitive_closure
from treefold_http._runtime.boot_report import BrokenFile

_USED_AT_START = frozenset({"hooks", "extensions"})


@dataclass(frozen=True, slots=True)
class ReloadPlan:
    """The plan of a reload.

    Attributes:
        stale: the modules to import again.
        at_start: those of `hooks` and `extensions` that depend on the changed files.
    """

    stale: frozenset[str]
    at_start: frozenset[str]


class ModuleGraph:
    """The loaded modules of a root, and which of them import which.

    Args:
        root: the application root.
        loaded: by dotted name.
        imports: by dotted name, the names that the sources import.
    """

    def __init__(
        self, root: Path, loaded: Mapping[str, ModuleType], imports: Mapping[str, frozenset[str]]
    ) -> None:
        self._root = root
        self._loaded = loaded
        self._importers = importers_by_module(loaded, imports)
        self._by_file: dict[str, set[str]] = {}
        for name, module in loaded.items():
            self._by_file.setdefault(self.file_of(module), set()).add(name)

    def file_of(self, module: ModuleType) -> str:
        """Return the path of a module's file below the root; empty if the module has no file."""
        file = getattr(module, "__file__", None)
        return str(file)[len(str(self._root)) + 1 :].replace("\\", "/") if file is not None else ""

    def plan(
        self, files: Collection[str], failed: Collection[str], *, defers: bool = False
    ) -> ReloadPlan:
        """Plan the reload of changed files.

        Args:
            files: paths below the root.
            failed: modules that failed to import, which are tried again.
            defers: leave out what `hooks` and `extensions` depend on.
        """
        names = {*failed}.union(*map(self._module_names, files))
        if defers:
            names = {name for name in names if not self._at_start([name])}
        return ReloadPlan(
            stale=frozenset(transitive_closure(names, self._importers) & self._loaded.keys()),
            at_start=self._at_start(names),
        )

    def used_at_start(self, files: Collection[str]) -> frozenset[str]:
        """Return those files that `hooks` or `extensions` depend on."""
        return frozenset(file for file in files if self._at_start(self._module_names(file)))

    def _at_start(self, names: Iterable[str]) -> frozenset[str]:
        return _USED_AT_START & transitive_closure(names, self._importers)

    def _module_names(self, file: str) -> set[str]:
        # By name too: the file may be a module that failed to import, or its package.
        return {module_name(file), *self._by_file.get(file, ())}


def is_compiled(module: ModuleType) -> bool:
    """Return True for a compiled extension module, which Python cannot load twice."""
    return isinstance(module.__loader__, ExtensionFileLoader)


def module_name(file: str) -> str:
    """Return the dotted module name of a file below the root."""
    return dotted(file.removesuffix(".py").removesuffix("/__init__"))


def kept_modules(broken: Iterable[BrokenFile]) -> set[str]:
    """Return the module names of those broken files whose former version still serves."""
    files = [one for one in broken if one.kept]
    return {module_name(f) for one in files for f in (f"Api/{one.file}", one.file, one.cause)}
