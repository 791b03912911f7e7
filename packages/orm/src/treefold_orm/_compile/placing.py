"""Which conditions speak of the same related row, and speaking of that row. No SQL.

Conditions on one to-many relation that are joined by AND share a row, also those inside an OR. What
is negated asks about all rows, and stands for itself.

Example, `identify_rows_shared_with_or` finds that three lookups over `articles` speak of one row,
two of them inside an OR, and `rebind_condition` makes them lookups of that row:

    >>> Writer.objects.filter(
    ... Q(articles__title="x") | Q(articles__title="y"), articles__views__gt=5
    ... ).values("name")
    SELECT t0."name" FROM "writer" AS t0 WHERE (EXISTS (SELECT 1 FROM "article" AS t1 WHERE
    t1."writer_id" = t0."id" AND ((t1."title" = ? OR t1."title" = ?) AND t1."views" > ?)))
"""

from __future__ import annotations

from typing import Any, NamedTuple

from treefold_orm._base.records import frozen_record
from treefold_orm._compile.frame import Hops
from treefold_orm._expressions.nodes import And, Compare, Node, Or
from treefold_orm._fields.meta import Relation


class RelatedRowsKey(NamedTuple):
    """The related rows that a lookup speaks of; lookups with equal keys share a row under AND.

    `frame` is that of the row that has many, and `hops` the way from there to them: in the example,
    all three lookups have the frame of `writer AS t0` and `(Writer.articles,)`.
    """

    frame: Any
    hops: Hops


@frozen_record
class ComparisonInFrame(Node):
    """A lookup of a row that is at hand in `frame`; `hops` is the rest of its way.

    The first `joined` of them are joined there already, or will be, with a row for each related
    one: the lookup speaks of that row.
    """

    frame: Any
    compare: Compare
    hops: Hops
    joined: int = 0


def find_first_to_many(hops: Hops, already_joined: int = 0) -> int | None:
    """The place of the first relation that leads to many rows, after those that are joined."""
    return next((i for i, hop in enumerate(hops) if hop.to_many and i >= already_joined), None)


def count_joined_hops(node: Node) -> int:
    """How many relations of a lookup's way are joined."""
    return node.joined if isinstance(node, ComparisonInFrame) else 0


def unwrap_lookup(node: Compare | ComparisonInFrame) -> tuple[Compare, Hops]:
    """A lookup, and the rest of its way."""
    if isinstance(node, ComparisonInFrame):
        return node.compare, node.hops
    return node, node.lookup.hops


def identify_related_rows(frame: Any, node: Node) -> RelatedRowsKey | None:
    """The rows that a lookup speaks of, None where it is no lookup over a to-many relation."""
    if not isinstance(node, (Compare, ComparisonInFrame)):
        return None
    hops = unwrap_lookup(node)[1]
    split = find_first_to_many(hops, count_joined_hops(node))
    if split is None:
        return None
    return RelatedRowsKey(_resolve_frame(frame, node), hops[: split + 1])


def _resolve_frame(frame: Any, node: Node) -> Any:
    return node.frame if isinstance(node, ComparisonInFrame) else frame


def identify_all_related_rows(frame: Any, node: Node) -> set[RelatedRowsKey]:
    """The rows that a condition speaks of, outside of what it negates."""
    if isinstance(node, (And, Or)):
        return {key for child in node.children for key in identify_all_related_rows(frame, child)}
    key = identify_related_rows(frame, node)
    return set() if key is None else {key}


def identify_rows_shared_with_or(frame: Any, children: list[Node]) -> RelatedRowsKey | None:
    """Rows that an OR speaks of along with another of these conditions."""
    spoken = [identify_all_related_rows(frame, child) for child in children]
    for i, child in enumerate(children):
        if isinstance(child, Or):
            others = set[RelatedRowsKey]().union(*spoken[:i], *spoken[i + 1 :])
            # the order of a set differs between processes, and the text of a statement should not
            for key in sorted(spoken[i] & others, key=lambda key: [hop.name for hop in key.hops]):
                return key
    return None


def split_conditions_by_related_rows(
    frame: Any, children: list[Node], key: RelatedRowsKey
) -> tuple[list[Node], list[Node]]:
    """The conditions that must be met at once with those about `key`, and the others."""
    inside: list[Node] = []
    outside, reached = children, {key}
    while True:
        joining = [child for child in outside if identify_all_related_rows(frame, child) & reached]
        if not joining:
            return inside, outside
        inside += joining
        outside = [child for child in outside if child not in joining]
        # an OR may speak of rows of further relations, whose conditions have to come inside with it
        for child in joining:
            if isinstance(child, Or):
                reached |= set(identify_all_related_rows(frame, child))


def rebind_condition(frame: Any, node: Node, key: RelatedRowsKey, inner: Any) -> Node:
    """The condition with lookups over `key` speaking of the row in `inner`."""
    if isinstance(node, (And, Or)):
        return type(node)(
            tuple(rebind_condition(frame, child, key, inner) for child in node.children)
        )
    if isinstance(node, (Compare, ComparisonInFrame)) and _resolve_frame(frame, node) is key.frame:
        compare, hops = unwrap_lookup(node)
        if hops[: len(key.hops)] == key.hops:
            return ComparisonInFrame(inner, compare, hops[len(key.hops) :])
    return node


def evaluate_without_related_row(frame: Any, node: Node, key: RelatedRowsKey) -> Node | bool:
    """The condition where there is no row over `key`; True or False where that decides it."""
    if isinstance(node, (And, Or)):
        # True decides an OR, False an AND; the other value of both drops out
        decided = isinstance(node, Or)
        rest = [evaluate_without_related_row(frame, child, key) for child in node.children]
        if any(child is decided for child in rest):
            return decided
        left = tuple(child for child in rest if not isinstance(child, bool))
        return type(node)(left) if left else not decided
    if (
        not isinstance(node, (Compare, ComparisonInFrame))
        or identify_related_rows(frame, node) != key
    ):
        return node
    compare, hops = unwrap_lookup(node)
    return matches_missing_row(compare, hops[len(key.hops) :], key.hops[-1])


def matches_missing_row(node: Compare, remaining_hops: Hops, relation: Relation) -> bool:
    """Return True if a lookup over `relation`, and `remaining_hops` from there, is met without a
    row.
    """
    lookup = node.lookup
    # a stored row has a key: only a missing one has NULL there. Of a column further on
    # (`articles__boss=None`), the row itself must exist
    return lookup.op == "null" and not remaining_hops and lookup.column in relation.target.keys
