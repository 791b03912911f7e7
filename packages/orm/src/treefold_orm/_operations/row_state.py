"""The values of an instance beside its stored row: to write, and written.

Changes of the instance go through the journal, so that a rollback puts it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from treefold_orm._base.errors import FieldValueError, StaleObject
from treefold_orm._base.journal import record_state_for_undo, set_attribute_with_undo
from treefold_orm._base.statement import Operation
from treefold_orm._building.own_rows import filter_by_key
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._expressions.resolving import COMPUTED
from treefold_orm._fields.base import AnyField, Fields
from treefold_orm._fields.meta import Instance
from treefold_orm._fields.relations import AnyForeignKey, is_foreign_key
from treefold_orm._operations.measuring import has_rows
from treefold_orm._operations.own_database import format_key_for_error

if TYPE_CHECKING:
    from treefold_orm._building.set_operations import ModelQuery
    from treefold_orm._drivers.base import Database


I = TypeVar("I", bound=Instance)  # noqa: E741 - the instance's own class


# nearly all values are of these, and a look into a set costs a fraction of isinstance()
_PLAIN = frozenset({int, str, float, bool, NoneType, bytes, dict, list})


DELETED: tuple[Any, ...] = ()  # the row of an instance that was deleted; None is one never stored


def clean_and_set_value(instance: Instance, field: AnyField) -> Any:
    """The value to write, checked; the attribute takes the checked value where its type or its
    form changed."""
    attname = field.attname
    value = instance.__dict__.get(attname)
    if value is None and is_foreign_key(field):
        value = adopt_related_key(instance, field)
    try:
        cleaned = field.clean(value)
    except FieldValueError:
        refuse_expression(field, value)
        raise
    if cleaned is not value and (cleaned.__class__ is not value.__class__ or field.normalises):
        setattr(instance, attname, cleaned)
    return cleaned


def refuse_expression(field: AnyField, value: object) -> None:
    """Raise `FieldValueError` where a row that is inserted is given an expression."""
    if is_expression(value):
        raise field.build_value_error(
            f"takes a value, got {type(value).__name__}; no row is stored yet that an expression "
            "could be computed from"
        ) from None


def is_expression(value: object) -> bool:
    """True for a value that the database computes: an expression, or a query for one value."""
    if value.__class__ in _PLAIN:
        return False
    return isinstance(value, COMPUTED)


def adopt_related_key(instance: Instance, field: AnyForeignKey) -> Any:
    """Take over the key of a related instance that was saved after it was assigned."""
    waiting = f"_awaits_{field.attname}"  # an instance is assigned that had no key then
    if not instance.__dict__.get(waiting):
        return None
    related = instance.__dict__[f"_cached_{field.name}"]
    if related.pk is None:
        raise field.build_value_error(
            f"that {related._meta.name} is not saved yet; save it before the {instance._meta.name}"
        )
    set_attribute_with_undo(instance, field.attname, related.pk)
    set_attribute_with_undo(instance, waiting, False)
    return related.pk


def list_field_codecs(database: Database, fields: Fields) -> list[tuple[AnyField, Any, Any]]:
    """Fields with their encoders and decoders."""
    name = database.dialect.name
    return [(field, field.encoder(name), field.decoder(name)) for field in fields]


def find_changed_fields(instance: Instance, database: Database) -> list[AnyField]:
    """The columns whose values differ from the loaded row, and those set without having been
    loaded.
    """
    meta, values = instance._meta, instance.__dict__
    shape = instance._shape or meta.columns
    found: list[AnyField] = []
    guessed = instance._read_in is not None and instance._read_in.is_undone
    for (field, _, decode), raw in zip(
        list_field_codecs(database, shape), instance._row, strict=False
    ):
        if field.attname not in values:
            continue
        value = values[field.attname]
        # decoded once more from the stored row: a list that was changed in place differs from it
        before = raw if decode is None or raw is None else decode(raw)
        if value is None and is_foreign_key(field):
            value = adopt_related_key(instance, field)
        if guessed and field not in meta.keys:
            found.append(field)  # the row was read in a transaction that was rolled back
        # the class too: True == 1 and 1.0 == 1, and each is stored in a form of its own
        elif value is not before and (value.__class__ is not before.__class__ or value != before):
            found.append(field)
    if shape is not meta.columns:
        found.extend(f for f in meta.columns if f not in shape and f.attname in values)
    return found


def read_loaded_value(instance: Instance, field: AnyField) -> Any:
    """The value of a column when the row was read or last written."""
    return instance._row[(instance._shape or instance._meta.columns).index(field)]


def record_stored_row(instance: Instance, row: tuple[Any, ...], alias: str) -> None:
    """Note `row`, which holds every column of the model in its order, as the stored one in a
    database. The state for a rollback is recorded before.
    """
    instance._row = row
    # most instances have the defaults of the class, and an assignment would give each its own
    if instance._shape is not None:  # it may have the columns in the order of their loading
        instance._shape = None
    if instance._read_in is not None:
        instance._read_in = None
    if instance._alias != alias:
        instance._alias = alias


def record_stored_values(instance: Instance, fields: Fields, encoded_values: Sequence[Any]) -> None:
    """Note the current values of the columns, so that `save` writes later changes."""
    record_state_for_undo(instance)
    shape = instance._shape or instance._meta.columns
    row = list(instance._row)[: len(shape)]
    added: list[AnyField] = []
    for field, raw in zip(fields, encoded_values, strict=False):
        if field in shape:
            row[shape.index(field)] = raw
        else:
            added.append(field)
            row.append(raw)
    if added:
        instance._shape = (*shape, *added)
    instance._row = tuple(row)


def record_new_version(instance: Instance, version_field: AnyField, new_version: int) -> None:
    """Set the version that a statement has written, and note it as stored."""
    set_attribute_with_undo(instance, version_field.attname, new_version)
    record_stored_values(instance, (version_field,), (new_version,))


def copy_reloaded_columns(instance: Instance, fresh: Instance, columns: Sequence[AnyField]) -> None:
    """Take over columns of a freshly read instance of the same row.

    The version that is read with a part of the columns speaks of these alone: an instance that
    knows one keeps it, so that `save()` notices what the others do not show.
    """
    shape: Fields = fresh._shape or fresh._meta.columns
    raw = tuple(fresh._row)
    whole = not instance._row or len(shape) == len(fresh._meta.columns)
    version = instance._meta.version
    known = version is not None and version.attname in instance.__dict__
    if known and not whole and version in shape and version not in columns:
        place = shape.index(version)
        shape, raw = shape[:place] + shape[place + 1 :], raw[:place] + raw[place + 1 :]
    record_state_for_undo(instance)
    for field in shape:
        set_attribute_with_undo(instance, field.attname, getattr(fresh, field.attname))
    if whole:
        instance._row, instance._shape = raw, fresh._shape
        instance._read_in = fresh._read_in
    else:
        record_stored_values(instance, shape, raw)
        if instance._read_in is None or not instance._read_in.is_undone:
            instance._read_in = fresh._read_in


def diagnose_failed_update(instance: Instance, alias: str) -> Operation[StaleObject]:
    """The error for an update that matched no row: it is gone, or has another version."""
    meta, key = instance._meta, format_key_for_error(instance)
    if meta.version is not None and (yield from has_rows(build_row_query(instance, alias))):
        return build_stale_error(instance, "apply the change again")
    return StaleObject(
        f"{meta.name} with key {key} was deleted since it was read; save(force_insert=True) "
        "inserts it again"
    )


def build_stale_error(instance: Instance, remedy: str) -> StaleObject:
    """The error for a row whose version is no longer the one that it was read with."""
    meta = instance._meta
    assert meta.version is not None  # noqa: S101 - only rows with a version are asked about
    return StaleObject(
        f"{meta.name} with key {format_key_for_error(instance)} was changed since it was read:"
        " its version is "
        f"no longer {read_loaded_value(instance, meta.version)!r}; refresh_from_db() and {remedy}"
    )


def build_row_query(instance: Instance, alias: str) -> ModelQuery:
    """The query for the row of an instance."""
    return filter_by_key(build_unfiltered_query(instance._meta, alias), instance.pk)
