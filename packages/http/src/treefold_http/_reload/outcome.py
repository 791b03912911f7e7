"""The outcome of a reload: what serves now, or why the process must be restarted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from treefold_http._injection.providers import Provider
from treefold_http._project.loaded_project import LoadedProject
from treefold_http._runtime.boot_report import BrokenFile
from treefold_router import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """The result of a reload: another site serves now.

    Attributes:
        saved: the changed files that were taken up, without those that were only touched.
        files: the reloaded files, below the application root.
        added: the new routes.
        removed: the removed routes.
        broken: every file that does not load now, including older failures.
        deferred: changed files that need a restart, which waits until no file is broken.
        later: how many handler modules that import a changed file wait for their first use.
        seconds: the duration.
        replaced: former providers whose application values are no longer used.
    """

    saved: tuple[str, ...]
    files: tuple[str, ...]
    added: tuple[Route, ...]
    removed: tuple[Route, ...]
    broken: tuple[BrokenFile, ...]
    deferred: tuple[str, ...]
    later: int
    seconds: float
    replaced: tuple[Provider, ...]


@dataclass(frozen=True, slots=True)
class RestartNeeded:
    """A change that requires a restart of the process; the former project continues to serve.

    Attributes:
        reason: the reason, in one line.
    """

    reason: str


def build_reload_report(
    former: LoadedProject, project: LoadedProject, **facts: Any
) -> Reloaded | None:
    before, after = (
        # the same table has the same routes: a save in a large project does not compare them
        ({}, {}) if former.table is project.table else map(_index_routes, (former, project))
    )
    changed_report = former.report.broken != project.report.broken
    anything = facts["files"] or facts["deferred"] or changed_report
    if not anything and before.keys() == after.keys():
        return None
    return Reloaded(
        added=tuple(route for key, route in after.items() if key not in before),
        removed=tuple(route for key, route in before.items() if key not in after),
        broken=project.report.broken,
        **facts,
    )


def _index_routes(project: LoadedProject) -> dict[tuple[str, str, str], Route]:
    return {(route.method, route.template, route.file): route for route in project.table.routes}
