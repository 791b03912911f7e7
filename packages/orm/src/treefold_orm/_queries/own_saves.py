"""`create()`, `get_or_create()` and `update_or_create()` of models with a `save()` of their own.

An overridden `save()` makes calls of its own, so it cannot be a step of an operation: here the
reads are operations, and the model's method writes, in a transaction around both. The sync half
calls `save()`, the async half `asave()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import ModelError, UniqueViolation
from treefold_orm._fields.meta import Meta
from treefold_orm._operations import creating
from treefold_orm._operations.creating import Lookups
from treefold_orm._runtime.run import arun, require_blocking_allowed, run
from treefold_orm._runtime.transactions import transaction

if TYPE_CHECKING:
    from treefold_orm._building.set_operations import ModelQuery

_TWINS = {"save": "asave", "asave": "save"}


def require_both_saves_overridden(meta: Meta, name: str) -> None:
    """Raise `ModelError` where a model overrides the twin of `save` or `asave`, but not `name`."""
    if name not in meta.own_saves:
        raise ModelError(
            f"{meta.name} must define {name}() as well, got {_TWINS[name]}() alone; the other half "
            "would write without it"
        )


def _build_instance(query: ModelQuery, values: dict[str, Any]) -> Any:
    parent = query._parent
    made = query._meta.model(**values) if parent is None else parent._build_related(values)
    made._alias = query._alias
    return made


# -- sync -----------------------------------------------------------------------------------------


def create(query: ModelQuery, values: dict[str, Any]) -> Any:
    """Insert a row by the model's own `save()`."""
    require_both_saves_overridden(query._meta, "save")
    require_blocking_allowed("await acreate()")
    made = _build_instance(query, values)
    if (parent := query._parent) is None:
        made.save()
        return made
    with transaction(query._alias):
        made.save()
        run(query._alias, parent._after_related_insert(made), "await acreate()", write=True)
    return made


def get_or_create(query: ModelQuery, lookups: Lookups, defaults: Lookups) -> tuple[Any, bool]:
    """Return the matching row, or insert one by the model's own `save()`."""
    require_both_saves_overridden(query._meta, "save")
    require_blocking_allowed("await aget_or_create()")
    alias, async_name = query._alias, "await aget_or_create()"
    with transaction(alias):
        found = run(alias, creating.fetch_row_or_none(query, lookups, batch_lazy=True), async_name)
        if found is not None:
            return found, False
        values = creating.build_insert_values(lookups, defaults)
        try:
            with transaction(alias):
                # a savepoint: PostgreSQL runs nothing in a transaction after a violation
                return create(query, values), True
        except UniqueViolation:  # another transaction has inserted the row in between
            found = run(
                alias, creating.fetch_row_or_none(query, lookups, batch_lazy=True), async_name
            )
            if found is None:
                raise
            return found, False


def update_or_create(
    query: ModelQuery, lookups: Lookups, defaults: Lookups, new: Lookups | None
) -> tuple[Any, bool]:
    """Set `defaults` on the matching row, or insert one, by the model's own `save()`."""
    require_both_saves_overridden(query._meta, "save")
    require_blocking_allowed("await aupdate_or_create()")
    with transaction(query._alias):
        locked = query.select_for_update()
        instance, created = get_or_create(locked, lookups, defaults if new is None else new)
        if not created:
            creating.apply_update_defaults(instance, defaults)
            instance.save()
    return instance, created


# -- async ----------------------------------------------------------------------------------------


async def acreate(query: ModelQuery, values: dict[str, Any]) -> Any:
    """Insert a row by the model's own `asave()`."""
    require_both_saves_overridden(query._meta, "asave")
    made = _build_instance(query, values)
    if (parent := query._parent) is None:
        await made.asave()
        return made
    async with transaction(query._alias):
        await made.asave()
        await arun(query._alias, parent._after_related_insert(made), write=True)
    return made


async def aget_or_create(
    query: ModelQuery, lookups: Lookups, defaults: Lookups
) -> tuple[Any, bool]:
    """Return the matching row, or insert one by the model's own `asave()`."""
    require_both_saves_overridden(query._meta, "asave")
    alias = query._alias
    async with transaction(alias):
        found = await arun(alias, creating.fetch_row_or_none(query, lookups, batch_lazy=False))
        if found is not None:
            return found, False
        values = creating.build_insert_values(lookups, defaults)
        try:
            async with transaction(alias):
                return await acreate(query, values), True
        except UniqueViolation:  # another transaction has inserted the row in between
            found = await arun(alias, creating.fetch_row_or_none(query, lookups, batch_lazy=False))
            if found is None:
                raise
            return found, False


async def aupdate_or_create(
    query: ModelQuery, lookups: Lookups, defaults: Lookups, new: Lookups | None
) -> tuple[Any, bool]:
    """Set `defaults` on the matching row, or insert one, by the model's own `asave()`."""
    require_both_saves_overridden(query._meta, "asave")
    async with transaction(query._alias):
        locked = query.select_for_update()
        instance, created = await aget_or_create(locked, lookups, defaults if new is None else new)
        if not created:
            creating.apply_update_defaults(instance, defaults)
            await instance.asave()
    return instance, created
