"""Reasons to restart the process, and what a reload leaves out because a file is broken.

Another process has no last good version to fall back on: while a file is broken, a restart waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from treefold_http._project.loaded_project import LoadedProject
from treefold_http._project.reuse import are_same_objects
from treefold_http._reload.plan import ReloadPlan, collect_kept_module_names
from treefold_http._runtime.boot_report import BrokenFile


class Restart(Exception):
    """Ends a reload that requires a restart of the process."""


@dataclass(frozen=True, slots=True)
class ExcludedChanges:
    """What an attempt to reload leaves out, or all attempts of one reload so far.

    Attributes:
        names: the modules that stay as they are.
        broken: the files that keep their last good version.
        files: the changed files that wait for a restart of the process.
    """

    names: frozenset[str] = frozenset()
    broken: tuple[BrokenFile, ...] = ()
    files: frozenset[str] = frozenset()

    def with_more_excluded(self, more: ExcludedChanges) -> ExcludedChanges:
        known = {(one.file, one.error) for one in self.broken}
        fresh = tuple(one for one in more.broken if (one.file, one.error) not in known)
        return ExcludedChanges(
            self.names | more.names,
            (*self.broken, *fresh),
            self.files | more.files,
        )


class ModulesExcluded(Exception):
    """Ends a reload that must be repeated without some modules, as a file of theirs is broken.

    Attributes:
        changes: what to leave out; without names, nothing of the save is taken up.
    """

    def __init__(self, changes: ExcludedChanges) -> None:
        super().__init__()
        self.changes = changes


def raise_if_restart_needed(
    former: LoadedProject, project: LoadedProject, plan: ReloadPlan, files: frozenset[str]
) -> None:
    """Ask for a restart if hooks or extensions are others; later if a file is broken."""
    broken = tuple(one for one in project.report.broken if one.kept)
    before, now = former.boot_files, project.boot_files
    reason = ""
    if not are_same_objects(before.extensions, now.extensions):
        reason = "extensions.py, or what it imports, changed"
    elif not are_same_objects(before.on_startup, now.on_startup) or not are_same_objects(
        before.on_shutdown, now.on_shutdown
    ):
        reason = "hooks.py, or what it imports, changed"
    if broken and (reason or not collect_kept_module_names(broken).isdisjoint(plan.at_start)):
        raise ModulesExcluded(ExcludedChanges(plan.at_start, broken, files))
    if reason:
        raise Restart(reason)


def find_restart_marked_module(modules: Mapping[str, ModuleType]) -> str:
    found = (name for name in modules if vars(modules[name]).get("restart_on_change") is True)
    return next(found, "")
