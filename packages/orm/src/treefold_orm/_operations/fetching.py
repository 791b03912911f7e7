"""One row, or rows by key. No I/O of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._building.own_rows import build_key_ordering, filter_by_keys
from treefold_orm._expressions.lookups import refuse_sensitive
from treefold_orm._expressions.nodes import OrderNode
from treefold_orm._expressions.steps import (
    Annotate,
    Combine,
    Distinct,
    DistinctOn,
    FromCTE,
    Ordering,
    Values,
)
from treefold_orm._fields.meta import Meta
from treefold_orm._operations.loading import (
    decode_row,
    disable_lazy_loading,
    fetch_rows,
    prefetch_relations,
    require_lock_transaction,
)
from treefold_orm._terms.columns import AnyColumn, Column

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery, QueryOf, R
    from treefold_orm._decode.plan import Plan


def fetch_row(query: QueryOf[R], *, batch_lazy: bool) -> Operation[R]:
    """One row, or the model's own exception."""
    plan, args = query._compile_plan("get")
    if plan.locks:
        require_lock_transaction()
    found = yield from fetch_row_by_plan(query._meta, plan, args)
    if query._prefetches:
        yield from prefetch_relations([found], query, batch_lazy=batch_lazy)
    if query._raises_lazy:
        disable_lazy_loading([found])
    return found


def fetch_row_by_plan(meta: Meta, plan: Plan, args: Sequence[object]) -> Operation[Any]:
    """The one row of a plan; alone in its result, it loads missing columns alone."""
    rows = yield Statement("rows", plan.sql, args)
    if len(rows) == 1:
        return decode_row(plan, rows[0])
    if not rows:
        raise meta.model.DoesNotExist(f"No {meta.name} matches the query")
    raise meta.model.MultipleObjectsReturned(
        f"More than one {meta.name} matches the query: use filter()"
    )


def fetch_first_row(query: QueryOf[R], *, batch_lazy: bool) -> Operation[R | None]:
    """The first row, or None."""
    found = yield from fetch_rows(
        _ensure_ordering(query, "first()")._slice_rows(None, 1), batch_lazy=batch_lazy
    )
    return found[0] if found else None


def fetch_first_or_raise(query: QueryOf[R], *, batch_lazy: bool) -> Operation[R]:
    """The first row, or the model's own exception."""
    found = yield from fetch_rows(query._slice_rows(None, 1), batch_lazy=batch_lazy)
    if not found:
        meta = query._meta
        raise meta.model.DoesNotExist(f"No {meta.name} matches the query")
    return found[0]


def fetch_last_row(query: QueryOf[R], *, batch_lazy: bool) -> Operation[R | None]:
    """The last row, or None."""
    if query._low or query._high is not None:
        raise FieldError("last() cannot follow a slice: reverse the order and take the first")
    ordered = _ensure_ordering(query, "last()").reverse()
    found = yield from fetch_rows(ordered._slice_rows(None, 1), batch_lazy=batch_lazy)
    return found[0] if found else None


def _ensure_ordering(query: QueryOf[R], call: str) -> QueryOf[R]:
    """Return a query with an order: its own, else that of its model, else by key.

    Without one, PostgreSQL gives another row after every update of one. Rows that have no key, as
    those of `values().distinct()` or of a union, are ordered by their columns.
    """
    step, meta = query._find_order_terms(), query._meta
    if step or query._low or query._high is not None or query._has_step(DistinctOn):
        return query
    values = query._find_last_step(Values)
    if values is not None:
        if _has_grouped_values(query):
            raise FieldError(
                f"{call} cannot choose among groups without an order; call order_by() before it"
            )
        if query._has_step(Distinct, Combine, FromCTE):
            terms = [OrderNode(expr, descending=False) for _, expr in values.columns]
            return query._add_step(Ordering(tuple(terms)))
    if step is None and meta.ordering:  # which DISTINCT leaves out by itself
        return query.order_by(*meta.ordering) if query._has_step(Distinct) else query
    return query.order_by(*build_key_ordering(meta))


def _has_grouped_values(query: AnyQuery) -> bool:
    """Return True for rows that are groups of `values()`, which have no key to be ordered by.

    `annotate(n=Count("posts")).values("name")` has a row for each instance, with its key.
    """
    steps = query._key[1:]
    first = next(place for place, step in enumerate(steps) if isinstance(step, Values))
    return any(isinstance(step, Annotate) and step.groups for step in steps[first:])


def in_bulk(
    query: QueryOf[R], keys: Sequence[Any] | None, *, field: str | AnyColumn, batch_lazy: bool
) -> Operation[dict[Any, R]]:
    """Rows by key."""
    meta = query._meta
    if isinstance(field, Column):
        field.check_model(meta)
    name: str = field.path if isinstance(field, Column) else field
    check_untainted(name)
    column = meta.pk if name == "pk" else meta.fields.get(name)
    if column is None:
        raise meta.build_unknown_name_error(name)
    # a name may come from a request, a column is written in code
    if name != "pk" and not isinstance(field, Column):
        refuse_sensitive(meta, column, name)
    if not column.unique:
        raise FieldError(f"in_bulk(field={name!r}) needs a unique field")
    if keys is not None:
        if not keys:
            return {}
        wanted = list(keys)
        if isinstance(field, Column):
            query = query.filter(field.in_(wanted))
        elif name == "pk":
            query = filter_by_keys(query, wanted)
        else:
            query = query.filter(**{f"{name}__in": wanted})
    found = yield from fetch_rows(query, batch_lazy=batch_lazy)
    return {getattr(item, column.attname): item for item in found}
