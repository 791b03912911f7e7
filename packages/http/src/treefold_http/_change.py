"""What changed files lead to: which modules are to be imported anew, and whether hooks start over.

Startup hooks start over as a whole: everything that `hooks.py` imports is imported anew with them,
or the shutdown hooks of the former code would end what the new code has just started. Nothing is
imported here.
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
    """What is to be done about changed files.

    Attributes:
        stale: the modules that are to be imported anew.
        over: those that hang on what hooks import; none where hooks do not start over.
        shared: modules that hooks import, and extensions too.
        held: the files that can only be taken up together with the hooks.
        others: those that can be taken up alone.
    """

    stale: frozenset[str]
    over: frozenset[str]
    shared: frozenset[str]
    held: frozenset[str]
    others: frozenset[str]


@dataclass(frozen=True, slots=True)
class Held:
    """Changes that wait: the hooks cannot start over on them.

    Attributes:
        files: what has changed.
        names: the modules that may mend it.
        broken: why; nothing where they only wait for others to be taken up first.
    """

    files: frozenset[str]
    names: frozenset[str]
    broken: tuple[BrokenFile, ...] = ()


class Modules:
    """The loaded modules of a root, and what imports what.

    Args:
        root: the application root.
        loaded: by dotted name.
        imports: by dotted name, what their sources import.
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
        """Give the file of a module below the root; nothing where it has none."""
        file = getattr(module, "__file__", None)
        return str(file)[len(str(self._root)) + 1 :].replace("\\", "/") if file is not None else ""

    def change(
        self, files: Collection[str], unfit: Collection[str], *, starts: bool, holds: bool
    ) -> Change:
        """Say what changed files lead to.

        Args:
            files: below the root.
            unfit: modules that failed to import.
            starts: whether there are startup hooks that would start over.
            holds: whether hooks are left alone, because they could not start over.
        """
        # By name too: what failed to import a module, or its package, may want it now.
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
        """Whether changes that wait are to be tried again, now that these files have changed."""
        names = set[str]().union(*map(self._names, files))
        again = not held.broken and not files
        return again or not held.names.isdisjoint(names) or self._leads_to_hooks(names)

    def in_both(self, change: Change, *, ends: bool) -> str:
        """Give what hooks cannot have to themselves as extensions use it, or nothing.

        Args:
            ends: whether shutdown hooks would end what is in it.
        """
        packages = {n for n in change.shared if hasattr(self._loaded[n], "__path__")}
        found = change.shared if ends else packages
        return min((self.file_of(self._loaded[name]) or name for name in found), default="")

    def _names(self, file: str) -> set[str]:
        return {module_name(file), *self._by_file.get(file, ())}

    def _leads_to_hooks(self, names: Iterable[str]) -> bool:
        return HOOKS in reached(names, self._importers)

    def _of_hooks(self) -> tuple[set[str], set[str]]:
        """What hooks import, and their packages: what is theirs, what extensions use as well."""
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
    """Whether a module is a shared object, which Python cannot load twice."""
    return isinstance(module.__loader__, ExtensionFileLoader)


def module_name(file: str) -> str:
    """Give the dotted name of a file below the root."""
    return dotted(file.removesuffix(".py").removesuffix("/__init__"))


def modules_of(broken: Iterable[BrokenFile]) -> set[str]:
    """Give the names of the modules that broken files are, where former ones serve."""
    files = [one for one in broken if one.kept]
    return {module_name(f) for one in files for f in (f"Api/{one.file}", one.file, one.cause)}


def needed_by_hooks(root: Path) -> set[str]:
    """Give what hooks import by what the files say now, through others: names, loaded or not."""
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
