"""Queries by time: rows in the order of a date, and the days, months or years there are. No SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._building.query import AnyQuery
from treefold_orm._expressions.lookups import walk_path
from treefold_orm._fields.base import AnyField
from treefold_orm._terms.columns import AnyColumn, Column
from treefold_orm._terms.operators import Expression, OrderBy, Q
from treefold_orm._terms.values import F

B = TypeVar("B", bound="AnyQuery")
Day = Literal["year", "month", "week", "day"]
Order = Literal["ASC", "DESC"]
DAYS = ("year", "month", "week", "day")


def order_by_time(query: B, fields: Sequence[str | AnyColumn], *, latest: bool) -> B:
    """Order a query by `fields`, or by `Meta.get_latest_by` without any; NULL comes last."""
    what = "latest()" if latest else "earliest()"
    query._require_unsliced_and_uncombined(what)
    names = fields or query._meta.latest_by
    if not names:
        raise FieldError(f"{what} needs a field, or Meta.get_latest_by in {query._meta.name}")
    terms: list[OrderBy] = []
    for name in names:
        term: Expression
        if isinstance(name, Column):
            term, descending = name, latest
        else:
            check_untainted(name)
            term, descending = F(name.removeprefix("-")), name.startswith("-") is not latest
        terms.append(term.desc(nulls="last") if descending else term.asc(nulls="last"))
    return query.order_by(*terms)


def require_column_type(
    query: AnyQuery,
    field: str | AnyColumn,
    field_class: type[AnyField],
    caller_name: str,
    suggestion: str,
) -> None:
    """Raise `FieldError` unless `field` names a column of the class `field_class`."""
    path = field.path if isinstance(field, Column) else field
    _, column, rest = walk_path(query._meta, path)
    if rest or not isinstance(column, field_class):
        raise FieldError(
            f"{caller_name} takes a {field_class.__name__}, and {path!r} is none: "
            f"{suggestion} or values()"
        )


def select_distinct_values(
    query: AnyQuery, field: str | AnyColumn, value_expression: Expression, order: Order
) -> AnyQuery:
    """The different values of `value_expression`, made of a field, in their order."""
    if order not in {"ASC", "DESC"}:
        raise FieldError(f"order={order!r} is not 'ASC' or 'DESC'")
    label = next(n for n in ("unit", "unit0", "unit00") if not _is_name_taken(query, n))
    known = field.is_null(False) if isinstance(field, Column) else Q(**{f"{field}__isnull": False})
    found = query.filter(known)._select_values("flat", (), {label: value_expression})
    return found.distinct().order_by(label if order == "ASC" else f"-{label}")


def _is_name_taken(query: AnyQuery, name: str) -> bool:
    meta = query._meta
    return name in (query._notes or ()) or meta.find(name) is not None or hasattr(meta.model, name)
