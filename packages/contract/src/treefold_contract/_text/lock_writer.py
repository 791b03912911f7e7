"""Writes `routes.lock`: sorted, one fact a line, LF, no hashes and no versions of tools.

The text depends on the facts alone, not on their order: the writer sorts what has no order.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence

from treefold_contract._facts.facts import Lock, RouteFacts, Settings, VersionFacts
from treefold_contract._text.route_lines import route_lines, write_dates, write_line, write_path
from treefold_contract._text.type_blocks import group_by_name, write_definition
from treefold_contract._text.type_text import check_word
from treefold_contract._text.versions import (
    RouteBlock,
    list_blocks,
    routes_outside,
    sort_routes,
    sort_versions,
)
from treefold_contract._types.nodes import Definition

FORMAT = "treefold contract 1"


def write_lock(lock: Lock) -> str:
    """Return the text of a lock.

    Raises:
        ValueError: a name or a literal cannot be written.
    """
    return join_lines(lock, write_route, write_definition)


def join_lines(
    lock: Lock,
    lines_of_route: Callable[[RouteFacts], Sequence[str]],
    lines_of_type: Callable[[str, Definition], Sequence[str]],
) -> str:
    """Return the text of a lock from the lines of its routes and types."""
    versions = [each.name for each in sort_versions(lock.versions)]
    outside = ([RouteBlock(route)] for route in sort_routes(routes_outside(lock)))
    inside = (route for route in lock.routes if route.version in versions)
    sections = [list(_head_lines(lock))]
    for blocks in (*outside, *list_blocks(inside, versions)):
        lines: list[str] = []
        for block in blocks:
            lines += lines_of_route(block.route)
            if block.gone:
                lines.append(write_line("gone", block.gone))
        sections.append(lines)
    sections += (
        [line for key in keys for line in lines_of_type(key, lock.definitions[key])]
        for keys in group_by_name(lock.definitions)
    )
    text = "\n\n".join("\n".join(lines) for lines in sections)
    return unicodedata.normalize("NFC", text) + "\n"


def write_route(route: RouteFacts) -> list[str]:
    """Return the lines of a route, which begin with its method and path."""
    return [f"{route.method} {write_path(route.path)}", *route_lines(route)]


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
