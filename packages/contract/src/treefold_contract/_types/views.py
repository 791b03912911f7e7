"""The two views of a type: as a body that is accepted, and as an answer that is sent.

What only a body can do is to be refused, for a member that is not known, or to be accepted in
another spelling, such as "7" for 7. Where the views differ in nothing else, one definition serves
both sides.
"""

from __future__ import annotations

from dataclasses import replace

from treefold_contract._types.nodes import (
    Definition,
    ListType,
    MapType,
    Record,
    Scalar,
    TupleType,
    TypeNode,
    UnionType,
)


def without_input_rules(definition: Definition) -> Definition:
    """Return a definition without what is true of bodies alone."""
    if isinstance(definition, Record):
        members = tuple(
            replace(member, type=_without_lax(member.type)) for member in definition.members
        )
        return Record(members)
    return _without_lax(definition)


def _without_lax(node: TypeNode) -> TypeNode:
    match node:
        case Scalar():
            return replace(node, is_lax=False) if node.is_lax else node
        case ListType():
            return replace(node, item=_without_lax(node.item))
        case TupleType():
            return TupleType(tuple(map(_without_lax, node.items)))
        case MapType():
            return MapType(_without_lax(node.key), _without_lax(node.value))
        case UnionType():
            return replace(node, options=tuple(map(_without_lax, node.options)))
        case _:
            return node
