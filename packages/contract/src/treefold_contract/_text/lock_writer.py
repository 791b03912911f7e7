"""Writes `routes.lock`: sorted, one fact a line, LF, no hashes and no versions of tools.

The text depends on the facts alone, not on their order: the writer sorts what has no order.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace

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
    return replace(
        route,
        auth=tuple(
            sorted(
                (replace(each, scopes=tuple(sorted(each.scopes))) for each in route.auth),
                key=lambda each: (each.scheme, each.scopes),
            )
        ),
        guards=tuple(sorted(route.guards)),
        inputs=tuple(sorted(route.inputs, key=lambda each: (each.place, each.name))),
        bodies=tuple(sorted(route.bodies, key=lambda each: each.media)),
        limits=tuple(sorted(route.limits, key=lambda each: each.name)),
        answers=tuple(sorted(route.answers, key=repr)),
        fields=tuple(sorted(route.fields, key=repr)),
        offers=tuple(sorted(route.offers)),
        messages=tuple(sorted(route.messages, key=repr)),
        subprotocols=tuple(sorted(route.subprotocols)),
        closes=tuple(sorted(route.closes)),
    )


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
