"""Inserting one row, and values that the database fills. Generators; no I/O of their own.

An attribute whose field has a `db_default` and was given no value is not set on the instance: its
column is left out of the statement and read back by it.

| What the instance lacks | Columns of the INSERT | RETURNING |
|---|---|---|
| nothing | all | nothing: the row is known |
| a generated key | all others | the key |
| values with a `db_default` | all others | these, and a generated key |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldValueError, ZoneMismatch
from treefold_orm._base.journal import record_state_for_undo, set_attribute_with_undo
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._building.steps import QuerySteps
from treefold_orm._fields.base import AnyField, Fields
from treefold_orm._fields.meta import Instance
from treefold_orm._operations.own_database import check_related_databases
from treefold_orm._operations.row_state import (
    I,
    clean_and_set_value,
    record_stored_row,
    refuse_expression,
)
from treefold_orm._runtime.connections import database_for, has_several_databases

if TYPE_CHECKING:
    from treefold_orm._drivers.base import Database


def insert_instance(instance: I, alias: str) -> Operation[I]:
    """Insert the instance's row; a generated key is set on it."""
    meta = instance._meta
    database = database_for(alias)
    key = meta.pk
    has_key = not key.generated or instance.__dict__.get(key.attname) is not None
    if has_several_databases():
        check_related_databases(instance, alias, meta.columns)
    if meta.db_filled:
        database_filled = find_database_filled_fields(instance)
        if database_filled:
            yield from _insert_with_database_values(instance, database, database_filled)
            return instance
    fields = meta.columns if has_key else meta.columns_without_key
    # without what the database fills there are two plans for a model: with its key and without
    plan = database.plans.get(("insert", meta, has_key))
    if plan is None:
        returning = () if has_key else (key,)
        plan = database.find_plan(("insert", meta, has_key), meta, fields, returning=returning)
    cleaned = _clean_and_set_values(instance, fields)
    args = cleaned if plan.bind is None else plan.bind(cleaned)
    try:
        rows = yield Statement("count" if has_key else "rows", plan.sql, args)
    except ZoneMismatch as error:
        # the driver knows the number of the argument only
        raise error.with_field_name(format_field_names(fields)) from None
    if has_key:
        record_state_for_undo(instance)
        record_stored_row(instance, tuple(args), alias)
    else:
        place = meta.key_place
        generated = rows[0][0]
        set_attribute_with_undo(instance, key.attname, generated)
        record_stored_row(instance, (*args[:place], generated, *args[place:]), alias)
    return instance


def insert_values(query: QuerySteps, values: dict[str, Any]) -> Operation[Any]:
    """Insert a row of these values, tied to the instance that the query belongs to, if any."""
    if (parent := query._parent) is not None:
        return parent._insert_related(values, query._alias)
    return insert_instance(query._meta.model(**values), query._alias)


def format_field_names(fields: Iterable[AnyField]) -> list[str]:
    """The names of columns with their models, for messages."""
    return [f"{field.meta.name}.{field.name}" for field in fields]


def _clean_and_set_values(instance: Instance, fields: Fields) -> list[Any]:
    values = instance.__dict__
    cleaned: list[Any] = []
    for field in fields:
        value = values.get(field.attname)
        if value is None:
            cleaned.append(clean_and_set_value(instance, field))
            continue
        try:
            checked = field.clean(value)
        except FieldValueError:
            refuse_expression(field, value)
            raise
        # the instance shows what is stored: a value in the field's own type and one spelling
        if checked is not value and (checked.__class__ is not value.__class__ or field.normalises):
            setattr(instance, field.attname, checked)
        cleaned.append(checked)
    return cleaned


def find_database_filled_fields(instance: Instance) -> Fields:
    """The columns whose value the database chooses, a generated key among them."""
    meta, values = instance._meta, instance.__dict__
    key = meta.pk
    left = tuple(f for f in meta.db_filled if f.attname not in values)
    if key.generated and values.get(key.attname) is None:
        return (key, *left)
    return left


def _insert_with_database_values(
    instance: Instance, database: Database, database_filled: Fields
) -> Operation[None]:
    meta = instance._meta
    fields = tuple(f for f in meta.columns if f not in database_filled)
    wanted = ("insert", meta, database_filled)
    plan = database.find_plan(wanted, meta, fields, returning=database_filled)
    cleaned = [clean_and_set_value(instance, field) for field in fields]
    args = cleaned if plan.bind is None else plan.bind(cleaned)
    try:
        rows = yield Statement("rows", plan.sql, args)
    except ZoneMismatch as error:
        raise error.with_field_name(format_field_names(fields)) from None
    set_returned_values(database, [instance], fields, [args], database_filled, rows)


def group_by_database_filled(rows: Sequence[Instance]) -> dict[Fields, list[Instance]]:
    """Rows grouped by the columns whose value the database chooses."""
    groups: dict[Fields, list[Instance]] = {}
    for row in rows:
        groups.setdefault(find_database_filled_fields(row), []).append(row)
    return groups


def set_returned_values(
    database: Database,
    rows: Sequence[Instance],
    fields: Fields,
    encoded_values: Sequence[Sequence[Any]],
    returned_fields: Fields,
    returned: Sequence[Any],
) -> None:
    """Set the values the database chose for `returned_fields`, and note the whole row as stored.

    `encoded_values` holds the encoded values of `fields` for each row, `returned` what came back.
    """
    decoders = [field.decoder(database.dialect.name) for field in returned_fields]
    for row, given, made in zip(rows, encoded_values, returned, strict=True):
        for field, decode, raw in zip(returned_fields, decoders, made, strict=True):
            value = raw if decode is None or raw is None else decode(raw)
            set_attribute_with_undo(row, field.attname, value)
        raws = dict(zip((*fields, *returned_fields), (*given, *made), strict=True))
        record_state_for_undo(row)
        record_stored_row(row, tuple(raws[field] for field in row._meta.columns), database.alias)
