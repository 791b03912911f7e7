"""Plan a reload from the changed files: the modules to reload, and whether startup hooks rerun.

Startup hooks rerun as a whole: every module that `hooks.py` imports is reloaded with them, or the
shutdown hooks of the former code would end resources that the new code has just started. Nothing
is imported here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

from treefold_http._findings import BrokenFile
from treefold_http._imports import held_by, importers_of, imports_of, reached
from treefold_http._modules import dotted

HOOKS = "hooks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The plan of a reload.

    Attributes:
        stale: the modules to reload.
        over: the modules that depend on imports of `hooks.py`; empty if hooks do not rerun.
        shared: modules that both `hooks.py` and `extensions.py` import.
        held: the changed files that can be reloaded only together with the hooks.
        others: the other changed files.
    """

    stale: frozenset[str]
    over: frozenset[str]
    shared: frozenset[str]
    held: frozenset[str]
    others: frozenset[str]


@dataclass(frozen=True, slots=True)
class Held:
    """A deferred change: its files wait because the hooks cannot rerun with them.

    Attributes:
        files: the changed files.
        names: the modules whose next change triggers another attempt.
        broken: the failures; empty if other changes only had to be loaded first.
    """

    files: frozenset[str]
    names: frozenset[str]
    broken: tuple[BrokenFile, ...] = ()


class Modules:
    """The loaded modules of a root and their import graph.

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
        self._imports = imports
        self._importers = importers_of(loaded, imports)
        self._by_file: dict[str, set[str]] = {}
        for name, module in loaded.items():
            self._by_file.setdefault(self.file_of(module), set()).add(name)

    def file_of(self, module: ModuleType) -> str:
        """Return the path of a module's file below the root; empty if the module has no file."""
        file = getattr(module, "__file__", None)
        return str(file)[len(str(self._root)) + 1 :].replace("\\", "/") if file is not None else ""

    def change(
        self, files: Collection[str], unfit: Collection[str], *, starts: bool, holds: bool
    ) -> Change:
        """Plan the reload of changed files.

        Args:
            files: paths below the root.
            unfit: modules that failed to import.
            starts: True if there are startup hooks to rerun.
            holds: True to leave the hooks running, because they could not rerun.
        """
        # By name too: a changed file may be a module that failed to import, or its package.
        seeds = {*unfit}.union(*map(self._names, files))
        if holds:
            seeds = {name for name in seeds if not self._leads_to_hooks([name])}
        stale = reached(seeds, self._importers)
        over: set[str] = set()
        shared: set[str] = set()
        if starts and not holds and HOOKS in stale:
            own, shared = self._of_hooks()
            over = reached(own, self._importers)
        held = frozenset(f for f in files if self._leads_to_hooks(self._names(f)))
        return Change(
            stale=frozenset((stale | over) & self._loaded.keys()),
            over=frozenset(over),
            shared=frozenset(shared),
            held=held,
            others=frozenset(files) - held,
        )

    def wants(self, held: Held, files: Collection[str]) -> bool:
        """Return True if the deferred change should be tried again after these files changed."""
        names = set[str]().union(*map(self._names, files))
        again = not held.broken and not files
        return again or not held.names.isdisjoint(names) or self._leads_to_hooks(names)

    def in_both(self, change: Change, *, ends: bool) -> str:
        """Return the first module that hooks and extensions share and that prevents a rerun, or "".

        Args:
            ends: True if former shutdown hooks run: any shared module counts, else packages only.
        """
        packages = {n for n in change.shared if hasattr(self._loaded[n], "__path__")}
        found = change.shared if ends else packages
        return min((self.file_of(self._loaded[name]) or name for name in found), default="")

    def _names(self, file: str) -> set[str]:
        return {module_name(file), *self._by_file.get(file, ())}

    def _leads_to_hooks(self, names: Iterable[str]) -> bool:
        return HOOKS in reached(names, self._importers)

    def _of_hooks(self) -> tuple[set[str], set[str]]:
        """The modules that hooks import: those of hooks alone, and those shared with extensions."""
        found = self._below(HOOKS)
        steps = [name.split(".") for name in found]
        found |= {".".join(parts[:n]) for parts in steps for n in range(1, len(parts))}
        found &= self._loaded.keys()
        shared = found & self._below("extensions")
        own = {name for name in found - shared if not is_compiled(self._loaded[name])}
        return {*own, HOOKS}, shared

    def _below(self, name: str) -> set[str]:
        steps = {
            one: {*self._imports[one], *held_by(module)} for one, module in self._loaded.items()
        }
        return reached([name], steps) & self._loaded.keys()


def is_compiled(module: ModuleType) -> bool:
    """Return True for a compiled extension module, which Python cannot load twice."""
    return isinstance(module.__loader__, ExtensionFileLoader)


def module_name(file: str) -> str:
    """Return the dotted module name of a file below the root."""
    return dotted(file.removesuffix(".py").removesuffix("/__init__"))


def modules_of(broken: Iterable[BrokenFile]) -> set[str]:
    """Return the module names of those broken files whose former version still serves."""
    files = [one for one in broken if one.kept]
    return {module_name(f) for one in files for f in (f"Api/{one.file}", one.file, one.cause)}


def needed_by_hooks(root: Path) -> set[str]:
    """Return all modules that `hooks.py` imports, transitively, according to the files on disk.

    The names may be of modules that are not loaded.
    """
    found: set[str] = set()
    pending = [HOOKS]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _imported_by(root / name.replace(".", "/"), name)
    return found


def _imported_by(place: Path, name: str) -> frozenset[str]:
    package = place / "__init__.py"
    file = place.with_name(f"{place.name}.py")
    try:
        if package.is_file():
            return imports_of(package.read_bytes(), name)
        return imports_of(file.read_bytes(), name.rpartition(".")[0])
    except (OSError, ValueError):
        return frozenset()  # not of the project, or not there
