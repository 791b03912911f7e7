"""`create()`, `get_or_create()` and `update_or_create()` of models with a `save()` of their own.

An overridden `save()` makes calls of its own, so it cannot be a step of an operation: here the
reads are operations, and the model's method writes, in a transaction around both. The sync half
calls `save()`, the async half `asave()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import ModelError, UniqueViolation
from treefold_orm._fields.meta import Meta
from treefold_orm._queries import operations
from treefold_orm._runtime.run import arun, check_blocking, run
from treefold_orm._runtime.transactions import transaction

if TYPE_CHECKING:
    from treefold_orm._queries.querysets import QuerySet

Values = Mapping[str, Any]
_TWINS = {"save": "asave", "asave": "save"}


def check_half(meta: Meta, name: str) -> None:
    """Raise `ModelError` where a model overrides the twin of `save` or `asave`, but not `name`."""
    if name not in meta.own_saves:
        raise ModelError(
            f"{meta.name} must define {name}() as well, got {_TWINS[name]}() alone; the other half "
            "would write without it"
        )


def _new(query: QuerySet[Any], values: dict[str, Any]) -> Any:
    parent = query._parent
    made = query._meta.model(**values) if parent is None else parent._new(values)
    made._alias = query._alias
    return made


# -- sync -----------------------------------------------------------------------------------------


def create(query: QuerySet[Any], values: dict[str, Any]) -> Any:
    """Insert a row by the model's own `save()`."""
    check_half(query._meta, "save")
    check_blocking("await acreate()")
    made = _new(query, values)
    if query._parent is None:
        made.save()
        return made
    with transaction(query._alias):
        made.save()
        run(query._alias, query._parent._connect(made), "await acreate()", write=True)
    return made


def get_or_create(query: QuerySet[Any], lookups: Values, defaults: Values) -> tuple[Any, bool]:
    """Return the matching row, or insert one by the model's own `save()`."""
    check_half(query._meta, "save")
    check_blocking("await aget_or_create()")
    alias, twin = query._alias, "await aget_or_create()"
    with transaction(alias):
        found = run(alias, operations.find(query, lookups, batch_lazy=True), twin)
        if found is not None:
            return found, False
        values = operations.values_of_new(lookups, defaults)
        try:
            with transaction(alias):
                return create(query, values), True
        except UniqueViolation:  # another transaction has inserted the row in between
            found = run(alias, operations.find(query, lookups, batch_lazy=True), twin)
            if found is None:
                raise
            return found, False


def update_or_create(
    query: QuerySet[Any], lookups: Values, defaults: Values, new: Values | None
) -> tuple[Any, bool]:
    """Set `defaults` on the matching row, or insert one, by the model's own `save()`."""
    check_half(query._meta, "save")
    check_blocking("await aupdate_or_create()")
    with transaction(query._alias):
        locked = query.select_for_update()
        instance, created = get_or_create(locked, lookups, defaults if new is None else new)
        if not created:
            operations.set_values(instance, defaults)
            instance.save()
    return instance, created


# -- async ----------------------------------------------------------------------------------------


async def acreate(query: QuerySet[Any], values: dict[str, Any]) -> Any:
    """Insert a row by the model's own `asave()`."""
    check_half(query._meta, "asave")
    made = _new(query, values)
    if query._parent is None:
        await made.asave()
        return made
    async with transaction(query._alias):
        await made.asave()
        await arun(query._alias, query._parent._connect(made), write=True)
    return made


async def aget_or_create(
    query: QuerySet[Any], lookups: Values, defaults: Values
) -> tuple[Any, bool]:
    """Return the matching row, or insert one by the model's own `asave()`."""
    check_half(query._meta, "asave")
    alias = query._alias
    async with transaction(alias):
        found = await arun(alias, operations.find(query, lookups, batch_lazy=False))
        if found is not None:
            return found, False
        values = operations.values_of_new(lookups, defaults)
        try:
            async with transaction(alias):
                return await acreate(query, values), True
        except UniqueViolation:  # another transaction has inserted the row in between
            found = await arun(alias, operations.find(query, lookups, batch_lazy=False))
            if found is None:
                raise
            return found, False


async def aupdate_or_create(
    query: QuerySet[Any], lookups: Values, defaults: Values, new: Values | None
) -> tuple[Any, bool]:
    """Set `defaults` on the matching row, or insert one, by the model's own `asave()`."""
    check_half(query._meta, "asave")
    async with transaction(query._alias):
        locked = query.select_for_update()
        instance, created = await aget_or_create(locked, lookups, defaults if new is None else new)
        if not created:
            operations.set_values(instance, defaults)
            await instance.asave()
    return instance, created
