"""The members of declared types, at any depth: what a body or an answer consists of."""

from __future__ import annotations

from collections.abc import Iterator

from treefold_http._types import tree


def walk_members(node: tree.TypeNode) -> Iterator[tree.Member]:
    """Yield the members of all records in a type."""
    for inner, _ in tree.walk_types(node):
        if isinstance(inner, tree.Record):
            yield from inner.declared_members
