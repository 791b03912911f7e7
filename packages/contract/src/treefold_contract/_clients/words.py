"""What a client says about a route: summary, description and deprecation, as text for editors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from treefold_contract._facts.facts import Lock, RouteFacts
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


class RouteTexts:
    """The texts about the routes of one lock."""

    def __init__(self, lock: Lock, words: Words) -> None:
        self.words = words
        self.versions = {each.name: each.deprecation for each in lock.versions}
        is_moved = any(each and each.successor for each in self.versions.values())
        is_moved = is_moved or any(each.deprecation for each in lock.routes)
        self.keys = {each.key for each in lock.routes} if is_moved else set[tuple[str, str]]()

    def list_lines(self, route: RouteFacts) -> Iterator[str]:
        """Yield the lines of the text about a route, its title first."""
        title = route.title
        yield title
        found = self.words.get(title)
        if found and found.summary:
            yield from ("", *found.summary.splitlines())
        if found and found.description:
            yield from ("", *(line.rstrip() for line in found.description.strip().splitlines()))

    def describe_deprecation(self, route: RouteFacts) -> str:
        """Return a sentence about the deprecation of a route or its version; empty without one."""
        deprecation = route.deprecation or self.versions.get(route.version)
        found = self.words.get(route.title) if self.words else None
        note = found.deprecated if found else ""
        if deprecation is None:
            return note
        since = f"since {deprecation.since}" if deprecation.since else ""
        sunset = f"sunset {deprecation.sunset}" if deprecation.sunset else ""
        successor = self.describe_successor(route, deprecation.successor)
        dates = ", ".join(filter(None, (since, sunset)))
        return "; ".join(filter(None, (dates, successor, note))) or "deprecated"

    def describe_successor(self, route: RouteFacts, successor: str) -> str:
        """Return what to use instead; empty if a version does not have the route."""
        is_lost = successor in self.versions and move_route(route, successor).key not in self.keys
        return f"use {successor}" if successor and not is_lost else ""


@cache
def read_runtime(name: str) -> str:
    """Return a file that is the same in every client."""
    return Path(__file__).with_name("runtimes").joinpath(name).read_text(encoding="utf-8")
