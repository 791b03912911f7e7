"""A view: the definitions that types refer to, and where their values are.

A request is written by clients and read by the service, an answer the other way round. Values of a
path, a query, a header or a form are text; others are JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

from treefold_contract._types.nodes import (
    Alphabet,
    Definition,
    Definitions,
    Reference,
    Side,
    find_definition,
)

EMPTY: Definitions = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class View:
    """Where a type stands.

    Attributes:
        side: whether clients write its values, or read them.
        alphabet: whether its values are text or JSON.
        definitions: what its references refer to.
        is_reader: True for a reader, which refuses only what it is known to refuse.
    """

    side: Side
    alphabet: Alphabet = "json"
    definitions: Definitions = field(default_factory=lambda: EMPTY, compare=False)
    is_reader: bool = False

    def follow(self, node: Definition) -> Definition:
        """Return the type that a reference leads to; any other type is returned as it is."""
        seen: set[str] = set()
        while isinstance(node, Reference):
            if node.name in seen:  # a name that stands for itself has no values
                break
            seen.add(node.name)
            node = find_definition(self.definitions, node.name, self.side)
        return node
