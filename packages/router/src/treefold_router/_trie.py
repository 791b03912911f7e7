"""The trie of URL segments: one node for each place in the tree.

Holds how folders become nodes (routing rules 2, 4 and 6) and how segments choose among them
(rule 5). Knows nothing of raw paths, of refusals or of disks.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from treefold_router._naming import parameter_name, segment_of
from treefold_router._path import encode_segment, has_control_character
from treefold_router._types import Found

_DOT_SEGMENTS = frozenset((b".", b".."))
_NOTHING: dict[Any, Any] = {}
"""Shared by all places without children or without routes, which are most; never written to."""


class TrieNode:
    """One place in the tree: the places below it, and the outcomes of verbs here.

    Args:
        parameter: name of the parameter a dynamic node fills; empty for a static one.
    """

    __slots__ = ("dynamic", "parameter", "static", "verbs")

    def __init__(self, parameter: str = "") -> None:
        self.parameter = parameter
        # Keyed by UTF-8 bytes: a request is split without making text of it.
        self.static: Mapping[bytes, TrieNode] = _NOTHING
        self.dynamic: TrieNode | None = None
        # A dynamic place keeps its routes in Founds as well, so that both kinds read alike.
        # The route of a WebSocket handshake is under None, which no HTTP verb can match.
        self.verbs: Mapping[str | None, Found] = _NOTHING

    def register_outcome(self, verb: str | None, found: Found) -> None:
        """Register the outcome of a verb at this node."""
        self.verbs = {**self.verbs, verb: found}


def insert_path(root: TrieNode, folders: Iterable[str]) -> tuple[TrieNode, str, tuple[str, ...]]:
    """Add the places a folder path leads through.

    A dynamic node keeps the parameter name of the first path through it.

    Returns:
        The last node, its URL template, and the effective parameter names along the path.
    """
    node = root
    template = ""
    parameters: list[str] = []
    for folder in folders:
        if (name := parameter_name(folder)) is None:
            segment = segment_of(folder)
            node = _ensure_static_child(node, segment.encode())
            template += f"/{segment}"
        else:
            node = _ensure_dynamic_child(node, name)
            parameters.append(node.parameter)
            template += f"/{{{node.parameter}}}"
    return node, template, tuple(parameters)


def match_path(
    root: TrieNode, segments: Iterable[bytes], verb: str | None
) -> Found | TrieNode | None:
    """Follow segments to a place, and return the outcome of a verb there.

    A static child that equals the segment is final, also where a dynamic one would lead further.

    Args:
        root: where to start.
        segments: segments without escapes; empty ones are dropped.
        verb: as in `TrieNode.verbs`.

    Returns:
        The answer; the place where nothing serves the verb; None where the tree ends before the
        segments do, or where a value is no text a client may send.
    """
    node = root
    params: dict[str, str] | None = None
    for segment in segments:
        if (child := node.static.get(segment)) is None:
            # Checked here, not up front: a segment that equals a static one needs no check.
            if not segment:
                continue
            if (child := node.dynamic) is None:
                return None
            # Letters and digits need no other look, and most values are made of nothing else.
            value = segment.decode() if segment.isalnum() else _decode_parameter_value(segment)
            if value is None:
                return None
            if params is None:
                params = {}
            params[child.parameter] = value
        node = child
    if (served := node.verbs.get(verb)) is None:
        return node
    if params is None:
        return served
    found = new_found(Found)
    found.route, found.params = served.route, params
    return found


new_found = Found.__new__
"""One is made for each request with parameters; a call of the class takes a quarter longer."""


def _decode_parameter_value(segment: bytes) -> str | None:
    """The value of a segment; None where no client may send it."""
    if segment in _DOT_SEGMENTS:
        return None
    try:
        value = segment.decode()
    except UnicodeDecodeError:
        return None
    return None if has_control_character(value) else value


def walk_static_paths(node: TrieNode, raw_path: bytes = b"") -> Iterator[tuple[bytes, TrieNode]]:
    """Yield each place that no parameter leads to, and its path as clients spell it."""
    for segment, child in node.static.items():
        path = raw_path + b"/" + encode_segment(segment.decode())
        yield path, child
        yield from walk_static_paths(child, path)


def _ensure_static_child(node: TrieNode, segment: bytes) -> TrieNode:
    if (child := node.static.get(segment)) is None:
        child = TrieNode()
        if node.static is _NOTHING:
            node.static = {}
        cast("dict[bytes, TrieNode]", node.static)[segment] = child
    return child


def _ensure_dynamic_child(node: TrieNode, name_if_new: str) -> TrieNode:
    if node.dynamic is None:
        node.dynamic = TrieNode(name_if_new)
    return node.dynamic
