"""Saving one instance: insert, update of what changed, delete, refresh. Generators; no I/O of
their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from treefold_orm._connections import database_for
from treefold_orm._errors import FieldError, ORMError, StaleObject
from treefold_orm._fields._base import Field
from treefold_orm._fields._relations import ForeignKey, is_foreign_key
from treefold_orm._fields._times import DateTimeField
from treefold_orm._meta import Meta
from treefold_orm._statement import Operation, Statement

if TYPE_CHECKING:
    from treefold_orm._compile._plan import Plan
    from treefold_orm._model import Model
    from treefold_orm.drivers._base import Database

I = TypeVar("I", bound="Model")  # noqa: E741 - the instance's own class
AnyField = Field[Any]
Fields = tuple[AnyField, ...]


def insert(instance: I, alias: str) -> Operation[I]:
    """Insert the instance's row; a generated key is set on it."""
    meta = instance._meta
    database = database_for(alias)
    key = meta.pk
    given = not key.generated or instance.__dict__.get(key.attname) is not None
    plan = database.plans.get(("insert", meta, given)) or _insert_plan(database, meta, given=given)
    fields = meta.columns if given else meta.columns_without_key
    values = instance.__dict__
    cleaned: list[Any] = []
    for field in fields:
        value = values.get(field.attname)
        if value is None:
            cleaned.append(clean_value(instance, field))
            continue
        checked = field.clean(value)
        if checked.__class__ is not value.__class__:
            setattr(instance, field.attname, checked)
        cleaned.append(checked)
    args = cleaned if plan.bind is None else plan.bind(cleaned)
    if given:
        yield Statement("count", plan.sql, args)
        instance._row = tuple(args)
    else:
        rows = yield Statement("rows", plan.sql, args)
        place = meta.key_place
        made = rows[0][0]
        setattr(instance, key.attname, made)
        instance._row = (*args[:place], made, *args[place:])
    if alias != "default":
        instance._alias = alias
    return instance


def _insert_plan(database: Database, meta: Meta, *, given: bool) -> Plan:
    fields = meta.columns if given else meta.columns_without_key
    returning = () if given else (meta.pk,)
    from treefold_orm._compile._writes import insert_plan

    plan = insert_plan(database.dialect, meta, fields, returning=returning)
    return database.plans.keep(("insert", meta, given), plan)


def clean_value(instance: Model, field: AnyField) -> Any:
    """The value to write, checked; the attribute takes the checked value where its type changed."""
    attname = field.attname
    value = instance.__dict__.get(attname)
    if value is None and is_foreign_key(field):
        value = _key_of_related(instance, field)
    cleaned = field.clean(value)
    if cleaned.__class__ is not value.__class__:
        setattr(instance, attname, cleaned)
    return cleaned


def _key_of_related(instance: Model, field: ForeignKey[Any, Any]) -> Any:
    related = instance.__dict__.get(f"_cached_{field.name}")
    if related is None:
        return None
    if related.pk is None:
        raise field.wrong(f"that {related._meta.name} is not saved yet")
    setattr(instance, field.attname, related.pk)
    return related.pk


def codecs(database: Database, fields: Fields) -> list[tuple[AnyField, Any, Any]]:
    """Fields with what encodes and decodes them."""
    name = database.dialect.name
    return [(field, field.encoder(name), field.decoder(name)) for field in fields]


def changed_fields(instance: Model, database: Database) -> list[AnyField]:
    """The columns whose values differ from the loaded row, and those set without having been
    loaded.
    """
    meta, values = instance._meta, instance.__dict__
    shape = instance._shape or meta.columns
    found: list[AnyField] = []
    for (field, _, decode), raw in zip(codecs(database, shape), instance._row, strict=False):
        if field.attname not in values:
            continue
        value = values[field.attname]
        before = raw if decode is None or raw is None else decode(raw)
        if value is None and is_foreign_key(field):
            value = _key_of_related(instance, field)
        if value is not before and (value != before or value.__class__ is not before.__class__):
            found.append(field)
    if shape is not meta.columns:
        found.extend(f for f in meta.columns if f not in shape and f.attname in values)
    return found


def save(
    instance: Model,
    alias: str,
    update_fields: Sequence[str] | None = None,
    *,
    force_insert: bool = False,
) -> Operation[None]:
    """Insert, or update what changed."""
    if instance._row is None or force_insert:
        if update_fields is not None:
            raise FieldError(f"save(update_fields=...) cannot insert a new {instance._meta.name}")
        yield from insert(instance, alias)
        return
    database = database_for(alias)
    fields = changed_fields(instance, database)
    if update_fields is not None:
        wanted = _named(instance._meta, update_fields)
        fields = [field for field in wanted if field.attname in instance.__dict__]
    if not fields:
        return
    if instance._meta.pk in fields:
        raise FieldError(
            f"The key of a stored {instance._meta.name} changed: save a new instance instead"
        )
    fields = _with_automatic(instance, fields)
    yield from _update(instance, database, tuple(fields))


def _named(meta: Meta, names: Sequence[str]) -> list[AnyField]:
    found: list[AnyField] = []
    for name in names:
        field = meta.fields.get(name) or meta.by_attname.get(name)
        if field is None:
            raise meta.unknown(name)
        found.append(field)
    return found


def _with_automatic(instance: Model, fields: list[AnyField]) -> list[AnyField]:
    for field in instance._meta.columns:
        if isinstance(field, DateTimeField) and field.auto_now:
            setattr(instance, field.attname, field.get_default())
            if field not in fields:
                fields.append(field)
    version = instance._meta.version
    if version is not None and version not in fields:
        fields.append(version)
    return fields


def _update(instance: Model, database: Database, fields: Fields) -> Operation[None]:
    meta = instance._meta
    version = meta.version
    expected = 0
    if version is not None:
        expected = loaded_value(instance, version)
        setattr(instance, version.attname, expected + 1)
    key = ("save", meta, fields)
    plan = database.plans.get(key)
    if plan is None:
        from treefold_orm._compile._writes import update_row_plan

        plan = database.plans.keep(
            key, update_row_plan(database.dialect, meta, fields, guard=version)
        )
    params = [clean_value(instance, field) for field in fields]
    params.append(instance.pk)
    if version is not None:
        params.append(expected)
    args = params if plan.bind is None else plan.bind(params)
    try:
        count = yield Statement("count", plan.sql, args)
        if count != 1:
            raise StaleObject(
                f"This {meta.name} was changed or deleted since it was read: read it again"
            )
    except ORMError:
        if version is not None:
            setattr(instance, version.attname, expected)
        raise
    remember(instance, fields, args)


def loaded_value(instance: Model, field: AnyField) -> Any:
    """The value of a column when the row was read or last written."""
    return instance._row[(instance._shape or instance._meta.columns).index(field)]


def remember(instance: Model, fields: Fields, args: Sequence[Any]) -> None:
    """Take down what the columns hold now, so that `save` writes what is changed from then on."""
    shape = instance._shape or instance._meta.columns
    row = list(instance._row)[: len(shape)]
    added: list[AnyField] = []
    for field, raw in zip(fields, args, strict=False):
        if field in shape:
            row[shape.index(field)] = raw
        else:
            added.append(field)
            row.append(raw)
    if added:
        instance._shape = (*shape, *added)
    instance._row = tuple(row)


def delete(instance: Model, alias: str) -> Operation[int]:
    """Delete the instance's row."""
    if instance.pk is None:
        raise FieldError(f"This {instance._meta.name} has no key: it was never saved")
    from treefold_orm._operations import delete as delete_rows

    count = yield from delete_rows(_one(instance, alias))
    instance._row = None
    return count


def refresh(instance: Model, alias: str, names: Sequence[str]) -> Operation[None]:
    """Read the row again."""
    from treefold_orm._operations import get

    query = _one(instance, alias)
    if names:
        _named(instance._meta, names)
        query = query.only(*names)
    fresh = yield from get(query, peers=False)
    for name in [n for n in instance.__dict__ if n.startswith("_cached_")]:
        del instance.__dict__[name]
    adopt(instance, fresh)


def adopt(instance: Model, fresh: Any) -> None:
    """Take over the columns of a freshly read instance of the same row."""
    shape: Fields = fresh._shape or fresh._meta.columns
    for field in shape:
        setattr(instance, field.attname, getattr(fresh, field.attname))
    if instance._row is None or len(shape) == len(fresh._meta.columns):
        instance._row, instance._shape = tuple(fresh._row), fresh._shape
    else:
        remember(instance, shape, tuple(fresh._row))


def _one(instance: Model, alias: str) -> Any:
    from treefold_orm._managers import plain_query

    return plain_query(instance._meta, alias).filter(pk=instance.pk)
