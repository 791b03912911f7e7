"""Handler modules that a reload leaves for their first use: a save must not wait for thousands.

    Services/prices.py      saved; half of 5,000 handlers import it
    Api/v1/Cart/Get.py      imports it, and is not imported again yet: its former version serves
    GET /v1/cart            imports `Api.v1.Cart.Get` again first, and runs the new version

A handler module waits only if nothing can tell: its own file is the same, no other module imports
it, no container or base class of a module that is imported again holds anything of it, and no boot
file and no model changes with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from treefold_http._plans.plans import Plan
from treefold_http._reload.module_index import ModuleIndex
from treefold_http._reload.registrations import find_extended_class, holds_objects_from

if TYPE_CHECKING:
    from treefold_http._project.loaded_project import LoadedProject

ImportLater: TypeAlias = Callable[[str], Awaitable[None]]
"""Imports a module, by its dotted name, before the first request of its route is served."""

_MOST_AT_ONCE = 100
"""Most handler modules that a save imports before it is served."""
_SERVICES = ("Services", "Utils", "Api")
"""Top-level packages that hold neither boot files nor models."""


def choose_modules_to_import_later(
    stale: Collection[str],
    saved: Collection[str],
    former: LoadedProject,
    index: ModuleIndex,
) -> frozenset[str]:
    """Return the handler modules that need not be imported before the save is served.

    Args:
        stale: the modules that a change reaches.
        saved: those whose own files have changed, and those that have failed.
        former: the project that serves now.
        index: the loaded modules.
    """
    waiting = {
        name
        for name in former.handlers.keys() & set(stale) - set(saved)
        if not index.importers.get(name)
    }
    if len(waiting) <= _MOST_AT_ONCE or index.asking:
        return frozenset()
    others = {name: index.loaded[name] for name in set(stale) - waiting}
    if any(name.partition(".")[0] not in _SERVICES for name in others):
        return frozenset()
    if _hold_anything_of(others, waiting, index):
        return frozenset()
    return frozenset(waiting)


def _hold_anything_of(
    others: Mapping[str, ModuleType], waiting: Collection[str], index: ModuleIndex
) -> bool:
    handlers = {name: index.loaded[name] for name in waiting}
    return (
        any(holds_objects_from(module, index.loaded.keys(), waiting) for module in others.values())
        or find_extended_class(handlers, others.keys(), ()) is not None
    )


def import_at_first_use(
    project: LoadedProject,
    waiting: Collection[str],
    import_later: ImportLater,
    find_plan: Callable[[Any], Plan | None],
) -> LoadedProject:
    """Return a project whose routes of waiting modules import these first.

    Args:
        project: with the former versions of the modules.
        waiting: the names of the modules.
        import_later: imports one of them.
        find_plan: returns the plan of a route after the import.
    """
    plans = {
        route: _import_first(project.plans[route], name, import_later, find_plan)
        for name in waiting
        for route in project.handlers.get(name, ())
    }
    return replace(project, plans=project.plans | plans) if plans else project


def _import_first(
    former: Plan, name: str, import_later: ImportLater, find_plan: Callable[[Any], Plan | None]
) -> Plan:
    async def import_and_run(connection: Any) -> Any:
        await import_later(name)
        now = find_plan(former.route)
        # an import that has failed leaves the former version, and so does a route that is gone
        return await (former if now is None or now is plan else now).run(connection)

    plan = replace(former, run=import_and_run)
    return plan
