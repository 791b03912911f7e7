"""Keyset paging: pages that begin after a row instead of after a number of rows.

A cursor holds the values of the ordering columns of one row and a mark of the ordering it belongs
to. It comes back from outside: every value is checked by its field, and nothing of it becomes SQL.

Example, `Article.objects.order_by("-views").keyset(2)`: `views` may have ties, so the key completes
the order. The last row of the page has 10 views and the key 7, and the next page is

    cursor   WyI3Mjc2Y2EzMSIsMTAsN10, which is ["7276ca31",10,7] in base64
    WHERE    t0."views" <= ? AND ((t0."views" < ?) OR (t0."views" = ? AND t0."id" > ?)),
             of (10, 10, 10, 7)
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import enum
import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from treefold_orm._base.errors import FieldError, FieldValueError
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
)
from treefold_orm._operations.loading import fetch_rows as rows_of

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery, QueryOf
    from treefold_orm._fields.base import AnyField

R = TypeVar("R")

MAX_CURSOR = 65_536  # characters; a cursor that would be longer is refused when it is written
_MICROSECOND = dt.timedelta(microseconds=1)


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
    query, terms = _make_order_total(query)
    columns = [term.node.expr for term in terms]
    own = [each.column for each in columns if isinstance(each, ColumnNode) and not each.hops]
    query = extend_loaded_columns(query, own)
    cursor = after if before is None else before
    part = query
    if cursor is not None:
        part = _filter_beyond_cursor(
            query, terms, _decode_cursor(query, terms, cursor), backwards=before is not None
        )
    if before is not None:
        part = part.reverse()
    # one more than the page tells whether there is a further one
    found = yield from rows_of(part._slice_rows(None, size + 1), batch_lazy=batch_lazy)
    more = len(found) > size
    items = found[:size]
    if before is not None:
        items.reverse()
    has_next, has_previous = (True, more) if before is not None else (more, after is not None)
    return Page(
        items,
        _encode_cursor(query, terms, items[-1]) if items and has_next else None,
        _encode_cursor(query, terms, items[0]) if items and has_previous else None,
    )


def _make_order_total(query: QueryOf[R]) -> tuple[QueryOf[R], list[_KeysetTerm]]:
    """The query in an order without ties, which the key completes where it has to."""
    if query._find_order_terms() is None:
        query = query.order_by(*query._meta.ordering)
    terms = [_build_keyset_term(query, node) for node in query._find_order_terms() or ()]
    exprs = [term.node.expr for term in terms]
    # without hops: a column that is unique in another table may come with many rows of this one
    held = {e.column for e in exprs if isinstance(e, ColumnNode) and not e.hops}
    # a unique column that may be NULL leaves ties: many rows may have NULL in it
    if not any(column.unique and not column.null for column in held):
        missing = [key for key in query._meta.keys if key not in held]
        nodes = [OrderNode(ColumnNode(key, (), key), descending=False) for key in missing]
        terms += [_build_keyset_term(query, node) for node in nodes]
        query = query._add_step(steps.Ordering(tuple(term.node for term in terms)))
    return query, terms


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


def _filter_beyond_cursor(
    query: AnyQuery, terms: list[_KeysetTerm], values: Sequence[Any], *, backwards: bool
) -> AnyQuery:
    # not (a, b) > (?, ?): directions may differ, and NULL compares with nothing
    scope = query._make_scope()
    branches: list[Node] = []
    equal: list[Node] = []
    bound: Node | None = None
    for term, value in zip(terms, values, strict=True):
        param = None if value is None else scope.add_param(value, term.field)
        further = _build_beyond_condition(term, param, backwards=backwards)
        # alone, OR makes the database read an index from its beginning: a range lets it seek
        if isinstance(further, ExpressionCompare) and param is not None and not equal:
            bound = ExpressionCompare(further.left, f"{further.op}e", param)
        if further is not None:
            branches.append(And((*equal, further)))
        equal.append(ExpressionCompare(term.node.expr, "null" if param is None else "exact", param))
    if not branches:
        return query._add_step_from_scope(steps.NoRows(), scope)
    beyond = Or(tuple(branches))
    condition = beyond if bound is None or len(terms) == 1 else And((bound, beyond))
    return query._add_step_from_scope(steps.Where(condition), scope)


def _build_beyond_condition(term: _KeysetTerm, param: Any, *, backwards: bool) -> Node | None:
    """The condition for rows after a value in one column; None where there are none."""
    expr = term.node.expr
    nulls_beyond = term.nulls_last is not backwards
    if param is None:
        return None if nulls_beyond else ExpressionCompare(expr, "notnull", None)
    beyond = ExpressionCompare(expr, "lt" if term.node.descending is not backwards else "gt", param)
    # a column of another row is NULL where there is no such row
    never_null = isinstance(expr, ColumnNode) and not expr.column.null and not expr.hops
    if not nulls_beyond or never_null:
        return beyond
    return Or((beyond, ExpressionCompare(expr, "null", None)))


# -- cursors --------------------------------------------------------------------------------------


def _hash_ordering(query: AnyQuery, terms: list[_KeysetTerm]) -> str:
    words = [(term.name, term.node.descending, term.nulls_last) for term in terms]
    text = repr((query._meta.table_name, words))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _encode_cursor(query: AnyQuery, terms: list[_KeysetTerm], row: Any) -> str:
    values = [_serialize_cursor_value(getattr(row, term.name), term) for term in terms]
    # escapes would make twelve bytes of a character outside of the basic plane, which has four
    parts = [_hash_ordering(query, terms), *values]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
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


def _decode_cursor(query: AnyQuery, terms: list[_KeysetTerm], cursor: str) -> list[Any]:
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
    if len(parts) != len(terms) + 1 or parts[0] != _hash_ordering(query, terms):
        raise wrong
    try:
        return [
            _parse_cursor_value(term, part) for term, part in zip(terms, parts[1:], strict=True)
        ]
    except (ValueError, TypeError, ArithmeticError):
        raise wrong from None


def _parse_cursor_value(term: _KeysetTerm, part: Any) -> Any:
    if part is None:
        return None
    if term.field.internal == "duration" and part.__class__ is int:
        part *= _MICROSECOND
    return term.field.parse(part) if isinstance(part, str) else term.field.coerce(part)
