"""Pairs of branches of one API of 100 routes, which touch different routes.

An API is a set of routes, each with the number of members of its answer; a branch is the API after
some changes. It is written as files of a project, or as a lock that is made of facts which are read
once for each route.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache

from treefold_contract import Definition, Lock, RouteFacts, VersionFacts, read_lock, write_lock

Route = tuple[str, str, str]
"""The version, the name of the folder and the method."""
Api = Mapping[Route, int]
"""The members that the answer of each route has."""
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
NAMES = (
    *("account", "basket", "book", "branch", "category", "coupon", "customer", "delivery"),
    *("discount", "event", "feature", "gift", "hold", "item", "journal", "key", "ledger", "vendor"),
    *("invoice", "label", "message", "order", "payment", "product", "refund", "review"),
)
ROUTES = 100
PLACES: tuple[Route, ...] = tuple(("v1", name, each) for name in NAMES for each in METHODS)
MEMBERS = ("created", "id", "kind", "note", "price", "state", "title", "weight")
HEAD = "treefold contract 1 rules 1\nerrors problem\nversion v1 stable\n"


def draw_api(chance: random.Random) -> dict[Route, int]:
    """Return an API of 100 routes in one version."""
    return {route: chance.randint(1, 4) for route in chance.sample(PLACES, ROUTES)}


def draw_pair(chance: random.Random, api: Api) -> tuple[dict[Route, int], dict[Route, int]]:
    """Return two branches that touch different routes, each one or two of them."""
    touched = iter(chance.sample(PLACES, 4))
    pair = dict(api), dict(api)
    for branch in pair:
        for _ in range(chance.randint(1, 2)):
            change_route(chance, branch, next(touched))
    return pair


def change_route(chance: random.Random, api: dict[Route, int], route: Route) -> None:
    """Add a route that is missing; delete another, or change its answer."""
    if route not in api:
        api[route] = chance.randint(1, 4)
    elif chance.random() < 0.25:
        del api[route]
    else:
        api[route] = api[route] + 1 if api[route] < 5 else 1


def merge_apis(base: Api, left: Api, right: Api) -> dict[Route, int]:
    """Return the API with the changes of both branches."""
    merged = dict(left)
    for route in {*base, *right}:
        if right.get(route) == base.get(route):
            continue
        if route in right:
            merged[route] = right[route]
        else:
            merged.pop(route, None)
    return merged


def write_project(api: Api) -> dict[str, str]:
    """Return the files of a project with these routes."""
    files = {"treefold.toml": "response_model = true\n", "hooks.py": ""}
    for (version, name, method), count in api.items():
        record = _name_type(name, method)
        members = "".join(f"    {name}_{each}: int\n" for each in MEMBERS[:count])
        files[f"Api/{version}/{name.capitalize()}/{method.capitalize()}.py"] = (
            f"from typing import TypedDict\n\n\nclass {record}(TypedDict):\n{members}\n\n"
            f"async def handler(page: int = 1) -> {record}:\n    return {{}}\n"
        )
    return files


def write_api_lock(api: Api) -> str:
    """Return the text of the lock of an API."""
    routes: list[RouteFacts] = []
    definitions: dict[str, Definition] = {}
    known: dict[str, int] = {}
    for route in sorted(api):
        version, name, method = route
        # of two versions, types that differ have the name of the later one
        record = _name_type(name, method)
        if known.setdefault(record, api[route]) != api[route]:
            record = f"{record}@{version}"
        facts, made = _read_route(route, record, api[route])
        routes.append(facts)
        definitions.update(made)
    head = read_lock(HEAD)
    versions = tuple(VersionFacts(each) for each in sorted({route[0] for route in api}))
    return write_lock(Lock(tuple(routes), versions, definitions, head.settings))


@cache
def _read_route(route: Route, record: str, count: int) -> tuple[RouteFacts, dict[str, Definition]]:
    version, name, method = route
    members = "".join(f"  {name}_{each} int\n" for each in MEMBERS[:count])
    text = (
        f"treefold contract 1 rules 1\nerrors problem\nversion {version} stable\n\n"
        f"{method} /{version}/{name}\n  query   page int = 1\n  200     json {record}\n\n"
        f"type {record}\n{members}"
    )
    lock = read_lock(text)
    return lock.routes[0], dict(lock.definitions)


def _name_type(name: str, method: str) -> str:
    return f"{name.capitalize()}{method.capitalize()}ed"
