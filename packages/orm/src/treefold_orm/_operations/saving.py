"""Saving one instance: insert, also of a copy, update of changed columns, delete, refresh.
Generators; no I/O of their own.

Changes of the instance go through the journal, so that a rollback puts it back, and only
once the statement has succeeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldError, StaleObject, ZoneMismatch
from treefold_orm._base.journal import (
    NO_ANSWER,
    drop_cache_with_undo,
    mark_row_uncertain,
    record_state_for_undo,
    set_attribute_with_undo,
)
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._building.own_rows import (
    filter_by_key,
    filter_by_keys,
    filter_by_value,
    load_only_fields,
)
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._fields.base import MISSING, AnyField, Fields
from treefold_orm._fields.meta import Instance, Meta
from treefold_orm._operations import row_state
from treefold_orm._operations.changing import delete_rows as delete_rows
from treefold_orm._operations.computed import update_with_expressions
from treefold_orm._operations.inserting import format_field_names, insert_instance
from treefold_orm._operations.loading import fetch_rows
from treefold_orm._operations.measuring import has_rows
from treefold_orm._operations.own_database import (
    check_related_databases,
    check_stored_in,
    format_key_for_error,
)
from treefold_orm._runtime.connections import database_for, has_several_databases

if TYPE_CHECKING:
    from treefold_orm._drivers.base import Database


def save_instance(
    instance: Instance,
    alias: str,
    update_fields: Sequence[str] | None = None,
    *,
    force_insert: bool = False,
) -> Operation[None]:
    """Insert, or update the changed columns."""
    meta, row = instance._meta, instance._row
    if row is None or force_insert or instance.pk is None:
        if update_fields is not None:
            raise FieldError(f"save(update_fields=...) cannot insert a new {meta.name}")
        if row is not None:
            yield from insert_copy(instance, alias)
        else:
            yield from insert_instance(instance, alias)
        return
    _check_stored(instance, alias)
    named = None if update_fields is None else tuple(map(meta.require_column, update_fields))
    if has_several_databases():
        check_related_databases(instance, alias, meta.columns if named is None else named)
    database = database_for(alias)
    fields = row_state.find_changed_fields(instance, database)
    if named is not None:
        fields = [field for field in named if field.attname in instance.__dict__]
    # without changes, save() still writes the times of auto_now
    if not fields and (update_fields is not None or not meta.auto_now):
        return
    if any(key in fields for key in meta.keys):
        raise FieldError(
            f"The key of a stored {meta.name} cannot change, got {format_key_for_error(instance)}; "
            "save(force_insert=True) inserts a copy"
        )
    given = _compute_automatic_values(instance)
    fields += [field for field in given if field not in fields]
    if any(row_state.is_expression(instance.__dict__.get(field.attname)) for field in fields):
        yield from update_with_expressions(instance, database, fields, given)
    else:
        yield from _update_row(instance, database, tuple(fields), given)
    if update_fields is None and instance._read_in is not None:
        instance._read_in = None


def _check_stored(instance: Instance, alias: str) -> None:
    if not instance._row:
        raise StaleObject(
            f"{instance._meta.name} with key {format_key_for_error(instance)} was deleted; "
            "save(force_insert=True) inserts it again, and with pk = None it becomes a new row"
        )
    remedy = f"save(using={alias!r}, force_insert=True) inserts a copy there"
    check_stored_in(instance, alias, remedy)


def _compute_automatic_values(instance: Instance) -> dict[AnyField, Any]:
    """The values that every update writes by itself; the instance has them once it is written."""
    given: dict[AnyField, Any] = {field: field.get_default() for field in instance._meta.auto_now}
    version = instance._meta.version
    if version is not None:
        # counted from the version as it was read: the attribute may have been assigned to
        given[version] = row_state.read_loaded_value(instance, version) + 1
    return given


def _update_row(
    instance: Instance, database: Database, fields: Fields, automatic_values: dict[AnyField, Any]
) -> Operation[None]:
    meta = instance._meta
    version = meta.version
    key = ("save", meta, fields)
    plan = database.plans.get(key)
    if plan is None:
        plan = database.find_plan(key, meta, fields, version_field=version)
    clean, given = row_state.clean_and_set_value, automatic_values
    params = [given[f] if f in given else clean(instance, f) for f in fields]
    params += [getattr(instance, part.attname) for part in meta.keys]
    if version is not None:
        params.append(automatic_values[version] - 1)
    args = params if plan.bind is None else plan.bind(params)
    try:
        count = yield Statement("count", plan.sql, args)
    except NO_ANSWER:
        mark_row_uncertain(instance)
        raise
    except ZoneMismatch as error:
        raise error.with_field_name(format_field_names(fields)) from None
    if count != 1:
        raise (yield from row_state.diagnose_failed_update(instance, database.alias))
    for field, value in automatic_values.items():
        set_attribute_with_undo(instance, field.attname, value)
    row_state.record_stored_values(instance, fields, args)


def delete_instance(instance: Instance, alias: str) -> Operation[int]:
    """Delete the instance's row; one with a version, only as it was read."""
    meta = instance._meta
    if instance.pk is None:
        raise FieldError(f"This {meta.name} has no key: it was never saved")
    query, version = row_state.build_row_query(instance, alias), meta.version
    guarded = version is not None and bool(instance._row) and alias == instance._alias
    if version is not None and guarded:
        query = filter_by_value(query, version, row_state.read_loaded_value(instance, version))
    count = yield from delete_rows(query)
    if guarded and not count and (yield from has_rows(row_state.build_row_query(instance, alias))):
        raise row_state.build_stale_error(instance, "delete() it again")
    if alias == instance._alias and instance._row is not None:
        record_state_for_undo(instance)
        instance._row = row_state.DELETED
    return count


def refresh_instance(
    instance: Instance, alias: str, names: Sequence[str] | None
) -> Operation[None]:
    """Read the row again: the columns that are loaded, or the named ones."""
    meta, values = instance._meta, instance.__dict__
    if instance.pk is None:
        raise FieldError(f"This {meta.name} has no key: it was never saved")
    related = [] if names is None else [n for n in names if n in meta.relations]
    if names is None:
        columns = [f for f in meta.columns if f.attname in values or not instance._row]
    else:
        named = [n for n in names if n in meta.fields or n not in meta.relations]
        columns = list(map(meta.require_column, named))
    query = row_state.build_row_query(instance, alias)
    if len(columns) < len(meta.columns):
        query = load_only_fields(query, columns)
    found = yield from fetch_rows(query, batch_lazy=False)
    if not found:
        raise meta.model.DoesNotExist(
            f"{meta.name} with key {format_key_for_error(instance)} does not exist; it was deleted"
        )
    for name in [*meta.relations] if names is None else related:
        _clear_cached_relation(instance, name)
    values.pop("_batch", None)  # values loaded with the old row may be outdated too
    row_state.copy_reloaded_columns(instance, found[0], columns)
    if instance._alias != alias:
        instance._alias = alias


def _clear_cached_relation(instance: Instance, relation: str) -> None:
    cache, field = f"_cached_{relation}", instance._meta.fields.get(relation)
    if isinstance(instance.__dict__.get(cache), list):
        drop_cache_with_undo(instance, cache)
    else:
        instance.__dict__.pop(cache, None)
    if field is not None:
        instance.__dict__.pop(f"_awaits_{field.attname}", None)


def insert_copy(instance: Instance, alias: str) -> Operation[None]:
    """Insert a row with all values of an instance, but with times and a version of its own."""
    meta, values = instance._meta, instance.__dict__
    missing = [field for field in meta.columns if field.attname not in values]
    if missing:
        yield from load_missing_columns([instance], alias, missing)
    fresh = [field for field in meta.columns if _is_reset_on_copy(meta, field)]
    empty = [key for key in meta.keys if values[key.attname] is None]
    former = {field.attname: values[field.attname] for field in (*empty, *fresh)}
    for key in empty:
        if key.db_fills:
            del values[key.attname]
        elif not key.generated:
            set_attribute_with_undo(instance, key.attname, key.get_default())
    for field in fresh:
        set_attribute_with_undo(instance, field.attname, field.get_default())
    for relation in meta.relations.values():
        if relation.kind != "forward":  # these rows belong to the original
            drop_cache_with_undo(instance, f"_cached_{relation.name}")
    try:
        yield from insert_instance(instance, alias)
    except BaseException:  # it is still to become a copy
        for name, value in former.items():
            set_attribute_with_undo(instance, name, value)
        raise


def _is_reset_on_copy(meta: Meta, field: AnyField) -> bool:
    """True for times that are set by themselves and for the version: a copy has its own."""
    if field is meta.version:
        return field.default is not MISSING
    return field in meta.auto_now or getattr(field, "auto_now_add", False)


def load_missing_columns(
    instances: Sequence[Instance], alias: str, missing: Sequence[AnyField]
) -> Operation[None]:
    """Set columns that stored instances of one model were read without, by one query."""
    meta, names = instances[0]._meta, ", ".join(field.name for field in missing)
    if any(not instance._row or alias != instance._alias for instance in instances):
        raise FieldError(
            f"A copy of a {meta.name} needs all its columns, got one without {names}; load them "
            "first"
        )
    # the keys as they were read: for a copy, the attribute may be None or another one already
    codecs = row_state.list_field_codecs(database_for(alias), meta.keys)
    keys: list[Any] = []
    for instance in instances:
        key: list[Any] = []
        for part, _, decode in codecs:
            raw = row_state.read_loaded_value(instance, part)
            key.append(raw if decode is None else decode(raw))
        keys.append(key[0] if len(key) == 1 else tuple(key))
    query = load_only_fields(build_unfiltered_query(meta, alias), missing)
    query = filter_by_key(query, keys[0]) if len(keys) == 1 else filter_by_keys(query, keys)
    found = yield from fetch_rows(query, batch_lazy=False)
    by_key = {row.pk: row for row in found}
    for instance, key in zip(instances, keys, strict=True):
        if key not in by_key:
            raise meta.model.DoesNotExist(
                f"{meta.name} was deleted, and {names} cannot be loaded for a copy; set them first"
            )
        for field in missing:
            setattr(instance, field.attname, getattr(by_key[key], field.attname))
