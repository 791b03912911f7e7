"""The parts of the former project that a reload takes over instead of making them again.

A save changes a few modules: the cost of its reload must not grow with the number of routes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from treefold_http._modules.modules import folder_to_package_name
from treefold_router import Route, RouteTable

if TYPE_CHECKING:
    from treefold_http._injection.providers import Key, Provider
    from treefold_http._project.loaded_project import LoadedProject

T = TypeVar("T")


def group_routes_by_module(table: RouteTable) -> dict[str, list[Route]]:
    """Return the routes of each handler module, by its dotted name."""
    names: dict[str, list[Route]] = {}
    for route in table.routes:
        folder = f"Api/{route.effective_file.removesuffix('.py')}"
        names.setdefault(folder_to_package_name(folder), []).append(route)
    return names


def select_routes_to_load(
    former: LoadedProject, table: RouteTable, stale: Collection[str]
) -> list[Route]:
    """Return the routes that are new, whose modules are imported again, or that did not load.

    Args:
        table: the routes now; those that are the same are the objects of before.
        stale: the modules that are imported again.
    """
    new = [route for route in table.routes if route not in former.modules]
    failed = {f"Api/{broken.place}" for broken in former.report.broken}
    names = {*stale, *(folder_to_package_name(file.removesuffix(".py")) for file in failed)}
    again = [route for name in names & former.handlers.keys() for route in former.handlers[name]]
    if table is former.table:
        return again
    present = set(table.routes)
    return list(dict.fromkeys([*new, *(route for route in again if route in present)]))


def select_present_routes(
    values: Mapping[Route, T], former: LoadedProject, table: RouteTable
) -> dict[Route, T]:
    """Return what the former project has for the routes that are still there."""
    if table is former.table:
        return dict(values)
    return {route: values[route] for route in table.routes if route in values}


def select_routes_to_replan(
    former: LoadedProject, before: Mapping[Key, Provider], now: Mapping[Key, Provider]
) -> list[Route]:
    """Return the routes whose plans have looked for a provider that is another one now."""
    changed = {key for key in {*before, *now} if before.get(key) is not now.get(key)}
    return [r for r, keys in former.asked.items() if not keys.isdisjoint(changed)]


def has_no_own_middleware(former: Mapping[Route, Any], modules: Mapping[Route, Any]) -> bool:
    """Return True if none of some handler modules has, or had, middleware of its own."""
    loaded = (module for route, now in modules.items() for module in (now, former.get(route)))
    return not any(getattr(module, "middlewares", ()) for module in loaded)


def are_same_objects(former: Collection[Any], now: Collection[Any]) -> bool:
    """Return True if two lists hold the same objects."""
    return list(map(id, former)) == list(map(id, now))
