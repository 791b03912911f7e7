"""Many rows at once: bulk insert with generated keys, upsert, bulk update. Generators; no I/O of
their own.

Columns are checked as columns, which is much cheaper than value by value. PostgreSQL takes one
array for each column, unless a column holds arrays itself. All other statements take VALUES lists
of a few fixed lengths, so that the texts stay few.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from treefold_orm._base.databases import Home
from treefold_orm._base.errors import FieldError, StaleObject
from treefold_orm._base.journal import (
    NO_ANSWER,
    STATE,
    UNKNOWN,
    active,
    mark_row_uncertain,
    record_state_for_undo,
    set_attribute_with_undo,
)
from treefold_orm._base.statement import ATOMIC, Operation, Statement
from treefold_orm._building.steps import QuerySteps
from treefold_orm._compile import writes
from treefold_orm._fields.base import AnyField, Fields
from treefold_orm._fields.keys import expand_key_columns
from treefold_orm._fields.meta import Instance, Meta
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._operations.computed import bulk_update_with_expressions
from treefold_orm._operations.inserting import group_by_database_filled, set_returned_values
from treefold_orm._operations.own_database import check_related_databases, check_stored_in
from treefold_orm._operations.row_state import (
    I,
    clean_and_set_value,
    is_expression,
    read_loaded_value,
    record_new_version,
    record_stored_row,
    record_stored_values,
)
from treefold_orm._operations.saving import load_missing_columns
from treefold_orm._runtime.connections import database_for, has_several_databases

if TYPE_CHECKING:
    from treefold_orm._drivers.base import Database


Columns = list[list[Any]]

UNNEST_ROWS = 10_000
# SQLite takes 32,766 parameters in one statement, asyncpg 32,767
PARAMETERS = 30_000
SQLITE_ROWS = 500
_STATE = frozenset(STATE)


def build_conflict_rule(
    meta: Meta,
    ignore: bool,
    update: Sequence[str] | bool,
    update_fields: Sequence[str],
    unique_fields: Sequence[str],
) -> writes.Conflict | None:
    """Turn the arguments of `bulk_create` into a rule, or raise `FieldError`.

    The columns to update are named by `update` itself, or by `update_fields` where it is True.
    """
    if isinstance(update, bool):
        if update is not bool(update_fields):
            raise FieldError(
                "bulk_create() takes update_conflicts=True together with update_fields, got one "
                "without the other"
            )
        update = update_fields
    elif update_fields and update:
        raise FieldError("bulk_create() takes the columns as update_conflicts or update_fields")
    elif update_fields:
        raise FieldError("update_fields needs update_conflicts=True")
    if not ignore and not update:
        if unique_fields:
            raise FieldError("unique_fields needs update_conflicts or ignore_conflicts")
        return None
    if ignore and update:
        raise FieldError("ignore_conflicts and update_conflicts exclude each other")
    named = [_resolve_field(meta, name) for name in unique_fields]
    target = tuple(part for field in named for part in expand_key_columns(field))
    if update and not target:
        raise FieldError("update_conflicts needs unique_fields: the columns whose values may exist")
    return writes.Conflict(target, tuple(_resolve_field(meta, name) for name in update))


def _check_batch_size(size: int | None) -> None:
    if size is not None and (isinstance(size, bool) or size < 1):
        raise FieldError(f"batch_size={size!r} must be a number of at least 1")


def _resolve_field(meta: Meta, name: str) -> AnyField:
    return meta.pk if name == "pk" else meta.require_column(name)


def insert_instances(
    meta: Meta, rows: list[I], alias: str, *, batch_size: int | None, rule: writes.Conflict | None
) -> Operation[list[I]]:
    """Insert all rows; those without a key get the generated one unless `rule` may skip rows."""
    _check_batch_size(batch_size)
    kinds: set[type[Instance]] = set(map(type, rows))
    for kind in kinds:
        if not issubclass(kind, meta.model):
            raise FieldError(f"bulk_create takes instances of {meta.name}, not {kind.__name__}")
    if has_several_databases():
        for row in rows:
            check_related_databases(row, alias, meta.columns)
    # the names of all attributes of all rows in one call: a step for each row would be felt
    names = set[str]().union(*map(attrgetter("__dict__"), rows))
    are_new = _STATE.isdisjoint(names) and all(kind._alias == alias for kind in kinds)
    if not are_new:
        yield from _load_missing_values(rows, alias, meta.columns)
    database = database_for(alias)
    parts = _group_by_insert_columns(meta, rows, rule)
    for part in parts:
        part.choose_batch_sizes(database, batch_size)
    # one statement is atomic by itself, and spares BEGIN and COMMIT
    if sum(len(part.sizes) for part in parts) > 1:
        yield ATOMIC
    for part in parts:
        yield from _insert_row_group(database, meta, part, rule=rule, are_new=are_new)
    return rows


def _load_missing_values(rows: Sequence[Instance], alias: str, fields: Fields) -> Operation[None]:
    # such a column has no value to write, which is not the same as NULL or a default
    lacking: dict[Fields, list[Instance]] = {}
    for row in rows:
        if (shape := row._shape) is not None:
            values = row.__dict__
            missing = tuple(f for f in fields if f not in shape and f.attname not in values)
            if missing:
                lacking.setdefault(missing, []).append(row)
    if lacking:
        yield ATOMIC  # it must come before the first statement
    for missing, group in lacking.items():
        yield from load_missing_columns(group, alias, missing)


def _group_by_insert_columns(
    meta: Meta, rows: Sequence[Instance], rule: writes.Conflict | None
) -> list[_InsertGroup]:
    stored = meta.columns if rule is not None and rule.update else ()
    if meta.db_filled:
        return [
            _InsertGroup(
                group,
                tuple(f for f in meta.columns if f not in left),
                left if rule is None else stored,
            )
            for left, group in group_by_database_filled(rows).items()
        ]
    key = meta.pk
    without = [r for r in rows if r.__dict__.get(key.attname) is None] if key.generated else []
    with_key: Sequence[Instance] = rows if not without else []
    if 0 < len(without) < len(rows):
        with_key = [r for r in rows if r.__dict__.get(key.attname) is not None]
    parts = [_InsertGroup(with_key, meta.columns, stored)] if with_key else []
    if without:
        back = (key,) if rule is None else stored
        parts.append(_InsertGroup(without, meta.columns_without_key, back))
    return parts


@dataclasses.dataclass(slots=True)
class _InsertGroup:
    """Rows that insert the same columns, and the `sizes` of the statements that take them."""

    rows: Sequence[Instance]
    fields: Fields
    back: Fields
    unnest: bool = False
    sizes: list[int] = dataclasses.field(default_factory=list[int])

    def choose_batch_sizes(self, database: Database, batch_size: int | None) -> None:
        self.unnest = database.dialect.name == "postgres" and writes.can_unnest(self.fields)
        most = _compute_max_batch_rows(self.fields, unnest=self.unnest, batch_size=batch_size)
        left = len(self.rows)
        while left:
            self.sizes.append(min(most, left) if self.unnest else _choose_batch_size(left, most))
            left -= self.sizes[-1]


def _insert_row_group(
    database: Database,
    meta: Meta,
    given: _InsertGroup,
    *,
    rule: writes.Conflict | None,
    are_new: bool,
) -> Operation[None]:
    rows, fields, back, unnest = given.rows, given.fields, given.back, given.unnest
    columns = _clean_values_by_column(rows, fields)
    done = 0
    for size in given.sizes:
        part = [column[done : done + size] for column in columns] if size < len(rows) else columns
        plan = _find_or_build_insert_plan(
            database, meta, fields, rows=0 if unnest else size, rule=rule, returning=back
        )
        raw: list[Any] = part if unnest else _encode_columns(database, fields, part)
        args: Any = raw if unnest else list(chain.from_iterable(zip(*raw, strict=True)))
        if plan.bind is not None:
            args = plan.bind(args)
        if unnest:  # one array for each column, unless two columns of the same values share one
            raw = args if len(args) == len(fields) else _encode_columns(database, fields, part)
        outcome = yield Statement("rows" if back else "count", plan.sql, args)
        inserted = rows[done : done + size]
        done += size
        if back and back != (meta.pk,):
            _apply_returned_columns(database, inserted, fields, raw, returning=back, found=outcome)
        elif back:
            keys = [row[0] for row in outcome]
            _set_generated_keys(database, meta, inserted, raw, keys, are_new=are_new)
        elif len(fields) == len(meta.columns):
            _record_inserted_rows(database, inserted, raw, may_have_skipped=rule is not None)


def _compute_max_batch_rows(fields: Fields, *, unnest: bool, batch_size: int | None) -> int:
    if not fields:
        return 1  # DEFAULT VALUES inserts one row
    most = UNNEST_ROWS if unnest else min(SQLITE_ROWS, max(1, PARAMETERS // max(1, len(fields))))
    return most if batch_size is None else min(most, batch_size)


def _choose_batch_size(remaining: int, max_size: int) -> int:
    """A length from a short list: `max_size`, else the largest power of two that fits."""
    return max_size if remaining >= max_size else 1 << (remaining.bit_length() - 1)


def _clean_values_by_column(rows: Sequence[Instance], fields: Fields) -> Columns:
    columns: Columns = []
    for field in fields:
        values = _read_column(rows, field)
        if field.plain and values and _values_fit_field(field, values):
            columns.append(values)
        else:
            columns.append([clean_and_set_value(row, field) for row in rows])
    return columns


def _values_fit_field(field: AnyField, values: list[Any]) -> bool:
    # None in a foreign key may wait for the key of an instance that was saved meanwhile, which only
    # clean_and_set_value() takes over
    if field.null and not is_foreign_key(field) and None in values:
        values = [value for value in values if value is not None]
        return not values or field.fits_all(values)
    return field.fits_all(values)


def _encode_columns(database: Database, fields: Fields, columns: Columns) -> Columns:
    """The columns as the driver takes them."""
    name = database.dialect.name
    return [f.encode_column(column, name) for f, column in zip(fields, columns, strict=True)]


def _read_column(rows: Sequence[Instance], field: AnyField) -> list[Any]:
    try:
        return list(map(attrgetter(field.attname), rows))
    except Exception:  # noqa: BLE001, RUF100 - an attribute is missing: the value-by-value way says which
        return []


def _find_or_build_insert_plan(
    database: Database,
    meta: Meta,
    fields: Fields,
    *,
    rows: int,
    rule: writes.Conflict | None,
    returning: Fields,
) -> Any:
    given: dict[str, Any] = {"returning": returning, "conflict": rule}
    kind = "unnest"
    if rows:
        kind = "insert"
        given |= {"row_count": rows, "params_encoded": True}
    key = (kind, meta, fields, rows, rule, returning)
    return database.find_plan(key, meta, fields, **given)


def _record_inserted_rows(
    database: Database, rows: Sequence[Instance], raw: Columns, *, may_have_skipped: bool
) -> None:
    journal = active.journal
    for row, loaded in zip(rows, zip(*raw, strict=True), strict=True):
        if journal is not None:
            journal.ensure_state_recorded(row)
        record_stored_row(row, loaded, database.alias)
        if may_have_skipped:  # the row may have been there, with other values
            row._read_in = UNKNOWN


def _set_generated_keys(
    database: Database,
    meta: Meta,
    rows: Sequence[Instance],
    raw: Columns,
    keys: list[Any],
    *,
    are_new: bool,
) -> None:
    place, attname = meta.key_place, meta.pk.attname
    journal = active.journal
    if journal is not None:
        journal.record_attribute_changes(rows, attname, keys, are_new=are_new)
    stored = zip(*raw[:place], keys, *raw[place:], strict=True)
    if are_new:
        for held, key, loaded in zip(map(attrgetter("__dict__"), rows), keys, stored, strict=True):
            held[attname], held["_row"] = key, loaded  # all that is done with such a row below
        return
    for row, key, loaded in zip(rows, keys, stored, strict=True):
        setattr(row, attname, key)
        record_stored_row(row, loaded, database.alias)


def _apply_returned_columns(
    database: Database,
    rows: Sequence[Instance],
    fields: Fields,
    raw: Columns,
    *,
    returning: Fields,
    found: Any,
) -> None:
    meta = rows[0]._meta
    if len(returning) == len(meta.columns):
        _apply_returned_rows(database, meta, rows, found)
        _apply_returned_defaults(database, meta, rows, found)
        return
    written = list(zip(*raw, strict=True)) or [()] * len(rows)
    set_returned_values(database, rows, fields, written, returning, found)


def _apply_returned_defaults(
    database: Database, meta: Meta, rows: Sequence[Instance], found: Any
) -> None:
    for field in meta.db_filled:
        place, decode = meta.columns.index(field), field.decoder(database.dialect.name)
        for row, loaded in zip(rows, found, strict=True):
            if field.attname not in row.__dict__:
                raw = loaded[place]
                value = raw if decode is None or raw is None else decode(raw)
                set_attribute_with_undo(row, field.attname, value)


def _apply_returned_rows(
    database: Database, meta: Meta, rows: Sequence[Instance], found: Any
) -> None:
    # after an upsert the row may keep values that the instance does not have: `save` must see that
    dialect = database.dialect.name
    keys = [(key.attname, meta.columns.index(key), key.decoder(dialect)) for key in meta.keys]
    for row, loaded in zip(rows, found, strict=True):
        for attname, place, decode in keys:
            set_attribute_with_undo(
                row, attname, loaded[place] if decode is None else decode(loaded[place])
            )
        record_state_for_undo(row)
        record_stored_row(row, tuple(loaded), database.alias)


def choose_update_database(query: QuerySteps, given: Sequence[Instance]) -> str:
    """Return the database that `bulk_update` writes to: that of the query where one was chosen,
    else that of the rows.

    Raises `FieldError` for rows of several databases.
    """
    if not isinstance(query._alias, Home):
        return query._alias
    aliases = sorted({row._alias for row in given if row._row})
    if len(aliases) > 1:
        raise FieldError(
            f"bulk_update() takes rows of one database, got rows of {aliases[0]!r} and "
            f"{aliases[1]!r}; call it for each"
        )
    return aliases[0] if aliases else query._alias


def update_instances(
    meta: Meta, given: Sequence[Instance], alias: str, fields: Sequence[str], batch_size: int | None
) -> Operation[int]:
    """Write the named fields of all rows, or `StaleObject` where a version is no longer theirs."""
    _check_batch_size(batch_size)
    columns = _resolve_update_fields(meta, fields)
    if any(row.pk is None for row in given):
        raise FieldError(f"bulk_update takes stored instances: one {meta.name} has no key")
    rows = list({id(row): row for row in given}.values())  # twice the same is one write
    if has_several_databases():
        for row in rows:
            check_stored_in(row, alias, f"call bulk_update with using({row._alias!r})")
            check_related_databases(row, alias, columns)
    stored = [row for row in rows if row._row]
    yield from _load_missing_values(stored, alias, columns)
    database = database_for(alias)
    total = 0
    if computed := [row for row in rows if _has_expression(row, columns)]:
        rows = [row for row in rows if not _has_expression(row, columns)]
        yield ATOMIC
        total = yield from bulk_update_with_expressions(meta, database, computed, columns)
    if rows:
        total += yield from _update_in_batches(meta, database, rows, columns, batch_size or 200)
    return total


def _update_in_batches(
    meta: Meta, database: Database, rows: Sequence[Instance], columns: Fields, batch_size: int
) -> Operation[int]:
    version = meta.version
    width = len(meta.keys) + (version is not None) + len(columns)
    most = min(batch_size, max(1, PARAMETERS // width))
    written: list[Any] = []
    total = done = 0
    if version is not None or _choose_batch_size(len(rows), most) < len(rows):
        yield ATOMIC  # also where one statement turns out to have written a part of its rows
    while done < len(rows):
        size = _choose_batch_size(len(rows) - done, most)
        part = rows[done : done + size]
        key = ("bulk update", meta, columns, size)
        plan = database.plans.get(key)
        if plan is None:
            plan = database.find_plan(key, meta, columns, row_count=size)
        params = [
            value
            for row in part
            for value in (
                *_collect_key_and_version(row, version),
                *(clean_and_set_value(row, f) for f in columns),
            )
        ]
        args = params if plan.bind is None else plan.bind(params)
        try:
            count = yield Statement("count", plan.sql, args)
        except NO_ANSWER:
            for row in part:
                mark_row_uncertain(row)
            raise
        if version is not None and count != size:
            raise StaleObject(
                f"One {meta.name} of these was changed or deleted since it was read: read it again"
            )
        total += count
        written += args
        done += size
    # only now: a later batch that fails undoes the former
    for row, given in zip(rows, zip(*[iter(written)] * width, strict=True), strict=True):
        if row._row:
            record_stored_values(row, columns, given[-len(columns) :])
            if version is not None:
                record_new_version(row, version, given[len(meta.keys)] + 1)
    return total


def _resolve_update_fields(meta: Meta, names: Sequence[str]) -> Fields:
    columns = tuple(_resolve_field(meta, name) for name in names)
    if not columns or meta.pk in columns or any(key in columns for key in meta.keys):
        raise FieldError("bulk_update needs the names of fields to write, the key not among them")
    if meta.version in columns:
        raise FieldError(
            f"{meta.name}.{meta.version.name} counts the writes: bulk_update does so itself"
        )
    return columns


def _has_expression(row: Instance, columns: Fields) -> bool:
    values = row.__dict__
    return any(is_expression(values.get(field.attname)) for field in columns)


def _collect_key_and_version(row: Instance, version: AnyField | None) -> tuple[Any, ...]:
    """The key of a row, and the version that it was read with."""
    keys = tuple([getattr(row, part.attname) for part in row._meta.keys])
    if version is None:
        return keys
    return *keys, clean_and_set_value(row, version) if not row._row else read_loaded_value(
        row, version
    )
