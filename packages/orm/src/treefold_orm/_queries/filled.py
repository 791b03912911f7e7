"""Columns that the database fills on insert: left out of the statement, and read back by it.

An attribute whose field has a `db_default` and was given no value is not set on the instance.
Generators; no I/O of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.journal import keep_state, put_value
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._fields.base import Field
from treefold_orm._queries.saving import clean_value

if TYPE_CHECKING:
    from treefold_orm._drivers.base import Database
    from treefold_orm._models.model import Model

Fields = tuple[Field[Any], ...]


def left_out(instance: Model) -> Fields:
    """The columns whose value the database chooses, a generated key among them."""
    meta, values = instance._meta, instance.__dict__
    key = meta.pk
    left = tuple(f for f in meta.db_filled if f.attname not in values)
    if key.generated and values.get(key.attname) is None:
        return (key, *left)
    return left


def insert(instance: Model, database: Database, left: Fields) -> Operation[None]:
    """Insert one row without the columns in `left`, and set what the database chose."""
    meta = instance._meta
    fields = tuple(f for f in meta.columns if f not in left)
    plan = database.plans.get(("insert", meta, left))
    if plan is None:
        from treefold_orm._compile.writes import insert_plan

        made = insert_plan(database.dialect, meta, fields, returning=left)
        plan = database.plans.keep(("insert", meta, left), made)
    cleaned = [clean_value(instance, field) for field in fields]
    args = cleaned if plan.bind is None else plan.bind(cleaned)
    rows = yield Statement("rows", plan.sql, args)
    take(database, [instance], fields, [args], left, rows)


def by_left_out(rows: Sequence[Model]) -> dict[Fields, list[Any]]:
    """Rows grouped by the columns whose value the database chooses."""
    groups: dict[Fields, list[Any]] = {}
    for row in rows:
        groups.setdefault(left_out(row), []).append(row)
    return groups


def take(
    database: Database,
    rows: Sequence[Model],
    fields: Fields,
    written: Sequence[Sequence[Any]],
    left: Fields,
    returned: Sequence[Any],
) -> None:
    """Set what the database chose for `left`, and note the whole row as stored.

    `written` holds the encoded values of `fields` for each row, `returned` what came back.
    """
    decoders = [field.decoder(database.dialect.name) for field in left]
    for row, given, made in zip(rows, written, returned, strict=True):
        for field, decode, raw in zip(left, decoders, made, strict=True):
            value = raw if decode is None or raw is None else decode(raw)
            put_value(row, field.attname, value)
        raws = dict(zip((*fields, *left), (*given, *made), strict=True))
        keep_state(row)
        if row._read_in is not None:
            row._read_in = None
        row._row = tuple(raws[field] for field in row._meta.columns)
        if database.alias != "default":
            row._alias = database.alias
