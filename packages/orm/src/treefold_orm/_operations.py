"""What queries do, written once for both halves: generators that yield statements and receive
rows.

Nothing here opens connections or knows whether it is awaited; `peers` says that instances may load
what they miss later (sync code only).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._compile._nodes import Expr
from treefold_orm._connections import database_for
from treefold_orm._errors import FieldError, TooManyRows, UniqueViolation
from treefold_orm._expressions import Expression, F, freeze_value
from treefold_orm._fields._base import Field
from treefold_orm._meta import Meta
from treefold_orm._names import check_alias, check_untainted
from treefold_orm._prefetch import prefetch
from treefold_orm._saving import save
from treefold_orm._statement import Operation, Statement

if TYPE_CHECKING:
    from treefold_orm._compile._plan import Plan
    from treefold_orm._query import QueryBuilder
    from treefold_orm._querysets import QuerySet


def _decoded(
    query: QueryBuilder[Any, Any], plan: Plan, rows: Sequence[Any], *, peers: bool
) -> Operation[list[Any]]:
    found: list[Any] = plan.decode_peers(rows) if peers else plan.decode(rows)
    if query._prefetches:
        yield from prefetch(found, query._prefetches, query._alias, peers=peers)
    return found


def get(query: QueryBuilder[Any, Any], *, peers: bool) -> Operation[Any]:
    """One row, or the model's own exception."""
    plan, args = query._plan("get")
    found = yield from one(query._meta, plan, args)
    if query._prefetches:
        yield from prefetch([found], query._prefetches, query._alias, peers=peers)
    return found


def one(meta: Meta, plan: Plan, args: Sequence[Any]) -> Operation[Any]:
    """The one row of a plan; alone, it has no peers to load anything with."""
    rows = yield Statement("rows", plan.sql, args)
    if len(rows) == 1:
        return plan.decode_one(rows[0])
    if not rows:
        raise meta.model.DoesNotExist(f"No {meta.name} matches the query")
    raise meta.model.MultipleObjectsReturned(
        f"More than one {meta.name} matches the query: use filter()"
    )


def rows(query: QueryBuilder[Any, Any], *, peers: bool) -> Operation[list[Any]]:
    """All rows."""
    if query._max_rows is not None:
        capped = query._sliced(None, query._max_rows + 1)
        plan, args = capped._plan("rows")
        found = yield Statement("rows", plan.sql, args)
        if len(found) > query._max_rows:
            raise TooManyRows(
                f"{query._meta.name}: more than {query._max_rows} rows: page the query or raise "
                "limit_rows()"
            )
    else:
        plan, args = query._plan("rows")
        found = yield Statement("rows", plan.sql, args)
    if not query._prefetches:
        return (plan.decode_peers if peers else plan.decode)(found)
    return (yield from _decoded(query, plan, found, peers=peers))


def first(query: QueryBuilder[Any, Any], *, peers: bool) -> Operation[Any]:
    """The first row, or None."""
    if not _ordered(query):
        query = query.order_by("pk") if query._high is None and not query._low else query
    found = yield from rows(query._sliced(None, 1), peers=peers)
    return found[0] if found else None


def first_or_raise(query: QueryBuilder[Any, Any], *, peers: bool) -> Operation[Any]:
    """The first row, or the model's own exception."""
    found = yield from rows(query._sliced(None, 1), peers=peers)
    if not found:
        meta = query._meta
        raise meta.model.DoesNotExist(f"No {meta.name} matches the query")
    return found[0]


def last(query: QueryBuilder[Any, Any], *, peers: bool) -> Operation[Any]:
    """The last row, or None."""
    if query._low or query._high is not None:
        raise FieldError("last() cannot follow a slice: reverse the order and take the first")
    found = yield from rows(query.reverse()._sliced(None, 1), peers=peers)
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
    """Whether there is a row."""
    plan, args = query._plan("exists")
    return bool((yield Statement("rows", plan.sql, args)))


def contains(query: QueryBuilder[Any, Any], item: Any) -> Operation[bool]:
    """Whether the query has the row of an instance."""
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
        from treefold_orm._managers import plain_query

        # further conditions would choose other rows than the slice, so it stands on its own
        query = plain_query(meta, query._alias).filter(pk__in=query)
    return (yield from exists(query.filter(pk=item.pk)))


def aggregate(
    query: QueryBuilder[Any, Any], aggregates: Mapping[str, Expression]
) -> Operation[dict[str, Any]]:
    """Aggregates over all rows."""
    if not aggregates:
        return {}
    scope = query._scope()
    whole, given = query._whole()
    scope.params[:] = given
    named: list[tuple[str, Expr]] = []
    for name, expression in aggregates.items():
        check_alias(name, taken=frozenset())
        named.append((name, expression.freeze(scope)))
    database = database_for(query._alias)
    key = ("aggregate", whole, tuple(named))
    plan = database.plans.get(key)
    if plan is None:
        from treefold_orm._compile._select import aggregate_plan

        plan = aggregate_plan(database.dialect, whole, tuple(named), given=len(scope.params))
        database.plans.keep(key, plan)
    found = yield Statement("rows", plan.sql, _bound(plan, scope.params))
    return plan.decode(found)[0]


def _bound(plan: Plan, params: Sequence[Any]) -> Sequence[Any]:
    return params if plan.bind is None else plan.bind(params)


def update(query: QueryBuilder[Any, Any], values: Mapping[str, Any]) -> Operation[int]:
    """Set columns of all rows."""
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
        if field.primary_key:
            raise FieldError(
                f"{query._meta.name}.{name} is the key and cannot be updated: insert a new row"
            )
        if isinstance(value, Expression) or hasattr(value, "_freeze_subquery"):
            sets.append((field, freeze_value(value, scope, field)))
        else:
            sets.append((field, scope.param(field.clean(value), field)))
    version = query._meta.version
    if version is not None and all(field is not version for field, _ in sets):
        sets.append((version, freeze_value(F(version.name) + 1, scope, version)))
    database = database_for(query._alias)
    key = ("update", whole, tuple(sets))
    plan = database.plans.get(key)
    if plan is None:
        from treefold_orm._compile._writes import update_plan

        plan = update_plan(database.dialect, whole, tuple(sets), given=len(scope.params))
        database.plans.keep(key, plan)
    return (yield Statement("count", plan.sql, _bound(plan, scope.params)))


def _check_writable(query: QueryBuilder[Any, Any]) -> None:
    if any(step[0] == "from" for step in query._key[1:]):
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
        from treefold_orm._compile._writes import delete_plan

        plan = delete_plan(database.dialect, whole, given=len(given))
        database.plans.keep(("delete", whole), plan)
    return (yield Statement("count", plan.sql, _bound(plan, given)))


def in_bulk(
    query: QueryBuilder[Any, Any], keys: Sequence[Any] | None, *, field: str, peers: bool
) -> Operation[dict[Any, Any]]:
    """Rows by key."""
    check_untainted(field)
    column = query._meta.pk if field == "pk" else query._meta.fields.get(field)
    if column is None:
        raise query._meta.unknown(field)
    if not column.unique:
        raise FieldError(f"in_bulk(field={field!r}) needs a unique field")
    if keys is not None:
        if not keys:
            return {}
        query = query.filter(**{f"{field}__in": list(keys)})
    found = yield from rows(query, peers=peers)
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


def get_or_create(
    query: QuerySet[Any],
    lookups: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    peers: bool,
) -> Operation[tuple[Any, bool]]:
    """The matching row, or a new one; a row inserted by someone else in between is found again."""
    found = yield from rows(query.filter(**lookups)._sliced(None, 2), peers=peers)
    if len(found) > 1:
        raise query._meta.model.MultipleObjectsReturned(
            f"More than one {query._meta.name} matches: narrow the lookups"
        )
    if found:
        return found[0], False
    for name in defaults:
        check_untainted(name)
    given = {**_plain(lookups), **{k: _called(v) for k, v in defaults.items()}}
    work = query._inserted(given)
    if database_for(query._alias).dialect.name == "sqlite":
        # the transaction is the only writer: nobody can come in between
        return (yield from work), True
    yield Statement("script", "SAVEPOINT creating")
    try:
        instance = yield from work
    except UniqueViolation:
        yield Statement("script", "ROLLBACK TO SAVEPOINT creating")
        found = yield from rows(query.filter(**lookups)._sliced(None, 2), peers=peers)
        if len(found) == 1:
            return found[0], False
        raise
    yield Statement("script", "RELEASE SAVEPOINT creating")
    return instance, True


def update_or_create(
    query: QuerySet[Any],
    lookups: Mapping[str, Any],
    defaults: Mapping[str, Any],
    create_defaults: Mapping[str, Any] | None,
    *,
    peers: bool,
) -> Operation[tuple[Any, bool]]:
    """The matching row with `defaults` set, or a new one, of `create_defaults` where given."""
    instance, created = yield from get_or_create(
        query.select_for_update(),
        lookups,
        defaults if create_defaults is None else create_defaults,
        peers=peers,
    )
    if not created:
        for name, value in defaults.items():
            check_untainted(name)
            if name not in query._meta.fields and name not in query._meta.by_attname:
                raise query._meta.unknown(name)
            setattr(instance, name, _called(value))
        yield from save(instance, query._alias, None)
    return instance, created


def _plain(lookups: Mapping[str, Any]) -> dict[str, Any]:
    exact = {name.removesuffix("__exact"): value for name, value in lookups.items()}
    return {name: value for name, value in exact.items() if "__" not in name}


def _called(value: Any) -> Any:
    return value() if callable(value) else value
