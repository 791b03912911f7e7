"""Conditions to SQL.

Conditions on to-many relations become EXISTS, one for each relation and `filter()` call, so that
no row is ever repeated. Negation selects exactly the rows its inside does not: unknown counts as
not selected.
"""

from __future__ import annotations

from treefold_orm._compile._dialect import OPERATORS, operator
from treefold_orm._compile._frame import Frame, Hops
from treefold_orm._compile._nodes import (
    And,
    Compare,
    ExistsNode,
    Expr,
    Node,
    Not,
    Or,
    ParamNode,
    RelatedNode,
    SubqueryNode,
    Test,
)
from treefold_orm._compile._sql import SQL, join
from treefold_orm._compile._values import expression, param, subquery
from treefold_orm._errors import FieldError
from treefold_orm._fields._structured import ArrayField
from treefold_orm._lookups import Lookup

Condition = tuple[SQL, bool]  # the text, and whether it can be NULL
_TEXT_OPS = frozenset(
    {
        "iexact",
        "contains",
        "icontains",
        "startswith",
        "istartswith",
        "endswith",
        "iendswith",
        "regex",
        "iregex",
    }
)


def condition(frame: Frame, node: Node, *, right: Frame) -> Condition:
    """Return a condition's SQL; columns are found in `frame`, right sides in `right`."""
    match node:
        case And():
            return _all(frame, list(node.children), right)
        case Or():
            parts = [condition(frame, child, right=right) for child in node.children]
            if not parts:
                return SQL("1 = 1"), False
            return SQL("({})", join(" OR ", [p[0] for p in parts])), any(p[1] for p in parts)
        case Not():
            text, nullable = condition(frame, node.child, right=right)
            return (SQL("({}) IS NOT TRUE", text) if nullable else SQL("NOT ({})", text)), False
        case Compare():
            return compare(frame, node, node.lookup.hops, right=right)
        case Test():
            return _test(right, node), True
        case ExistsNode():
            return SQL("EXISTS {}", subquery(right, node.query, exists=True)), False
        case RelatedNode():
            return _related(frame, node)
        case _:
            raise FieldError(f"{type(node).__name__} is not a condition")


def rebased_condition(inner: Frame, outer: Frame, node: Node, prefix: Hops) -> Condition:
    """A condition of an aggregate: what goes over `prefix` speaks of the aggregated rows, the rest
    of the outer row.
    """
    match node:
        case And() | Or():
            parts = [rebased_condition(inner, outer, child, prefix) for child in node.children]
            text = join(" AND " if isinstance(node, And) else " OR ", [p[0] for p in parts])
            return SQL("({})", text), any(p[1] for p in parts)
        case Not():
            text, nullable = rebased_condition(inner, outer, node.child, prefix)
            return (SQL("({}) IS NOT TRUE", text) if nullable else SQL("NOT ({})", text)), False
        case Compare() if node.lookup.hops[: len(prefix)] == prefix:
            return compare(inner, node, node.lookup.hops[len(prefix) :], right=outer)
        case _:
            return condition(outer, node, right=outer)


def compare(frame: Frame, node: Compare, hops: Hops, *, right: Frame) -> Condition:
    """One lookup; `hops` is what is left of its way from the frame's model."""
    split = next((i for i, hop in enumerate(hops) if hop.to_many), None)
    if split is not None:
        return _exists(frame, hops[: split + 1], [(node, hops[split + 1 :])], right)
    lookup: Lookup = node.lookup
    if (
        lookup.op in {"null", "notnull"}
        and lookup.column is lookup.column.meta.pk
        and hops
        and not lookup.transforms
    ):
        missing = frame.column(
            hops, lookup.column
        )  # the way back of a one-to-one: is there a row at all
        return SQL("{} IS NULL" if lookup.op == "null" else "{} IS NOT NULL", missing), False
    column = frame.column(hops, lookup.column)
    nullable = (
        lookup.column.null
        or any(hop.nullable for hop in hops)
        or not isinstance(node.right, ParamNode)
        or lookup.custom is not None
    )
    if lookup.keys is not None:
        return _json(frame, lookup, column, node.right, right), True
    if lookup.op == "has_key":
        return frame.dialect.has_key(column, [], _operand(right, node.right, cast=False)), True
    field = lookup.column
    for transform in lookup.transforms:
        column = frame.dialect.extract(transform, column, field)
        field = lookup.field
    if lookup.op == "null" or lookup.op == "notnull":
        return SQL("{} IS NULL" if lookup.op == "null" else "{} IS NOT NULL", column), False
    return _binary(right, lookup, column, node.right), nullable


def _binary(frame: Frame, lookup: Lookup, left: SQL, right: Expr | None) -> SQL:
    op, dialect, field = lookup.op, frame.dialect, lookup.field
    if right is None:
        raise FieldError(f"{lookup.name}__{op} needs a value")
    if lookup.custom is not None:
        value = _operand(frame, right, cast=True)
        return SQL("({})", lookup.custom.template.fill(dialect.name, [left, value]))
    if op == "in":
        return _in(frame, left, right, lookup)
    if op == "range" and isinstance(right, ParamNode):
        return _range(frame, left, right)
    if isinstance(field, ArrayField) and op in {"contains", "contained_by", "overlap"}:
        return dialect.array_test(op, left, _operand(frame, right, cast=True))
    if op in _TEXT_OPS:
        _allow_regex(frame, op)
        return dialect.text(op, left, _operand(frame, right, cast=False))
    return operator(op, left, _operand(frame, right, cast=bool(lookup.transforms)))


def _operand(frame: Frame, node: Expr | None, *, cast: bool) -> SQL:
    if isinstance(node, ParamNode):
        return param(frame, node, cast=cast)
    if node is None:
        raise FieldError("The comparison needs a value")
    return expression(frame, node)


def _in(frame: Frame, left: SQL, right: Expr, lookup: Lookup) -> SQL:
    if isinstance(right, SubqueryNode):
        return SQL("{} IN {}", left, subquery(frame, right))
    if not isinstance(right, ParamNode):
        raise FieldError(f"{lookup.name}__in takes a list or a query")
    mark = frame.builder.param(right.index + frame.offset, frame.dialect.list_encoder(lookup.field))
    return frame.dialect.in_list(left, mark, lookup.field)


def _range(frame: Frame, left: SQL, right: ParamNode) -> SQL:
    encode = right.field.encoder(frame.dialect.name) if right.field is not None else None
    low = frame.builder.param(
        right.index + frame.offset, lambda pair: encode(pair[0]) if encode else pair[0]
    )
    high = frame.builder.param(
        right.index + frame.offset, lambda pair: encode(pair[1]) if encode else pair[1]
    )
    return SQL("{} BETWEEN {} AND {}", left, low, high)


def _test(frame: Frame, node: Test) -> SQL:
    left = expression(frame, node.left)
    if node.op in {"null", "notnull"}:
        return SQL("{} IS NULL" if node.op == "null" else "{} IS NOT NULL", left)
    right = node.right
    if right is None:
        raise FieldError("The comparison needs a value")
    if node.op in OPERATORS:
        first, second = _common_scale(frame, node.left, left, right)
        return operator(node.op, first, second)
    if node.op in {"in", "range"} and node.left.field is not None:
        lookup = Lookup(
            "annotation",
            hops=(),
            column=node.left.field,
            transforms=(),
            keys=None,
            op=node.op,
            field=node.left.field,
        )
        return (
            _in(frame, left, right, lookup)
            if node.op == "in" or not isinstance(right, ParamNode)
            else _range(frame, left, right)
        )
    _allow_regex(frame, node.op)
    return frame.dialect.text(node.op, left, _operand(frame, right, cast=False))


def _common_scale(frame: Frame, left_node: Expr, left: SQL, right: Expr) -> tuple[SQL, SQL]:
    if frame.dialect.name == "sqlite":
        from treefold_orm._compile._sqlite import same_scale

        return same_scale(left, _operand(frame, right, cast=True), left_node.field, right.field)
    return left, _operand(frame, right, cast=True)


def _json(frame: Frame, lookup: Lookup, column: SQL, right: Expr | None, right_frame: Frame) -> SQL:
    dialect, keys = frame.dialect, lookup.keys or ()
    if lookup.op == "has_key":
        marks = [frame.builder.const(key) for key in dialect.keys(keys)]
        return dialect.has_key(column, marks, _operand(right_frame, right, cast=False))
    if isinstance(right, ParamNode) and lookup.op.startswith("json"):
        kind = lookup.op.removeprefix("json")
    else:
        kind = lookup.op if right is None else f"text:{lookup.op}"
    marks = [frame.builder.const(key) for key in dialect.keys(keys)]
    value: SQL | None = None
    if isinstance(right, ParamNode):
        # numbers and text travel as themselves, structures as JSON text
        encode = lookup.column.encoder(dialect.name) if kind.startswith("structure") else None
        if kind.startswith("number") and dialect.name == "postgres":
            encode = _exact
        value = right_frame.builder.param(right.index + right_frame.offset, encode)
    return dialect.json_test(kind, column, marks, value)


def _exact(value: float) -> object:
    import decimal

    return decimal.Decimal(repr(value))


def _all(frame: Frame, children: list[Node], right: Frame) -> Condition:
    parts: list[Condition] = []
    grouped: dict[Hops, list[tuple[Compare, Hops]]] = {}
    for child in _flat(children):
        hops: Hops = child.lookup.hops if isinstance(child, Compare) else ()
        split = next((i for i, hop in enumerate(hops) if hop.to_many), None)
        if split is None or not isinstance(child, Compare):
            parts.append(condition(frame, child, right=right))
        else:
            grouped.setdefault(hops[: split + 1], []).append((child, hops[split + 1 :]))
    parts += [_exists(frame, prefix, inside, right) for prefix, inside in grouped.items()]
    if not parts:
        return SQL("1 = 1"), False
    return SQL("({})", join(" AND ", [p[0] for p in parts])), any(p[1] for p in parts)


def _flat(children: list[Node]) -> list[Node]:
    found: list[Node] = []
    for child in children:
        found.extend(_flat(list(child.children)) if isinstance(child, And) else [child])
    return found


def _exists(
    frame: Frame, prefix: Hops, inside: list[tuple[Compare, Hops]], right: Frame
) -> Condition:
    relation = prefix[-1]
    absent = [
        c
        for c, rest in inside
        if c.lookup.op == "null" and not rest and c.lookup.column is relation.target.pk
    ]
    inner, tie = frame.open_related(relation, prefix[:-1])
    tests = [tie]
    deeper: dict[Hops, list[tuple[Compare, Hops]]] = {}
    for child, rest in inside:
        if child in absent:
            continue
        split = next((i for i, hop in enumerate(rest) if hop.to_many), None)
        if split is not None:
            deeper.setdefault(rest[: split + 1], []).append((child, rest[split + 1 :]))
        else:
            tests.append(compare(inner, child, rest, right=right)[0])
    tests += [_exists(inner, nested, below, right)[0] for nested, below in deeper.items()]
    text = SQL("EXISTS (SELECT 1 FROM {} WHERE {})", inner.source(), join(" AND ", tests))
    return (SQL("NOT {}", text) if absent else text), False


def _related(frame: Frame, node: RelatedNode) -> Condition:
    relation, rest = node.hops[0], node.hops[1:]
    inner, tie = frame.open_related(relation, ())
    tests = [tie]
    if rest:
        tests.append(_related(inner, RelatedNode(rest, node.where))[0])
    elif node.where is not None:
        tests.append(condition(inner, node.where, right=inner)[0])
    return SQL("EXISTS (SELECT 1 FROM {} WHERE {})", inner.source(), join(" AND ", tests)), False


def _allow_regex(frame: Frame, op: str) -> None:
    if op in {"regex", "iregex"} and not getattr(frame.dialect, "regex", False):
        raise FieldError(
            f"{op!r} is off: call configure(..., regex=True) if patterns never come from requests"
        )
