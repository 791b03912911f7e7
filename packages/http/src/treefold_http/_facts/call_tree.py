"""The tree of places of an API, as clients from its lock have it, without facts about its routes.

    Api/v1/User/[id]/Get.py     root > v1 > user > {id} (GET)

It is made of the route table alone: no handler is read, and a broken file is a place as any other.
"""

from __future__ import annotations

from treefold_contract import Lock, Place, RouteFacts, Settings, VersionFacts, build_places
from treefold_http._facts.route_facts import build_path
from treefold_router import RouteTable


def build_call_tree(table: RouteTable, default_version: str | None) -> Place:
    """Return the root of the places of a route table.

    Args:
        table: the table.
        default_version: the version whose places are there without a version as well.

    Raises:
        LockError: no client can send the path of a route.
    """
    return build_places(
        Lock(
            routes=tuple(RouteFacts(route.method, build_path(route)) for route in table.routes),
            versions=tuple(map(VersionFacts, table.versions)),
            settings=Settings(default_version=default_version or ""),
        )
    )
