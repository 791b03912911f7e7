"""Pairs of branches of one API of 100 routes, which touch different routes.

An API is a set of routes in one or more versions, each with the number of members of its answer; a
branch is the API after some changes. It is written as files of a project, or as a lock that is made
of facts which are read once for each route.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from treefold_contract import Definition, Lock, RouteFacts, VersionFacts, read_lock, write_lock

Route = tuple[str, str, str]
"""The version, the name of the folder and the method."""
Files = Mapping[Route, int]
"""The members that the answer of each route has; 0 for a file that removes an inherited route."""
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
NAMES = (
    *("account", "basket", "book", "branch", "category", "coupon", "customer", "delivery"),
    *("discount", "event", "feature", "gift", "hold", "item", "journal", "key", "ledger", "vendor"),
    *("invoice", "label", "message", "order", "payment", "product", "refund", "review"),
)
ROUTES = 100
CHANGES = 10
"""The routes in which a version differs from the one before it, before there are branches."""
PLACES = tuple((name, method) for name in NAMES for method in METHODS)
MEMBERS = ("created", "id", "kind", "note", "price", "state", "title", "weight")
HEAD = "treefold contract 1 rules 1\nerrors problem\n"


@dataclass(frozen=True, slots=True)
class Api:
    """An API.

    Attributes:
        files: the method files; of a version that inherits, its own ones.
        versions: the number of its versions.
        inherits: True if each version inherits from the one before it, False if it is a full copy.
    """

    files: Files
    versions: int = 1
    inherits: bool = False

    @property
    def version_names(self) -> tuple[str, ...]:
        """The versions, the oldest first."""
        return tuple(f"v{number + 1}" for number in range(self.versions))

    def list_routes(self) -> dict[Route, int]:
        """Return the routes that are served, with the members of their answers."""
        served: dict[Route, int] = {}
        base: dict[Route, int] = {}
        for version in self.version_names:
            whole = {(version, *route[1:]): count for route, count in base.items()}
            own = {route: count for route, count in self.files.items() if route[0] == version}
            base = {r: count for r, count in {**whole, **own}.items() if count}
            served |= base
            if not self.inherits:
                base = {}
        return served


def draw_api(chance: random.Random, versions: int = 1, *, inherits: bool = False) -> Api:
    """Return an API whose first version has 100 routes, and each later one ten changes."""
    files = {("v1", *place): chance.randint(1, 4) for place in chance.sample(PLACES, ROUTES)}
    api = Api(files, versions, inherits)
    for before, version in zip(api.version_names, api.version_names[1:], strict=False):
        if not inherits:
            copied = {(version, *r[1:]): count for r, count in files.items() if r[0] == before}
            files |= copied
        for place in chance.sample(PLACES, CHANGES):
            change_route(chance, api, (version, *place))
    return api


def draw_pair(chance: random.Random, api: Api) -> tuple[Api, Api]:
    """Return two branches that touch different routes, each one or two of them."""
    routes = [(version, *place) for version in api.version_names for place in PLACES]
    touched = iter(chance.sample(routes, 4))
    pair = replace(api, files=dict(api.files)), replace(api, files=dict(api.files))
    for branch in pair:
        for _ in range(chance.randint(1, 2)):
            change_route(chance, branch, next(touched))
    return pair


def change_route(chance: random.Random, api: Api, route: Route) -> None:
    """Add a route that is missing; remove another, or change its answer."""
    files = api.files
    assert isinstance(files, dict)
    served = api.list_routes().get(route)
    if served is None:
        # without the file that removes it, an inherited route is back
        if files.pop(route, None) is None:
            files[route] = chance.randint(1, 4)
    elif chance.random() < 0.25:
        if api.inherits and route not in files:
            files[route] = 0
        else:
            del files[route]
    else:
        files[route] = served + 1 if served < 5 else 1


def merge_apis(base: Api, left: Api, right: Api) -> Api:
    """Return the API with the changes of both branches."""
    merged = dict(left.files)
    for route in {*base.files, *right.files}:
        if right.files.get(route) == base.files.get(route):
            continue
        if route in right.files:
            merged[route] = right.files[route]
        else:
            merged.pop(route, None)
    return replace(left, files=merged)


def write_project(api: Api) -> dict[str, str]:
    """Return the files of a project with these routes."""
    files = {"treefold.toml": "response_model = true\n", "hooks.py": ""}
    if api.inherits:
        for before, version in zip(api.version_names, api.version_names[1:], strict=False):
            files[f"Api/{version}/version.toml"] = f'inherits = "{before}"\n'
    for (version, name, method), count in api.files.items():
        path = f"Api/{version}/{name.capitalize()}/{method.capitalize()}"
        if not count:
            files[f"{path}.gone"] = ""
            continue
        record = _name_type(name, method)
        members = "".join(f"    {each}: int\n" for each in MEMBERS[:count])
        files[f"{path}.py"] = (
            f"from typing import TypedDict\n\n\nclass {record}(TypedDict):\n{members}\n\n"
            f"async def handler(page: int = 1) -> {record}:\n    return {{}}\n"
        )
    return files


def write_api_lock(api: Api) -> str:
    """Return the text of the lock of an API."""
    routes: list[RouteFacts] = []
    definitions: dict[str, Definition] = {}
    names: dict[tuple[str, int], str] = {}
    taken: set[str] = set()
    for route, count in sorted(api.list_routes().items()):
        version, name, method = route
        plain = _name_type(name, method)
        # of types that differ, those of later versions have the name of their first version
        new = f"{plain}@{version}" if plain in taken else plain
        record = names.setdefault((plain, count), new)
        taken.add(plain)
        facts, made = _read_route(route, record, count)
        routes.append(facts)
        definitions.update(made)
    versions = tuple(map(VersionFacts, api.version_names))
    return write_lock(Lock(tuple(routes), versions, definitions, read_lock(HEAD).settings))


@cache
def _read_route(route: Route, record: str, count: int) -> tuple[RouteFacts, dict[str, Definition]]:
    version, name, method = route
    members = "".join(f"  {each:<7} int\n" for each in MEMBERS[:count])
    text = (
        f"{HEAD}version {version} stable\n\n"
        f"{method} /{version}/{name}\n  query   page int = 1\n  200     json {record}\n\n"
        f"type {record}\n{members}"
    )
    lock = read_lock(text)
    return lock.routes[0], dict(lock.definitions)


def _name_type(name: str, method: str) -> str:
    return f"{name.capitalize()}{method.capitalize()}ed"
