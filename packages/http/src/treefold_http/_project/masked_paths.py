"""The segments to mask in the log of a path that no route serves.

A mistyped path may hold the same secret as the right one: `/v1/reset/TOKEN/x`, `/v9/reset/TOKEN`,
or a path that is refused before routing. The templates with a sensitive parameter are a tree
without versions; a path is followed in it as far as it goes, in any case and encoding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

from treefold_http._wire.root_path import below_root
from treefold_logging import is_sensitive
from treefold_router import version_number

MAX_SEGMENTS = 64
"""Segments that are looked at; the log cuts a longer path anyway."""


@dataclass(slots=True, eq=False)
class _Node:
    literals: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    parameter: _Node | None = None
    is_secret: bool = False


class MaskedPaths:
    """Templates with sensitive parameters, to compare paths with.

    Args:
        templates: URL templates such as `/v1/reset/{token}`.
    """

    def __init__(self, templates: Iterable[str]) -> None:
        self._root = _Node()
        for template in set(templates):
            segments = template.split("/")[2:]
            secret = [part[:1] == "{" and is_sensitive(part[1:-1]) for part in segments]
            if any(secret):
                self._add_path(segments, secret)

    def __bool__(self) -> bool:
        return bool(self._root.literals or self._root.parameter)

    def _add_path(self, segments: list[str], secret_flags: list[bool]) -> None:
        node = self._root
        while any(secret_flags):  # what is behind the last secret does not matter
            segment, is_secret = segments.pop(0), secret_flags.pop(0)
            if segment.startswith("{"):
                node.parameter = node = node.parameter or _Node()
                node.is_secret |= is_secret
            else:
                node = node.literals.setdefault(segment.lower(), _Node())

    def find_secret_segments(self, raw_path: bytes, root_path: str) -> tuple[int, ...]:
        """Return the indexes, among the non-empty segments of a path, that may be secrets.

        Args:
            raw_path: the path as sent, or an absolute target.
            root_path: the prefix that the application is mounted at.
        """
        segments = split_path(raw_path)
        start = count_root_segments(raw_path, root_path)
        if segments[start:] and version_number(segments[start].lower()) is not None:
            start += 1
        found: list[int] = []
        nodes = [self._root]
        for index, segment in enumerate(segments[start : start + MAX_SEGMENTS], start):
            # An encoded slash makes one segment of two for the router, but not for a proxy.
            for part in filter(None, unquote(segment).lower().split("/")):
                # all at once: `/reset/new` may be a literal here and a token in another template
                nodes = [child for node in nodes for child in _find_matching_children(node, part)]
                if any(node.is_secret for node in nodes):
                    found.append(index)
            if not nodes:
                break
        return tuple(dict.fromkeys(found))


def count_root_segments(raw_path: bytes, root_path: str) -> int:
    """Return how many segments of a path, or of an absolute target, stand before the path below a
    prefix. The log counts all of them.
    """
    path = raw_path
    if not raw_path.startswith(b"/") and b"://" in raw_path:
        path = b"/" + raw_path.partition(b"://")[2].partition(b"/")[2]
    return len(split_path(raw_path)) - len(split_path(below_root(path, root_path)))


def split_path(path: bytes) -> list[str]:
    """Return the non-empty segments of a path as sent."""
    return [part for part in path.decode("latin-1").split("/") if part]


def _find_matching_children(node: _Node, part: str) -> Iterable[_Node]:
    if part in node.literals:
        yield node.literals[part]
    if node.parameter is not None:
        yield node.parameter
