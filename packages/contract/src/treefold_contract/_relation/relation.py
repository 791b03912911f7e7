"""The relation of two types, and the value that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from treefold_contract._relation.inclusion import Inclusion, Inclusions, Witness
from treefold_contract._relation.view import EMPTY, View
from treefold_contract._types.nodes import Alphabet, Definition, Definitions, Side

Relation: TypeAlias = Literal["equal", "narrower", "wider", "incomparable", "unknown"]

RELATIONS: dict[tuple[bool | None, bool | None], Relation] = {
    (True, True): "equal",
    (True, False): "wider",
    (False, True): "narrower",
    (False, False): "incomparable",
    (True, None): "wider",
    (None, True): "narrower",
    (False, None): "incomparable",
    (None, False): "incomparable",
    (None, None): "unknown",
}
"""By whether the new type has all values of the old one, and the other way round.

Where one direction is not known, the relation is the one with the graver verdict of the two.
"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a new type relates to an old one.

    Attributes:
        relation: `wider` if the new type has all values of the old one and more.
        lost: a value of the old type that the new one does not have.
        gained: a value of the new type that the old one does not have.
    """

    relation: Relation
    lost: Witness | None = None
    gained: Witness | None = None


def compare_types(
    old: Definition,
    new: Definition,
    *,
    side: Side = "request",
    alphabet: Alphabet = "json",
    old_definitions: Definitions = EMPTY,
    new_definitions: Definitions = EMPTY,
) -> Comparison:
    """Return how a type relates to the one before it.

    Args:
        old: the type before.
        new: the type after.
        side: whether clients send its values in requests, or read them in answers.
        alphabet: whether its values are text, as in a path or a query, or JSON.
        old_definitions: what references of the old type lead to.
        new_definitions: what references of the new type lead to.
    """
    one = View(side, alphabet, old_definitions)
    other = View(side, alphabet, new_definitions)
    keeps = Inclusions(reader=other, writer=one).find(new, old)
    adds = Inclusions(reader=one, writer=other).find(old, new)
    return Comparison(relate(keeps, adds), keeps.witness, adds.witness)


def relate(keeps: Inclusion, adds: Inclusion) -> Relation:
    """Return the relation of whether the new type keeps all old values, and adds none."""
    return RELATIONS[keeps.holds, adds.holds]
