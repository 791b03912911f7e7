"""What a client says about a route: summary, description and deprecation, as text for editors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from treefold_contract._facts.facts import Deprecation, Lock, RouteFacts
from treefold_contract._text.versions import move_route


@dataclass(frozen=True, slots=True)
class RouteWords:
    """The words of a route, which a lock does not hold.

    Attributes:
        summary: one line.
        description: any number of lines.
        deprecated: a sentence about a deprecation, beside its dates.
    """

    summary: str = ""
    description: str = ""
    deprecated: str = ""


Words = Mapping[str, RouteWords]
"""The words of routes, by `RouteFacts.title`."""
NO_WORDS: Words = MappingProxyType({})


def list_lines(route: RouteFacts, words: Words) -> Iterator[str]:
    """Yield the lines of the text about a route, its title first."""
    found = words.get(route.title, RouteWords())
    yield route.title
    if found.summary:
        yield from ("", *found.summary.splitlines())
    if found.description:
        yield from ("", *(line.rstrip() for line in found.description.strip().splitlines()))


def describe_deprecation(route: RouteFacts, lock: Lock, words: Words) -> str:
    """Return a sentence about the deprecation of a route, or of its version; empty without one."""
    version = next((each for each in lock.versions if each.name == route.version), None)
    deprecation = route.deprecation or (version.deprecation if version else None)
    note = words.get(route.title, RouteWords()).deprecated
    if deprecation is None:
        return note
    since = f"since {deprecation.since}" if deprecation.since else ""
    sunset = f"sunset {deprecation.sunset}" if deprecation.sunset else ""
    successor = _describe_successor(route, deprecation, lock)
    dates = ", ".join(filter(None, (since, sunset)))
    return "; ".join(filter(None, (dates, successor, note))) or "deprecated"


def _describe_successor(route: RouteFacts, deprecation: Deprecation, lock: Lock) -> str:
    if not deprecation.successor:
        return ""
    if deprecation.successor in {each.name for each in lock.versions}:
        moved = move_route(route, deprecation.successor)
        if moved.key not in {each.key for each in lock.routes}:
            return ""
    return f"use {deprecation.successor}"


def read_runtime(name: str) -> str:
    """Return a file that is the same in every client."""
    return Path(__file__).with_name("runtimes").joinpath(name).read_text(encoding="utf-8")
