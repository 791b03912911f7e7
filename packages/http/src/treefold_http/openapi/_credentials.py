"""Unique names of security schemes in the documents of an application.

With two schemes under one name, readers and generated clients would send the wrong credentials. The
later scheme gets another name, the same in every document, and a warning names both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from treefold_http._security import Security

if TYPE_CHECKING:
    from treefold_http.openapi._routes import Described


_Key: TypeAlias = tuple[str, str]
"""Name and content of a scheme."""


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


def name_schemes(routes: Sequence[Described], root: Path) -> tuple[list[Described], list[Clash]]:
    """Rename security schemes so that no two different ones share a name; also return the clashes.

    Args:
        routes: all routes of the application, in order.
        root: the folder of the project; files are named relative to it.
    """
    clashes: list[Clash] = []
    names: dict[_Key, str] = {}
    first: dict[str, Security] = {}
    taken = {demand.name for route in routes for demand in route.security}
    for route in routes:
        for demand in route.security:
            known = first.setdefault(demand.name, demand)
            if _key(demand) in names or _key(known) == _key(demand):
                continue
            name, version = demand.name, route.route.version
            numbered = (f"{name}_{number}" for number in count(2))
            shown_as = next(n for n in chain([f"{name}_{version}"], numbered) if n not in taken)
            taken.add(shown_as)
            names[_key(demand)] = shown_as
            clashes.append(Clash(name, shown_as, _place(known, root), _place(demand, root)))
    if not clashes:
        return list(routes), []

    def renamed(demand: Security) -> Security:
        return demand._replace(name=names.get(_key(demand), demand.name))

    changed = [replace(route, security=tuple(map(renamed, route.security))) for route in routes]
    return changed, clashes


def joined(demands: Iterable[Security]) -> tuple[Security, ...]:
    """Merge the security requirements of a route by scheme: all scopes, optional if all are."""
    found: dict[_Key, Security] = {}
    for demand in demands:
        known = found.get(_key(demand), demand)
        found[_key(demand)] = known._replace(
            scopes=tuple(dict.fromkeys((*known.scopes, *demand.scopes))),
            optional=known.optional and demand.optional,
        )
    return tuple(found.values())


def _key(demand: Security) -> _Key:
    return demand.name, json.dumps(demand.scheme, sort_keys=True, default=repr)


def _place(demand: Security, root: Path) -> str:
    file, _, line = demand.place.rpartition(":")
    path = Path(file)
    base = root.resolve()
    return f"{path.relative_to(base).as_posix() if path.is_relative_to(base) else file}:{line}"
