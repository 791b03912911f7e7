"""Keyset paging: pages that begin after a row instead of after a number of rows.

A cursor holds the values of the ordering columns of one row and a mark of the ordering it belongs
to. It comes back from outside: every value is checked by its field, and nothing of it becomes SQL.

Example, `Article.objects.order_by("-views").keyset(2)`: `views` may have ties, so the key completes
the order. The last row of the page has 10 views and the key 7, and the next page is

    cursor   WyI3Mjc2Y2EzMSIsMTAsN10, which is ["7276ca31",10,7] in base64
    WHERE    (t0."views", t0."id") < (?, ?), of (10, 7)

so that one index over both serves the first page and all others, forwards and backwards. Where
NULLs come after the values of the first column, they are read by a statement of their own, when the
values do not fill the page: `t0."views" IS NULL`.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import enum
import hashlib
import itertools
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from treefold_orm._base.errors import FieldError, FieldValueError
from treefold_orm._base.names import build_attribute_reader
from treefold_orm._base.statement import Operation
from treefold_orm._building.own_rows import extend_loaded_columns
from treefold_orm._expressions import steps
from treefold_orm._expressions.nodes import (
    And,
    ColumnNode,
    ExpressionCompare,
    FuncNode,
    Node,
    Or,
    OrderNode,
    ParamNode,
    RowCompare,
)
from treefold_orm._operations.loading import build_too_many_rows_error, fetch_rows as rows_of

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery, QueryOf
    from treefold_orm._fields.base import AnyField

R = TypeVar("R")

MAX_CURSOR = 65_536  # characters; a cursor that would be longer is refused when it is written
_MICROSECOND = dt.timedelta(microseconds=1)
# escapes would make twelve bytes of a character outside of the basic plane, which has four
_encode_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """One page: its rows, and the cursors of the pages after and before it (None at the ends).

    Give `next` as `after=` and `previous` as `before=`. `total` counts the rows of all pages, where
    a `FilterSet` says so.
    """

    items: list[R]
    next: str | None
    previous: str | None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class _KeysetTerm:
    """One part of the order: the field of its values, and the attribute of a row that has them."""

    node: OrderNode
    field: AnyField
    name: str

    @property
    def nulls_last(self) -> bool:
        return (self.node.nulls or ("first" if self.node.descending else "last")) == "last"


@dataclass(frozen=True, slots=True)
class _PageOrder:
    """An order without ties.

    Attributes:
        terms: its parts.
        step: the step of a query that has it; None for a query that is in this order.
        digest: tells cursors of one order from those of another.
        columns: those of the rows themselves, which a page loads.
        read_values: the values of a row.
        beyond: the conditions for rows beyond a cursor, by what they depend on.
    """

    terms: tuple[_KeysetTerm, ...]
    step: steps.Ordering | None
    digest: str
    columns: tuple[AnyField, ...]
    read_values: Callable[[Any], Any]
    beyond: dict[tuple[object, ...], list[steps.Where]] = field(
        default_factory=dict[tuple[object, ...], list[steps.Where]]
    )


def fetch_page(
    query: QueryOf[R], size: int, *, after: str | None, before: str | None, batch_lazy: bool
) -> Operation[Page[R]]:
    """The page of `size` rows after or before a cursor."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise FieldError(f"size={size!r} must be a number of at least 1")
    if after is not None and before is not None:
        raise FieldError("keyset() takes after= or before=, not both")
    query._require_unsliced_and_uncombined("keyset()")
    if query._has_step(steps.Values, steps.Distinct, steps.DistinctOn):
        raise FieldError("keyset() pages instances: call it without values() and distinct()")
    if any(isinstance(step, steps.JoinCTE) and not step.join.single for step in query._key):
        raise FieldError("keyset() cannot page rows that a joined CTE may repeat: order and slice")
    if query._find_order_terms() is None:
        query = query.order_by(*query._meta.ordering)
    order = _find_page_order(query)
    query = query if order.step is None else query._add_step(order.step)
    query = extend_loaded_columns(query, order.columns)
    cursor = after if before is None else before
    parts = [query]
    if cursor is not None:
        values = _decode_cursor(query, order, cursor)
        parts = _split_beyond_cursor(query, order, values, backwards=before is not None)
    found: list[R] = []
    for part in parts:
        directed = part if before is None else part.reverse()
        # one more than the page tells whether there is a further one
        rest = directed._slice_rows(None, size + 1 - len(found))
        found += yield from rows_of(rest, batch_lazy=batch_lazy)
        if len(found) > size:
            break
    if query._max_rows is not None and len(found) > query._max_rows:  # of both parts
        raise build_too_many_rows_error(query)
    more = len(found) > size
    items = found[:size]
    if before is not None:
        items.reverse()
    has_next, has_previous = (True, more) if before is not None else (more, after is not None)
    return Page(
        items,
        _encode_cursor(order, items[-1]) if items and has_next else None,
        _encode_cursor(order, items[0]) if items and has_previous else None,
    )


def _find_page_order(query: AnyQuery) -> _PageOrder:
    """The order of a query, which its key completes where it has to."""
    ordering = query._find_last_step(steps.Ordering)
    if not isinstance(ordering, steps.KnownOrdering):
        return _build_page_order(query)
    known: _PageOrder | None = ordering.page_order
    if known is None:  # of columns alone, so that it is the same in each query
        known = _build_page_order(query)
        object.__setattr__(ordering, "page_order", known)
    return known


def _build_page_order(query: AnyQuery) -> _PageOrder:
    terms = [_build_keyset_term(query, node) for node in query._find_order_terms() or ()]
    exprs = [term.node.expr for term in terms]
    # without hops: a column that is unique in another table may come with many rows of this one
    held = {e.column for e in exprs if isinstance(e, ColumnNode) and not e.hops}
    step = None
    # a unique column that may be NULL leaves ties: many rows may have NULL in it
    if not any(column.unique and not column.null for column in held):
        missing = [key for key in query._meta.keys if key not in held]
        # in the direction of the last one: an index that ends with the key serves both directions
        descending = bool(terms) and terms[-1].node.descending
        nodes = [OrderNode(ColumnNode(key, (), key), descending) for key in missing]
        terms += [_build_keyset_term(query, node) for node in nodes]
        step = steps.KnownOrdering(tuple(term.node for term in terms))
    words = [(term.name, term.node.descending, term.nulls_last) for term in terms]
    text = repr((query._meta.table_name, words))
    return _PageOrder(
        terms=tuple(terms),
        step=step,
        digest=hashlib.sha256(text.encode()).hexdigest()[:8],
        columns=tuple([term.field for term in terms if _is_own_column(term)]),
        read_values=build_attribute_reader([term.name for term in terms]),
    )


def _build_keyset_term(query: AnyQuery, node: OrderNode) -> _KeysetTerm:
    expr = node.expr
    if isinstance(expr, ColumnNode) and not expr.hops:
        if expr.column.sensitive:
            raise FieldError(
                f"keyset() cannot put {expr.column.name!r} into a cursor: it is sensitive"
            )
        return _KeysetTerm(node, expr.column, expr.column.attname)
    if isinstance(expr, FuncNode) and expr.name == "json_order":
        raise FieldError(
            "keyset() cannot order by a JSON path, whose values may be of several types; annotate "
            "it as one, as with Cast(path, int), and order by that"
        )
    hidden = query._find_unloaded_annotations()
    for name, annotation in (query._notes or {}).items():
        if name not in hidden and annotation == expr and expr.field is not None:
            return _KeysetTerm(node, expr.field, name)
    raise FieldError(
        "keyset() orders by columns of the model and annotations: annotate the others first"
    )


# -- conditions -----------------------------------------------------------------------------------


def _split_beyond_cursor(
    query: AnyQuery, order: _PageOrder, values: Sequence[Any], *, backwards: bool
) -> list[AnyQuery]:
    """The queries whose rows, one after the other, are those beyond a cursor."""
    before = len(query._params)
    key = (before, backwards, *[value is None for value in values])
    conditions = order.beyond.get(key)
    if conditions is None:
        params: list[ParamNode | None] = []
        for term, value in zip(order.terms, values, strict=True):
            params.append(None if value is None else ParamNode(term.field, before))
            before += value is not None
        conditions = _build_beyond_steps(order.terms, params, backwards=backwards)
        order.beyond[key] = conditions
    given = [value for value in values if value is not None]
    return [query._add_step(condition, given) for condition in conditions]


def _build_beyond_steps(
    terms: Sequence[_KeysetTerm], params: Sequence[ParamNode | None], *, backwards: bool
) -> list[steps.Where]:
    """The conditions for rows beyond a cursor, in the order of those rows.

    They are two where NULLs of a column come before or after its values: one condition about both
    would make the database read an index from its beginning.
    """
    first, nulls_beyond = terms[0], terms[0].nulls_last is not backwards
    is_null = ExpressionCompare(first.node.expr, "null", None)
    others: Node | None = None
    if not (_is_own_column(first) and first.field.null):
        condition = _build_beyond_condition(terms, params, backwards=backwards)
    elif params[0] is not None:
        others = is_null if nulls_beyond else None
        condition = _build_beyond_condition(terms, params, backwards=backwards, nulls_apart=True)
    else:
        others = None if nulls_beyond else ExpressionCompare(first.node.expr, "notnull", None)
        condition = _build_beyond_condition(terms[1:], params[1:], backwards=backwards)
        condition = condition and And((is_null, condition))
    return [steps.Where(part) for part in (condition, others) if part is not None]


def _build_beyond_condition(
    terms: Sequence[_KeysetTerm],
    params: Sequence[ParamNode | None],
    *,
    backwards: bool,
    nulls_apart: bool = False,
) -> Node | None:
    """The condition for rows after some values; None where there are none.

    With `nulls_apart`, rows with NULL in the first column are left to another condition.
    """

    def find_direction(place: int) -> str | int:
        # columns of one direction without NULLs beyond them are compared as one row of values
        term, param = terms[place], params[place]
        nulls_beyond = term.nulls_last is not backwards and not (nulls_apart and place == 0)
        if param is None or not _is_own_column(term) or (term.field.null and nulls_beyond):
            return place
        return _find_operator(term, backwards=backwards)

    branches: list[Node] = []
    equal: list[Node] = []
    for direction, group in itertools.groupby(range(len(terms)), find_direction):
        places = list(group)
        left = tuple([terms[place].node.expr for place in places])
        further: Node | None
        if isinstance(direction, int):
            further = _build_term_condition(terms[direction], params[direction], backwards)
        elif len(places) == 1:
            further = ExpressionCompare(left[0], direction, params[places[0]])
        else:
            right = [param for place in places if (param := params[place]) is not None]
            further = RowCompare(left, direction, tuple(right))
        if further is not None:
            branches.append(And((*equal, further)) if equal else further)
        for place, expr in zip(places, left, strict=True):
            param = params[place]
            equal.append(ExpressionCompare(expr, "null" if param is None else "exact", param))
    if len(branches) < 2:
        return branches[0] if branches else None
    # alone, OR makes the database read an index from its beginning: a range lets it seek
    start = branches[0]
    if params[0] is None or not isinstance(start, (ExpressionCompare, RowCompare)):
        return Or(tuple(branches))
    bound = ExpressionCompare(terms[0].node.expr, f"{start.op}e", params[0])
    return And((bound, Or(tuple(branches))))


def _build_term_condition(
    term: _KeysetTerm, param: ParamNode | None, backwards: bool
) -> Node | None:
    """The condition for rows after a value in one column; None where there are none."""
    expr = term.node.expr
    nulls_beyond = term.nulls_last is not backwards
    if param is None:
        return None if nulls_beyond else ExpressionCompare(expr, "notnull", None)
    beyond = ExpressionCompare(expr, _find_operator(term, backwards=backwards), param)
    if not nulls_beyond:
        return beyond
    # a column of another row is NULL where there is no such row
    return Or((beyond, ExpressionCompare(expr, "null", None)))


def _find_operator(term: _KeysetTerm, *, backwards: bool) -> str:
    return "lt" if term.node.descending is not backwards else "gt"


def _is_own_column(term: _KeysetTerm) -> bool:
    return isinstance(term.node.expr, ColumnNode) and not term.node.expr.hops


# -- cursors --------------------------------------------------------------------------------------


def _encode_cursor(order: _PageOrder, row: Any) -> str:
    terms = order.terms
    values = order.read_values(row)
    parts = [
        # most are numbers and texts; for all else the encoder makes another one first
        repr(value)
        if value.__class__ is int
        else _encode_json(_serialize_cursor_value(value, term))
        for value, term in zip(values, terms, strict=True)
    ]
    text = f'["{order.digest}",{",".join(parts)}]'
    made = base64.urlsafe_b64encode(text.encode(errors="surrogatepass")).decode().rstrip("=")
    if len(made) > MAX_CURSOR:
        longest = max(zip(terms, values, strict=True), key=lambda pair: len(str(pair[1])))[0]
        raise FieldError(
            f"keyset() cannot put a value of {longest.name!r} into a cursor: it would have "
            f"{len(made)} characters, and {MAX_CURSOR} is the most; order by a shorter value, such "
            f"as annotate(start=Substr({longest.name!r}, 1, 100))"
        )
    return made


def _serialize_cursor_value(value: Any, term: _KeysetTerm) -> Any:
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    if isinstance(value, dt.timedelta):
        return value // _MICROSECOND
    raise FieldError(f"keyset() cannot order by {term.name!r}: its values do not fit in a cursor")


def _decode_cursor(query: AnyQuery, order: _PageOrder, cursor: str) -> list[Any]:
    wrong = FieldValueError(query._meta.name, "cursor", reason="not a cursor of this ordering")
    # before it is decoded: this bounds what a request can make the server parse
    if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR:  # pyright: ignore[reportUnnecessaryIsInstance] - it comes from outside
        raise wrong
    try:
        # validate=True, or characters outside of the alphabet would be passed over
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found = json.loads(text)
    # RecursionError: lists inside of lists, thousands deep
    except (binascii.Error, ValueError, RecursionError):
        raise wrong from None
    if not isinstance(found, list):
        raise wrong
    parts = cast("list[Any]", found)
    if len(parts) != len(order.terms) + 1 or parts[0] != order.digest:
        raise wrong
    try:
        return [
            _parse_cursor_value(term, part)
            for term, part in zip(order.terms, parts[1:], strict=True)
        ]
    except (ValueError, TypeError, ArithmeticError):
        raise wrong from None


def _parse_cursor_value(term: _KeysetTerm, part: Any) -> Any:
    if part is None:
        return None
    if term.field.internal == "duration" and part.__class__ is int:
        part *= _MICROSECOND
    return term.field.parse(part) if isinstance(part, str) else term.field.coerce(part)
