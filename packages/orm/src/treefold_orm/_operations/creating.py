"""Rows that are inserted unless they are there. No I/O of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldError, UniqueViolation
from treefold_orm._base.names import check_untainted
from treefold_orm._base.statement import ATOMIC, Operation, Statement
from treefold_orm._fields.meta import Instance
from treefold_orm._operations.inserting import insert_values
from treefold_orm._operations.loading import fetch_rows
from treefold_orm._operations.saving import save_instance
from treefold_orm._runtime.connections import database_for

if TYPE_CHECKING:
    from treefold_orm._building.set_operations import ModelQuery

Lookups = Mapping[str, Any]


def pop_defaults(given: Lookups | None, lookups: dict[str, Any], name: str) -> Lookups | None:
    """The argument `defaults`: by place, which leaves the name to a field of the model, or
    else by name, which is taken out of `lookups`.
    """
    if given is None and name in lookups:
        # **request.query could choose `defaults` from outside, so that keys of a request are
        # refused before it is taken out
        for key in lookups:
            check_untainted(key)
        given = lookups.pop(name)
    if given is not None and not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise FieldError(
            f"{name} takes a mapping, not {type(given).__name__}: for a field of that name, give "
            f"the {name} before the lookups, without a name"
        )
    return given


def fetch_row_or_none(query: ModelQuery, lookups: Lookups, *, batch_lazy: bool) -> Operation[Any]:
    """The one row that matches, or None."""
    found = yield from fetch_rows(
        query.filter(**lookups)._slice_rows(None, 2), batch_lazy=batch_lazy
    )
    if len(found) > 1:
        raise query._meta.model.MultipleObjectsReturned(
            f"More than one {query._meta.name} matches: narrow the lookups"
        )
    return found[0] if found else None


def build_insert_values(lookups: Lookups, defaults: Lookups) -> dict[str, Any]:
    """The values of a row that `get_or_create` inserts."""
    for name in defaults:
        check_untainted(name)
    # email__exact="a@b" gives a value to insert, email__iexact="a@b" only a condition
    exact = {name.removesuffix("__exact"): value for name, value in lookups.items()}
    plain = {name: value for name, value in exact.items() if "__" not in name}
    return {**plain, **{name: _call_if_callable(value) for name, value in defaults.items()}}


def apply_update_defaults(instance: Instance, defaults: Lookups) -> None:
    """Set the values that `update_or_create` gives to a row that it found."""
    for name, value in defaults.items():
        check_untainted(name)
        instance._meta.require_column(name)
        setattr(instance, name, _call_if_callable(value))


def create_row(query: ModelQuery, values: dict[str, Any], *, batch_lazy: bool) -> Operation[Any]:
    """A new row, which has all its columns in either half."""
    return insert_values(query, values)


def get_or_create(
    query: ModelQuery, lookups: Lookups, defaults: Lookups, *, batch_lazy: bool
) -> Operation[tuple[Any, bool]]:
    """The matching row, or a new one; a row inserted by someone else in between is found again."""
    yield ATOMIC
    found = yield from fetch_row_or_none(query, lookups, batch_lazy=batch_lazy)
    if found is not None:
        return found, False
    work = insert_values(query, build_insert_values(lookups, defaults))
    if database_for(query._alias).dialect.name == "sqlite":
        # the transaction is the only writer: no other can come in between
        return (yield from work), True
    # a violation aborts the whole transaction on PostgreSQL, unless it is undone to a savepoint
    yield Statement("script", "SAVEPOINT creating")
    try:
        instance = yield from work
    except UniqueViolation:
        yield Statement("script", "ROLLBACK TO SAVEPOINT creating")
        found = yield from fetch_row_or_none(query, lookups, batch_lazy=batch_lazy)
        if found is not None:
            return found, False
        # from repeatable read on, the row of the other transaction is not visible in this one
        raise
    yield Statement("script", "RELEASE SAVEPOINT creating")
    return instance, True


def update_or_create(
    query: ModelQuery,
    lookups: Lookups,
    defaults: Lookups,
    create_defaults: Lookups | None,
    *,
    batch_lazy: bool,
) -> Operation[tuple[Any, bool]]:
    """The matching row with `defaults` set, or a new one, of `create_defaults` where given."""
    yield ATOMIC
    instance, created = yield from get_or_create(
        # locked between the read and the save, so that no other transaction changes the row there
        query.select_for_update(),
        lookups,
        defaults if create_defaults is None else create_defaults,
        batch_lazy=batch_lazy,
    )
    if not created:
        apply_update_defaults(instance, defaults)
        yield from save_instance(instance, query._alias, None)
    return instance, created


def _call_if_callable(value: Any) -> Any:
    return value() if callable(value) else value
