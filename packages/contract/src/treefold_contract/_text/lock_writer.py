"""Writes `routes.lock`: sorted, one fact a line, LF, no hashes and no versions of tools.

The text depends on the facts alone, not on their order: the writer sorts what has no order.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from treefold_contract._facts.facts import Lock, RouteFacts, Settings, VersionFacts
from treefold_contract._text.route_lines import route_lines, write_dates, write_path
from treefold_contract._text.type_blocks import definition_lines
from treefold_contract._text.type_text import check_word
from treefold_contract._text.versions import (
    compare_versions,
    routes_of,
    routes_outside,
    sort_routes,
    sort_versions,
)

T = TypeVar("T")
FORMAT = "treefold contract 1"


def write_lock(lock: Lock) -> str:
    """Return the text of a lock.

    Raises:
        ValueError: a name or a literal cannot be written.
    """
    sections = [list(_head_lines(lock)), *_blocks(routes_outside(lock))]
    base: list[RouteFacts] | None = None
    previous = ""
    for version in sort_versions(lock.versions):
        own = [normalize_route(route) for route in routes_of(lock, version.name)]
        if base is None:
            sections += _blocks(own)
        else:
            difference = compare_versions(base, own, version.name)
            removed = [f"- {each.method} {write_path(each.path)}" for each in difference.removed]
            sections.append([f"{version.name} = {previous}", *removed])
            sections += _blocks(difference.changed)
        base, previous = own, version.name
    sections.append(list(definition_lines(lock.definitions)))
    text = "\n\n".join("\n".join(lines) for lines in sections if lines)
    return unicodedata.normalize("NFC", text) + "\n"


def normalize_route(route: RouteFacts) -> RouteFacts:
    """Return a route whose facts are in the order of a lock, so that equal ones compare equal."""
    auth = tuple(
        replace(each, scopes=tuple(sorted(each.scopes))) if len(each.scopes) > 1 else each
        for each in route.auth
    )
    return replace(
        route,
        auth=_sort_facts(auth),
        guards=_sort_facts(route.guards),
        inputs=_sort_facts(route.inputs),
        bodies=_sort_facts(route.bodies),
        limits=_sort_facts(route.limits),
        answers=_sort_facts(route.answers),
        fields=_sort_facts(route.fields),
        offers=_sort_facts(route.offers),
        messages=_sort_facts(route.messages),
        subprotocols=_sort_facts(route.subprotocols),
        closes=_sort_facts(route.closes),
    )


def _sort_facts(facts: tuple[T, ...]) -> tuple[T, ...]:
    # any order will do that depends on the facts alone
    return tuple(sorted(facts, key=repr)) if len(facts) > 1 else facts


def _head_lines(lock: Lock) -> Iterator[str]:
    yield f"{FORMAT} rules {lock.rules}"
    yield from _setting_lines(lock.settings)
    yield from map(_version_line, sort_versions(lock.versions))


def _setting_lines(settings: Settings) -> Iterator[str]:
    if settings.default_version:
        yield f"default {check_word(settings.default_version)}"
    if settings.errors:
        yield f"errors {check_word(settings.errors)}"
    yield from (f"automatic {check_word(each)}" for each in sorted(settings.automatic))
    yield from (f"mount {check_word(each)}" for each in sorted(settings.mounts))


def _version_line(version: VersionFacts) -> str:
    words = f"version {version.name} {version.stability}"
    if version.deprecation is None:
        return words
    return f"{words} deprecated {write_dates(version.deprecation)}".rstrip()


def _blocks(routes: Iterable[RouteFacts]) -> list[list[str]]:
    return [
        [f"{route.method} {write_path(route.path)}", *route_lines(route)]
        for route in sort_routes(routes)
    ]
