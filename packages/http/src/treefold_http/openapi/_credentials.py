"""Unique names of security schemes in the documents of an application.

With two schemes under one name, readers and generated clients would send the wrong credentials. The
later scheme gets another name, the same in every document, and a warning names both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from treefold_http._injection.secured import Security, build_security_key
from treefold_http.openapi._names import choose_free_name

if TYPE_CHECKING:
    from treefold_http.openapi._routes import RouteDescription


class Clash(NamedTuple):
    """Two schemes of one name.

    Attributes:
        name: the name of both.
        shown_as: the name of the later one in the documents.
        first, later: where each is defined, as file and line.
    """

    name: str
    shown_as: str
    first: str
    later: str

    def __str__(self) -> str:
        return (
            f"Security scheme {self.name!r} is not the same at {self.first} and at {self.later};"
            f" the documents call the later {self.shown_as!r}; give it a `name` of its own"
        )


def rename_clashing_schemes(
    routes: Sequence[RouteDescription], root: Path
) -> tuple[list[RouteDescription], list[Clash]]:
    """Rename security schemes so that no two different ones share a name; also return the clashes.

    Args:
        routes: all routes of the application, in order.
        root: the folder of the project; files are named relative to it.
    """
    clashes: list[Clash] = []
    names: dict[tuple[str, str], str] = {}
    first: dict[str, Security] = {}
    # of all routes before any is renamed: a made name must not be that of a later scheme
    taken = {demand.name for route in routes for demand in route.security}
    for route in routes:
        for demand in route.security:
            known = first.setdefault(demand.name, demand)
            key = build_security_key(demand)
            if key in names or build_security_key(known) == key:
                continue
            name, version = demand.name, route.route.version
            shown_as = choose_free_name(name, taken, f"{name}_{version}")
            taken.add(shown_as)
            names[build_security_key(demand)] = shown_as
            where = (_format_definition_location(each, root) for each in (known, demand))
            clashes.append(Clash(name, shown_as, *where))
    if not clashes:
        return list(routes), []

    def rename_demand(demand: Security) -> Security:
        return demand._replace(name=names.get(build_security_key(demand), demand.name))

    changed = [replace(r, security=tuple(map(rename_demand, r.security))) for r in routes]
    return changed, clashes


def _format_definition_location(demand: Security, root: Path) -> str:
    file, _, line = demand.place.rpartition(":")
    path = Path(file)
    base = root.resolve()
    return f"{path.relative_to(base).as_posix() if path.is_relative_to(base) else file}:{line}"
