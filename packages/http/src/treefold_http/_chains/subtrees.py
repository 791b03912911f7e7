"""Subtrees: the prefix of an `under`, and the routes and paths that lie below it.

Prefixes are compared segment by segment: with the template of a route, and with the path itself
where no route serves. `*` stands for one segment. `middleware_chain` composes the entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treefold_http._wire.path_segments import Segments, normalize_segments_leniently
from treefold_router import Route, version_number

ANY = "*"
"""In a prefix, one segment, whatever it is."""


@dataclass(frozen=True, slots=True)
class Under:
    """A middleware entry for everything that is served below a prefix; made by `under`.

    Attributes:
        prefix: segments of a template, without the leading slash.
        entry: the middleware.
    """

    prefix: Segments
    entry: Any

    def covers_route(self, route: Route | None) -> bool:
        """Return True if a route lies below the prefix; for None, if the prefix is the whole."""
        if route is not None:
            return lies_below(self.prefix, split_route_template(route))
        return not self.prefix

    def covers_path(self, spellings: Sequence[Segments]) -> bool:
        """Return True if a path outside the route table lies below the prefix.

        Args:
            spellings: the path as sent, then folded (`list_possible_readings`).
        """
        if lies_below(self.prefix, spellings[0]):
            return True
        folded = normalize_segments_leniently(self.prefix)
        # what one reader behind the mount could take for a path below the prefix is covered
        return any(lies_below(folded, spelling) for spelling in spellings)

    @property
    def may_cover_paths(self) -> bool:
        """True if the prefix can cover a path that is outside of the versions.

        A parameter is one of a route: no mount has it.
        """
        if any(is_parameter(segment) for segment in self.prefix):
            return False
        # below a version there are routes only
        return not self.prefix or version_number(self.prefix[0]) is None

    def __str__(self) -> str:
        return "/" + "/".join(self.prefix)


def split_route_template(route: Route) -> Segments:
    """Return the segments of the template of a route."""
    return tuple(route.template.split("/")[1:])


def is_parameter(segment: str) -> bool:
    """Return True for a segment of a template that is a parameter, such as `{id}`."""
    return segment[0] == "{"


def lies_below(prefix: Segments, segments: Segments) -> bool:
    """Return True if segments begin with those of a prefix."""
    if segments[: len(prefix)] == prefix:
        return True
    return len(segments) >= len(prefix) and all(map(_matches_segment, prefix, segments))


def prefixes_overlap(prefix: Segments, segments: Segments) -> bool:
    """Return True if one lies below the other: something below both may be served."""
    return all(_matches_segment(a, b) for a, b in zip(prefix, segments, strict=False))


def _matches_segment(expected: str, segment: str) -> bool:
    return expected in (ANY, segment)
