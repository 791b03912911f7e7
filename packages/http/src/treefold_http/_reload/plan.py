"""Plan a reload from the changed files: the modules to import again, and whether to restart.

The objects of `hooks.py` and `extensions.py` are used once, at the start: the process restarts when
these modules, or modules that they import, have changed. Nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from types import ModuleType

from treefold_http._modules.import_graph import transitive_closure
from treefold_http._modules.modules import folder_to_package_name
from treefold_http._reload.module_index import ModuleIndex
from treefold_http._runtime.boot_report import BrokenFile

_USED_AT_START = frozenset({"hooks", "extensions"})


@dataclass(frozen=True, slots=True)
class ReloadPlan:
    """The plan of a reload.

    Attributes:
        stale: the modules to import again.
        at_start: those of `hooks` and `extensions` that depend on the changed files.
        left_out: changed modules that stay as they are for now.
    """

    stale: frozenset[str]
    at_start: frozenset[str]
    left_out: frozenset[str]


class ModuleGraph:
    """Decides what a change reaches.

    Args:
        index: the loaded modules, up to date.
        groups: modules that must be imported together.
    """

    def __init__(self, index: ModuleIndex, groups: Iterable[Collection[str]]) -> None:
        self._index = index
        self._group_of = {name: group for group in groups for name in group}

    def plan_reload(
        self,
        files: Collection[str],
        failed: Collection[str],
        excluded_modules: Collection[str] = (),
    ) -> ReloadPlan:
        """Plan the reload of changed files.

        Args:
            files: paths below the root.
            failed: modules that failed to import, which are tried again.
            excluded_modules: modules that stay as they are, and so does what they depend on.
        """
        names = {*failed}.union(*map(self._find_modules_of_file, files))
        at_start = self._find_affected_start_modules(names)
        # a module that stays keeps what it imports: a swapped module below it would exist twice
        left_out = {
            name
            for name in names
            if excluded_modules
            and not self._find_affected_modules([name]).isdisjoint(excluded_modules)
        }
        return ReloadPlan(
            stale=frozenset(
                # a new file has no module to remove: its importer or its route loads it
                self._find_affected_modules(names - left_out) & self._index.loaded.keys()
            ),
            at_start=at_start,
            left_out=frozenset(left_out & self._index.loaded.keys()),
        )

    def select_files_used_at_start(self, files: Collection[str]) -> frozenset[str]:
        """Return those files that `hooks` or `extensions` depend on."""
        return frozenset(
            file
            for file in files
            if self._find_affected_start_modules(self._find_modules_of_file(file))
        )

    def _find_affected_start_modules(self, names: Iterable[str]) -> frozenset[str]:
        return _USED_AT_START & self._find_affected_modules(names)

    def include_related_modules(self, names: Iterable[str]) -> set[str]:
        """Return the names, and all modules that must be imported together with one of them."""
        return {other for name in names for other in self._group_of.get(name, (name,))}

    def _find_affected_modules(self, names: Iterable[str]) -> set[str]:
        """Return the names, their importers, and all that must be imported together with them."""
        found = transitive_closure(names, self._index.importers)
        # a group brings modules whose importers may belong to another group
        while not found.issuperset(related := self.include_related_modules(found)):
            found = transitive_closure([*found, *related], self._index.importers)
        return found

    def _find_modules_of_file(self, file: str) -> set[str]:
        # By name too: the file may be a module that failed to import, or its package.
        name, known = path_to_module_name(file), self._index.by_file.get(file, ())
        # an unknown file may be a new plugin, so the module that scans its folder is imported again
        scanners = () if known else self._index.find_computed_importers(name.rpartition(".")[0])
        return {name, *known, *scanners}


def is_compiled(module: ModuleType) -> bool:
    """Return True for a compiled extension module, which Python cannot load twice."""
    return isinstance(module.__loader__, ExtensionFileLoader)


def path_to_module_name(file: str) -> str:
    """Return the dotted module name of a file below the root."""
    return folder_to_package_name(file.removesuffix(".py").removesuffix("/__init__"))


def collect_kept_module_names(broken: Iterable[BrokenFile]) -> set[str]:
    """Return the module names of those broken files whose former version still serves."""
    return {path_to_module_name(file) for one in broken if one.kept for file in _list_files(one)}


def _list_files(one: BrokenFile) -> Iterable[str]:
    if one.effective_file:  # the module of the base may be sound
        version, base = one.effective_file.partition("/")[0], one.file.partition("/")[0]
        cause = one.cause.removeprefix(f"Api/{base}/")
        moved = one.cause if cause == one.cause else f"Api/{version}/{cause}"
        return (f"Api/{one.effective_file}", moved)
    # a handler's `file` is below `Api/` and that of a boot file below the root: both are tried
    return (f"Api/{one.file}", one.file, one.cause)
