"""What queries do, written once for both halves: generators that yield statements and receive
rows.

Nothing here opens connections or knows whether it is awaited; with `batch_lazy` instances load what
they lack later, in one query for all of a result (sync code only).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import (
    FieldError,
    TooManyRows,
    TransactionRequired,
    UniqueViolation,
)
from treefold_orm._base.journal import active
from treefold_orm._base.names import check_alias, check_untainted
from treefold_orm._base.statement import ATOMIC, Operation, Statement
from treefold_orm._expressions.columns import Column
from treefold_orm._expressions.conversion import assigned
from treefold_orm._expressions.expressions import Expression, F, freeze_value
from treefold_orm._expressions.lookups import refuse_sensitive
from treefold_orm._expressions.nodes import Expr, per_row
from treefold_orm._fields.base import Field
from treefold_orm._fields.meta import Meta
from treefold_orm._queries.own_rows import key_order, with_key, with_keys
from treefold_orm._queries.prefetch import prefetch
from treefold_orm._queries.reading import decoded, decoded_one
from treefold_orm._queries.saving import save
from treefold_orm._runtime.connections import database_for

if TYPE_CHECKING:
    from treefold_orm._compile.plan import Plan
    from treefold_orm._models.model import Model
    from treefold_orm._queries.query import QueryBuilder
    from treefold_orm._queries.querysets import QuerySet


def _decoded(
    query: QueryBuilder[Any, Any], plan: Plan, rows: Sequence[Any], *, batch_lazy: bool
) -> Operation[list[Any]]:
    found = decoded(plan, rows, batch_lazy=batch_lazy)
    if query._prefetches:
        yield from prefetch(found, query._prefetches, query._alias, batch_lazy=batch_lazy)
    return found


def check_lock() -> None:
    """Raise `TransactionRequired` where a lock would end with the statement that takes it."""
    journal = active.journal
    if journal is None or journal.single:
        raise needs_transaction()


def needs_transaction() -> TransactionRequired:
    """The error for `select_for_update()` outside of a transaction."""
    return TransactionRequired(
        "select_for_update() must run inside of a transaction, which holds the lock; open one with "
        "`with transaction():` or `async with transaction():`"
    )


def get(query: QueryBuilder[Any, Any], *, batch_lazy: bool) -> Operation[Any]:
    """One row, or the model's own exception."""
    plan, args = query._plan("get")
    if plan.locks:
        check_lock()
    found = yield from one(query._meta, plan, args)
    if query._prefetches:
        yield from prefetch([found], query._prefetches, query._alias, batch_lazy=batch_lazy)
    return found


def one(meta: Meta, plan: Plan, args: Sequence[Any]) -> Operation[Any]:
    """The one row of a plan; alone in its result, it loads what it lacks alone."""
    rows = yield Statement("rows", plan.sql, args)
    if len(rows) == 1:
        return decoded_one(plan, rows[0])
    if not rows:
        raise meta.model.DoesNotExist(f"No {meta.name} matches the query")
    raise meta.model.MultipleObjectsReturned(
        f"More than one {meta.name} matches the query: use filter()"
    )


def rows(query: QueryBuilder[Any, Any], *, batch_lazy: bool) -> Operation[list[Any]]:
    """All rows."""
    if query._max_rows is not None:
        capped = query._sliced(None, query._max_rows + 1)
        plan, args = capped._plan("rows")
        if plan.locks:
            check_lock()
        found = yield Statement("rows", plan.sql, args)
        if len(found) > query._max_rows:
            raise TooManyRows(
                f"{query._meta.name}: more than {query._max_rows} rows: page the query or raise "
                "limit_rows()"
            )
    else:
        plan, args = query._plan("rows")
        if plan.locks:
            check_lock()
        found = yield Statement("rows", plan.sql, args)
    if not query._prefetches:
        return decoded(plan, found, batch_lazy=batch_lazy)
    return (yield from _decoded(query, plan, found, batch_lazy=batch_lazy))


def first(query: QueryBuilder[Any, Any], *, batch_lazy: bool) -> Operation[Any]:
    """The first row, or None."""
    if not _ordered(query):
        free = query._high is None and not query._low
        query = query.order_by(*key_order(query._meta)) if free else query
    found = yield from rows(query._sliced(None, 1), batch_lazy=batch_lazy)
    return found[0] if found else None


def first_or_raise(query: QueryBuilder[Any, Any], *, batch_lazy: bool) -> Operation[Any]:
    """The first row, or the model's own exception."""
    found = yield from rows(query._sliced(None, 1), batch_lazy=batch_lazy)
    if not found:
        meta = query._meta
        raise meta.model.DoesNotExist(f"No {meta.name} matches the query")
    return found[0]


def last(query: QueryBuilder[Any, Any], *, batch_lazy: bool) -> Operation[Any]:
    """The last row, or None."""
    if query._low or query._high is not None:
        raise FieldError("last() cannot follow a slice: reverse the order and take the first")
    found = yield from rows(query.reverse()._sliced(None, 1), batch_lazy=batch_lazy)
    return found[0] if found else None


def _ordered(query: QueryBuilder[Any, Any]) -> bool:
    step = query._order_step()
    return (
        bool(step)
        or (step is None and bool(query._meta.ordering))
        or query._has("values", "distinct_on")
    )


def count(query: QueryBuilder[Any, Any]) -> Operation[int]:
    """The number of rows."""
    plan, args = query._plan("count")
    found = yield Statement("rows", plan.sql, args)
    return found[0][0]


def exists(query: QueryBuilder[Any, Any]) -> Operation[bool]:
    """Return True if there is a row."""
    plan, args = query._plan("exists")
    return bool((yield Statement("rows", plan.sql, args)))


def contains(query: QueryBuilder[Any, Any], item: Any) -> Operation[bool]:
    """Return True if the query has the row of an instance."""
    meta = query._meta
    if query._has("values", "combine"):
        raise FieldError("contains() asks for instances: call it before values() and union()")
    if not isinstance(item, meta.model):
        raise FieldError(f"contains() takes a {meta.name}, not {type(item).__name__}")
    if item.pk is None:
        raise FieldError(f"contains() takes a saved {meta.name}: this one has no key yet")
    if query._cache is not None:
        return item in query._cache
    if query._low or query._high is not None or query._has("distinct_on"):
        from treefold_orm._queries.managers import plain_query

        # further conditions would choose other rows than the slice, so it stands on its own
        query = with_keys(plain_query(meta, query._alias), query)
    return (yield from exists(with_key(query, item.pk)))


def aggregate(
    query: QueryBuilder[Any, Any],
    unnamed: Sequence[Expression],
    aggregates: Mapping[str, Expression],
) -> Operation[dict[str, Any]]:
    """Aggregates over all rows."""
    if not aggregates and not unnamed:
        return {}
    from treefold_orm._expressions.aggregates import named as named_by_default

    scope = query._scope()
    scope.over_rows = True
    scope.annotations = {name: per_row(node) for name, node in scope.annotations.items()}
    whole, given = query._whole()
    scope.params[:] = given
    if query._has("combine"):  # its parts may have other types than the rows they make
        scope.annotations |= _named_rows(whole)
    named: list[tuple[str, Expr]] = []
    for name, expression in named_by_default(unnamed, aggregates).items():
        if name in aggregates:
            check_alias(name, taken=frozenset())
        if not isinstance(expression, Expression):
            raise FieldError(f"aggregate({name}=...) must be given an aggregate, got a condition")
        named.append((name, expression.freeze(scope)))
    database = database_for(query._alias)
    key = ("aggregate", whole, tuple(named))
    plan = database.plans.get(key)
    if plan is None:
        from treefold_orm._compile.aggregate_query import aggregate_plan

        plan = aggregate_plan(database.dialect, whole, tuple(named), given=len(scope.params))
        database.plans.keep(key, plan)
    found = yield Statement("rows", plan.sql, _bound(plan, scope.params))
    return plan.decode(found)[0]


def _named_rows(key: Any) -> dict[str, Expr]:
    from treefold_orm._compile.state import replay

    state = replay(key)
    names = list(state.annotations)
    if state.rows != "instances":
        names = [name for name, _ in state.columns]
    return dict(zip(names, state.row_values, strict=True))


def _bound(plan: Plan, params: Sequence[Any]) -> Sequence[Any]:
    return params if plan.bind is None else plan.bind(params)


def update(
    query: QueryBuilder[Any, Any],
    values: Mapping[str, Any],
    *,
    returning: Sequence[Field[Any]] = (),
) -> Operation[Any]:
    """Set columns of all rows; return how many, or what the columns in `returning` hold then."""
    _check_writable(query)
    if not values:
        raise FieldError("update() needs at least one field")
    scope = query._scope()
    whole, given = query._whole()
    scope.params[:] = given
    sets: list[tuple[Field[Any], Expr]] = []
    for name, value in values.items():
        check_untainted(name)
        field = query._meta.fields.get(name) or query._meta.by_attname.get(name)
        if field is None:
            raise query._meta.unknown(name)
        if field in query._meta.keys:
            raise FieldError(
                f"{query._meta.name}.{name} is the key and cannot be updated: insert a new row"
            )
        if isinstance(value, Expression) or hasattr(value, "_freeze_subquery"):
            sets.append((field, assigned(freeze_value(value, scope), field)))
        else:
            sets.append((field, scope.param(field.clean(value), field)))
    version = query._meta.version
    if version is not None and all(field is not version for field, _ in sets):
        sets.append((version, assigned((F(version.name) + 1).freeze(scope), version)))
    database = database_for(query._alias)
    back = tuple(returning)
    key = ("update", whole, tuple(sets), back)
    plan = database.plans.get(key)
    if plan is None:
        from treefold_orm._compile.writes import update_plan

        plan = update_plan(
            database.dialect, whole, tuple(sets), given=len(scope.params), returning=back
        )
        database.plans.keep(key, plan)
    return (yield Statement("rows" if back else "count", plan.sql, _bound(plan, scope.params)))


def _check_writable(query: QueryBuilder[Any, Any]) -> None:
    for step in query._key[1:]:
        if step[0] == "from":
            raise FieldError(
                "The rows of a CTE of values cannot be changed: filter the model by them, as in "
                "filter(pk__in=cte.objects.values(...))"
            )


def delete(query: QueryBuilder[Any, Any]) -> Operation[int]:
    """Delete all rows."""
    _check_writable(query)
    database = database_for(query._alias)
    whole, given = query._whole()
    plan = database.plans.get(("delete", whole))
    if plan is None:
        from treefold_orm._compile.writes import delete_plan

        plan = delete_plan(database.dialect, whole, given=len(given))
        database.plans.keep(("delete", whole), plan)
    return (yield Statement("count", plan.sql, _bound(plan, given)))


def in_bulk(
    query: QueryBuilder[Any, Any],
    keys: Sequence[Any] | None,
    *,
    field: str | Column[Any],
    batch_lazy: bool,
) -> Operation[dict[Any, Any]]:
    """Rows by key."""
    meta = query._meta
    if isinstance(field, Column):
        field.check_model(meta)
    name: str = field.path if isinstance(field, Column) else field
    check_untainted(name)
    column = meta.pk if name == "pk" else meta.fields.get(name)
    if column is None:
        raise meta.unknown(name)
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
            query = with_keys(query, wanted)
        else:
            query = query.filter(**{f"{name}__in": wanted})
    found = yield from rows(query, batch_lazy=batch_lazy)
    return {getattr(item, column.attname): item for item in found}


def taken(
    given: Mapping[str, Any] | None, lookups: dict[str, Any], name: str
) -> Mapping[str, Any] | None:
    """What was given as `defaults`: by place, which leaves the name to a field of the model, or
    else by name, which is taken out of `lookups`.
    """
    if given is None and name in lookups:
        for key in lookups:
            check_untainted(key)
        given = lookups.pop(name)
    if given is not None and not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise FieldError(
            f"{name} takes a mapping, not {type(given).__name__}: for a field of that name, give "
            f"the {name} before the lookups, without a name"
        )
    return given


def find(query: QuerySet[Any], lookups: Mapping[str, Any], *, batch_lazy: bool) -> Operation[Any]:
    """The one row that matches, or None."""
    found = yield from rows(query.filter(**lookups)._sliced(None, 2), batch_lazy=batch_lazy)
    if len(found) > 1:
        raise query._meta.model.MultipleObjectsReturned(
            f"More than one {query._meta.name} matches: narrow the lookups"
        )
    return found[0] if found else None


def values_of_new(lookups: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row that `get_or_create` inserts."""
    for name in defaults:
        check_untainted(name)
    exact = {name.removesuffix("__exact"): value for name, value in lookups.items()}
    plain = {name: value for name, value in exact.items() if "__" not in name}
    return {**plain, **{name: _called(value) for name, value in defaults.items()}}


def set_values(instance: Model, defaults: Mapping[str, Any]) -> None:
    """Set the values that `update_or_create` gives to a row that it found."""
    meta = instance._meta
    for name, value in defaults.items():
        check_untainted(name)
        if name not in meta.fields and name not in meta.by_attname:
            raise meta.unknown(name)
        setattr(instance, name, _called(value))


def get_or_create(
    query: QuerySet[Any],
    lookups: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    batch_lazy: bool,
) -> Operation[tuple[Any, bool]]:
    """The matching row, or a new one; a row inserted by someone else in between is found again."""
    yield ATOMIC
    found = yield from find(query, lookups, batch_lazy=batch_lazy)
    if found is not None:
        return found, False
    work = query._inserted(values_of_new(lookups, defaults))
    if database_for(query._alias).dialect.name == "sqlite":
        # the transaction is the only writer: no other can come in between
        return (yield from work), True
    yield Statement("script", "SAVEPOINT creating")
    try:
        instance = yield from work
    except UniqueViolation:
        yield Statement("script", "ROLLBACK TO SAVEPOINT creating")
        found = yield from find(query, lookups, batch_lazy=batch_lazy)
        if found is not None:
            return found, False
        raise
    yield Statement("script", "RELEASE SAVEPOINT creating")
    return instance, True


def update_or_create(
    query: QuerySet[Any],
    lookups: Mapping[str, Any],
    defaults: Mapping[str, Any],
    create_defaults: Mapping[str, Any] | None,
    *,
    batch_lazy: bool,
) -> Operation[tuple[Any, bool]]:
    """The matching row with `defaults` set, or a new one, of `create_defaults` where given."""
    yield ATOMIC
    instance, created = yield from get_or_create(
        query.select_for_update(),
        lookups,
        defaults if create_defaults is None else create_defaults,
        batch_lazy=batch_lazy,
    )
    if not created:
        set_values(instance, defaults)
        yield from save(instance, query._alias, None)
    return instance, created


def _called(value: Any) -> Any:
    return value() if callable(value) else value
