"""The credentials that routes require: unique names of their schemes, and their combinations.

With two schemes under one name, readers and generated clients would send the wrong credentials. The
later scheme gets another name, the same in every document, and a warning names both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from treefold_http._description.names import choose_free_name
from treefold_http._injection.secured import Security, build_security_key

if TYPE_CHECKING:
    from treefold_http._description.routes import RouteDescription


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


def build_security_requirements(demands: Sequence[Security]) -> list[dict[str, list[str]]]:
    """Return the security requirements: all together, and one without the optional ones.

    Of credentials with one `any_of`, each alternative makes a requirement of its own, and so does
    each role of which one suffices. Roles stand beside scopes (OpenAPI 3.1, 4.8.30).
    """
    groups: dict[str, list[Security]] = {}
    for index, demand in enumerate(demands):
        groups.setdefault(demand.any_of or f"{index}", []).append(demand)
    needed = [group for group in groups.values() if not group[0].optional]
    # OpenAPI: of the objects in the list one suffices; in an object all schemes are needed
    made = _combine_alternatives(groups.values()) if groups else []
    if len(needed) < len(groups):
        made += [each for each in _combine_alternatives(needed) if each not in made]
    return made


def _list_role_alternatives(group: Sequence[Security]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the name and the scopes and roles of each alternative of a group."""
    return [(each.name, (*each.scopes, *roles)) for each in group for roles in product(*each.roles)]


def _combine_alternatives(groups: Iterable[Sequence[Security]]) -> list[dict[str, list[str]]]:
    combined: list[dict[str, list[str]]] = []
    for choice in product(*(map(_list_role_alternatives, groups))):
        found: dict[str, list[str]] = {}
        for name, needed in choice:
            found.setdefault(name, []).extend(needed)
        made = {name: list(dict.fromkeys(needed)) for name, needed in found.items()}
        combined += [made] if made not in combined else []
    # one that needs more schemes than another says nothing that the other does not
    return [e for e in combined if not any(o.keys() < e.keys() for o in combined)]
