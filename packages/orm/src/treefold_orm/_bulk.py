"""Many rows at once: bulk insert with generated keys, upsert, bulk update. Generators; no I/O of
their own.

Columns are checked as columns, which is much cheaper than value by value. PostgreSQL takes one
array for each column; SQLite takes VALUES lists of a few fixed lengths, so that the texts stay
few.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from treefold_orm._compile._writes import (
    Conflict,
    bulk_update_plan,
    can_unnest,
    insert_plan,
    unnest_plan,
)
from treefold_orm._connections import database_for
from treefold_orm._errors import FieldError, StaleObject
from treefold_orm._fields._base import Field
from treefold_orm._meta import Meta
from treefold_orm._saving import clean_value, loaded_value, remember
from treefold_orm._statement import Operation, Statement

if TYPE_CHECKING:
    from treefold_orm._model import Model
    from treefold_orm.drivers._base import Database

AnyField = Field[Any]
Fields = tuple[AnyField, ...]

UNNEST_ROWS = 10_000
PARAMETERS = 30_000
SQLITE_ROWS = 500


def conflict(
    meta: Meta, *, ignore: bool, update: Sequence[str], unique: Sequence[str]
) -> Conflict | None:
    """Turn the arguments of `bulk_create` into a rule, or raise `FieldError`."""
    if not ignore and not update:
        if unique:
            raise FieldError("unique_fields needs update_conflicts or ignore_conflicts")
        return None
    if ignore and update:
        raise FieldError("ignore_conflicts and update_conflicts exclude each other")
    target = tuple(_field(meta, name) for name in unique)
    if update and not target:
        raise FieldError("update_conflicts needs unique_fields: the columns whose values may exist")
    return Conflict(target, tuple(_field(meta, name) for name in update))


def _field(meta: Meta, name: str) -> AnyField:
    found = meta.pk if name == "pk" else meta.fields.get(name) or meta.by_attname.get(name)
    if found is None:
        raise meta.unknown(name)
    return found


def several_statements(rows: Sequence[Any], batch_size: int | None) -> bool:
    """Whether inserting may take more than one statement, which then belong together."""
    return len(rows) > min(batch_size or SQLITE_ROWS, SQLITE_ROWS)


def create(
    meta: Meta, rows: list[Any], alias: str, *, batch_size: int | None, rule: Conflict | None
) -> Operation[list[Any]]:
    """Insert all rows; those without a key get the generated one unless `rule` may skip rows."""
    if batch_size is not None and (isinstance(batch_size, bool) or batch_size < 1):
        raise FieldError(f"batch_size={batch_size!r} must be a number of at least 1")
    for row in rows:
        if row.__class__ is not meta.model and not isinstance(row, meta.model):
            raise FieldError(
                f"bulk_create takes instances of {meta.name}, not {type(row).__name__}"
            )
    database = database_for(alias)
    key = meta.pk
    without = [r for r in rows if r.__dict__.get(key.attname) is None] if key.generated else []
    with_key = rows if not without else [r for r in rows if r.__dict__.get(key.attname) is not None]
    if with_key:
        back = meta.columns if rule is not None and rule.update else ()
        yield from _insert(
            database, meta, with_key, meta.columns, batch_size=batch_size, rule=rule, back=back
        )
    if without:
        fields = tuple(f for f in meta.columns if f is not key)
        back = (key,) if rule is None else meta.columns if rule.update else ()
        yield from _insert(
            database, meta, without, fields, batch_size=batch_size, rule=rule, back=back
        )
    return rows


def _insert(
    database: Database,
    meta: Meta,
    rows: list[Any],
    fields: Fields,
    *,
    batch_size: int | None,
    rule: Conflict | None,
    back: Fields,
) -> Operation[None]:
    columns = _cleaned(rows, fields)
    unnest = database.dialect.name == "postgres" and can_unnest(fields)
    most = _most_rows(fields, unnest=unnest, batch_size=batch_size)
    done = 0
    while done < len(rows):
        size = min(most, len(rows) - done) if unnest else _piece(len(rows) - done, most)
        part = [column[done : done + size] for column in columns] if size < len(rows) else columns
        plan = _plan(database, meta, fields, rows=0 if unnest else size, rule=rule, back=back)
        params = part if unnest else [value for row in zip(*part, strict=True) for value in row]
        args = params if plan.bind is None else plan.bind(params)
        outcome = yield Statement("rows" if back else "count", plan.sql, args)
        if len(back) > 1:
            _remember_stored(database, meta, rows[done : done + size], outcome)
            done += size
            continue
        raw = args if unnest and len(args) == len(fields) else None
        _remember(
            database,
            meta,
            rows[done : done + size],
            fields,
            part,
            raw,
            made=outcome if back else None,
        )
        done += size


def _most_rows(fields: Fields, *, unnest: bool, batch_size: int | None) -> int:
    most = UNNEST_ROWS if unnest else min(SQLITE_ROWS, max(1, PARAMETERS // max(1, len(fields))))
    return most if batch_size is None else min(most, batch_size)


def _piece(left: int, most: int) -> int:
    """A length from a short list: `most`, else the largest power of two that fits."""
    return most if left >= most else 1 << (left.bit_length() - 1)


def _cleaned(rows: list[Any], fields: Fields) -> list[list[Any]]:
    columns: list[list[Any]] = []
    for field in fields:
        values = _column(rows, field)
        if field.plain and values and field.fits_all(values):
            columns.append(values)
        else:
            columns.append([clean_value(row, field) for row in rows])
    return columns


def _column(rows: list[Any], field: AnyField) -> list[Any]:
    try:
        return list(map(attrgetter(field.attname), rows))
    except Exception:  # noqa: BLE001, RUF100 - an attribute is missing: the value-by-value way says which
        return []


def _plan(
    database: Database,
    meta: Meta,
    fields: Fields,
    *,
    rows: int,
    rule: Conflict | None,
    back: Fields,
) -> Any:
    key = ("bulk", meta, fields, rows, rule, back)
    plan = database.plans.get(key)
    if plan is not None:
        return plan
    if rows:
        made = insert_plan(database.dialect, meta, fields, returning=back, conflict=rule, rows=rows)
    else:
        made = unnest_plan(database.dialect, meta, fields, returning=back, conflict=rule)
    return database.plans.keep(key, made)


def _remember(
    database: Database,
    meta: Meta,
    rows: list[Any],
    fields: Fields,
    columns: list[list[Any]],
    raw: Any,
    *,
    made: Any,
) -> None:
    if raw is None:
        name = database.dialect.name
        encoders = [field.encoder(name) for field in fields]
        raw = [
            column if encode is None else [None if v is None else encode(v) for v in column]
            for column, encode in zip(columns, encoders, strict=True)
        ]
    if made is None:
        if len(fields) == len(meta.columns):
            for row, loaded in zip(rows, zip(*raw, strict=True), strict=True):
                row._row = loaded
        return
    place = meta.columns.index(meta.pk)
    keys = [row[0] for row in made]
    attname = meta.pk.attname
    for row, key, loaded in zip(
        rows, keys, zip(*raw[:place], keys, *raw[place:], strict=True), strict=True
    ):
        setattr(row, attname, key)
        row._row = loaded
    if database.alias != "default":
        for row in rows:
            row._alias = database.alias


def _remember_stored(database: Database, meta: Meta, rows: list[Any], stored: Any) -> None:
    # after an upsert the row may keep values that the instance does not have: `save` must see that
    decode = meta.pk.decoder(database.dialect.name)
    for row, loaded in zip(rows, stored, strict=True):
        key = loaded[meta.key_place]
        setattr(row, meta.pk.attname, key if decode is None else decode(key))
        row._row = tuple(loaded)
        if database.alias != "default":
            row._alias = database.alias


def update(
    meta: Meta, rows: list[Model], alias: str, *, fields: Sequence[str], batch_size: int
) -> Operation[int]:
    """Write the named fields of all rows, or `StaleObject` where a version is no longer theirs."""
    if isinstance(batch_size, bool) or batch_size < 1:
        raise FieldError(f"batch_size={batch_size!r} must be a number of at least 1")
    columns = tuple(_field(meta, name) for name in fields)
    if not columns or meta.pk in columns:
        raise FieldError("bulk_update needs the names of fields to write, the key not among them")
    version = meta.version
    if version in columns:
        raise FieldError(
            f"{meta.name}.{version.name} counts the writes: bulk_update does so itself"
        )
    for row in rows:
        if row.pk is None:
            raise FieldError(f"bulk_update takes stored instances: one {meta.name} has no key")
    rows = list({id(row): row for row in rows}.values())  # twice the same is one write
    database = database_for(alias)
    known = (meta.pk,) if version is None else (meta.pk, version)
    width = len(known) + len(columns)
    most = min(batch_size, max(1, PARAMETERS // width))
    written: list[Any] = []
    total = done = 0
    while done < len(rows):
        size = _piece(len(rows) - done, most)
        part = rows[done : done + size]
        key = ("bulk update", meta, columns, size)
        plan = database.plans.get(key)
        if plan is None:
            plan = database.plans.keep(
                key, bulk_update_plan(database.dialect, meta, columns, rows=size)
            )
        params = [
            value
            for row in part
            for value in (*_known(row, version), *(clean_value(row, f) for f in columns))
        ]
        args = params if plan.bind is None else plan.bind(params)
        count = yield Statement("count", plan.sql, args)
        if version is not None and count != size:
            raise StaleObject(
                f"One {meta.name} of these was changed or deleted since it was read: read it again"
            )
        total += count
        written += args
        done += size
    for i, row in enumerate(rows):  # only now: a later batch that fails undoes the former
        if row._row is not None:
            given = written[i * width : (i + 1) * width]
            remember(row, columns, given[len(known) :])
            if version is not None:
                setattr(row, version.attname, given[1] + 1)
                remember(row, (version,), (given[1] + 1,))
    return total


def _known(row: Model, version: AnyField | None) -> tuple[Any, ...]:
    """The key of a row, and the version that it was read with."""
    if version is None:
        return (row.pk,)
    return row.pk, clean_value(row, version) if row._row is None else loaded_value(row, version)
