"""Saving one instance: insert, update of what changed, delete, refresh. Generators; no I/O of
their own.

What changes on the instance goes through the journal, so that a rollback puts it back, and only
once the statement has succeeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from treefold_orm._base.errors import FieldError, FieldValueError, StaleObject
from treefold_orm._base.journal import NO_ANSWER, doubt_row, drop_cache, keep_state, put_value
from treefold_orm._base.references import cached
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._expressions.expressions import Expression
from treefold_orm._fields.base import Field
from treefold_orm._fields.meta import Meta
from treefold_orm._fields.relations import ForeignKey, is_foreign_key
from treefold_orm._queries.own_rows import only_fields, with_key
from treefold_orm._runtime.connections import database_for, several_databases

if TYPE_CHECKING:
    from treefold_orm._compile.plan import Plan
    from treefold_orm._drivers.base import Database
    from treefold_orm._models.model import Model

I = TypeVar("I", bound="Model")  # noqa: E741 - the instance's own class
AnyField = Field[Any]
Fields = tuple[AnyField, ...]
_PLAIN = frozenset({int, str, float, bool, NoneType, bytes, dict, list})
DELETED: tuple[Any, ...] = ()  # the row of an instance that was deleted; None is one never stored


def insert(instance: I, alias: str) -> Operation[I]:
    """Insert the instance's row; a generated key is set on it."""
    meta = instance._meta
    database = database_for(alias)
    key = meta.pk
    given = not key.generated or instance.__dict__.get(key.attname) is not None
    if several_databases():
        check_targets(instance, alias)
    if meta.db_filled:
        from treefold_orm._queries import filled

        left = filled.left_out(instance)
        if left:
            yield from filled.insert(instance, database, left)
            return _stored_in(instance, alias)
    plan = database.plans.get(("insert", meta, given)) or _insert_plan(database, meta, given=given)
    fields = meta.columns if given else meta.columns_without_key
    cleaned = _cleaned(instance, fields)
    args = cleaned if plan.bind is None else plan.bind(cleaned)
    if given:
        yield Statement("count", plan.sql, args)
        keep_state(instance)
        instance._row = tuple(args)
    else:
        rows = yield Statement("rows", plan.sql, args)
        place = meta.key_place
        made = rows[0][0]
        put_value(instance, key.attname, made)
        instance._row = (*args[:place], made, *args[place:])
    return _stored_in(instance, alias)


def _stored_in(instance: I, alias: str) -> I:
    if instance._read_in is not None:
        instance._read_in = None
    if instance._shape is not None:
        instance._shape = None
    if instance._alias != alias:
        instance._alias = alias
    return instance


def _cleaned(instance: Model, fields: Fields) -> list[Any]:
    values = instance.__dict__
    cleaned: list[Any] = []
    for field in fields:
        value = values.get(field.attname)
        if value is None:
            cleaned.append(clean_value(instance, field))
            continue
        try:
            checked = field.clean(value)
        except FieldValueError:
            refuse_expression(field, value)
            raise
        if checked.__class__ is not value.__class__:
            setattr(instance, field.attname, checked)
        cleaned.append(checked)
    return cleaned


def _insert_plan(database: Database, meta: Meta, *, given: bool) -> Plan:
    fields = meta.columns if given else meta.columns_without_key
    returning = () if given else (meta.pk,)
    from treefold_orm._compile.writes import insert_plan

    plan = insert_plan(database.dialect, meta, fields, returning=returning)
    return database.plans.keep(("insert", meta, given), plan)


def clean_value(instance: Model, field: AnyField) -> Any:
    """The value to write, checked; the attribute takes the checked value where its type changed."""
    attname = field.attname
    value = instance.__dict__.get(attname)
    if value is None and is_foreign_key(field):
        value = key_of_related(instance, field)
    try:
        cleaned = field.clean(value)
    except FieldValueError:
        refuse_expression(field, value)
        raise
    if cleaned.__class__ is not value.__class__:
        setattr(instance, attname, cleaned)
    return cleaned


def check_targets(instance: Model, alias: str) -> None:
    """Raise `FieldError` where a related instance that was assigned is of another database."""
    values = instance.__dict__
    for field in instance._meta.columns:
        if not is_foreign_key(field):
            continue
        related: Model | None = cached(instance, field.name)
        if related is not None and values.get(field.attname) in (None, related.pk):
            check_target(field, related, alias)


def check_target(field: ForeignKey[Any, Any], related: Model, alias: str) -> None:
    """Raise `FieldError` where `related` is stored in another database than `alias`."""
    if related._row and related._alias != alias:
        name, owner = related._meta.name, field.meta.name
        raise FieldError(
            f"{owner}.{field.name} cannot point to a row of another database, got a {name} of "
            f"{related._alias!r} for a {owner} of {alias!r}; read the {name} with using({alias!r})"
        )


def refuse_expression(field: AnyField, value: Any) -> None:
    """Raise `FieldValueError` where a row that is inserted is given an expression."""
    if is_expression(value):
        raise field.wrong(
            f"takes a value, got {type(value).__name__}; no row is stored yet that an expression "
            "could be computed from"
        ) from None


def is_expression(value: Any) -> bool:
    """True for what the database computes: an expression, or a query for one value."""
    if value.__class__ in _PLAIN:
        return False
    return isinstance(value, Expression) or hasattr(value, "_freeze_subquery")


def key_of_related(instance: Model, field: ForeignKey[Any, Any]) -> Any:
    """Take over the key of a related instance that was saved after it was assigned."""
    waiting = f"_awaits_{field.attname}"  # an instance is assigned that had no key then
    if not instance.__dict__.get(waiting):
        return None
    related = instance.__dict__[f"_cached_{field.name}"]
    if related.pk is None:
        raise field.wrong(
            f"that {related._meta.name} is not saved yet; save it before the {instance._meta.name}"
        )
    put_value(instance, field.attname, related.pk)
    put_value(instance, waiting, False)
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
    guessed = instance._read_in is not None and instance._read_in.is_undone
    for (field, _, decode), raw in zip(codecs(database, shape), instance._row, strict=False):
        if field.attname not in values:
            continue
        value = values[field.attname]
        before = raw if decode is None or raw is None else decode(raw)
        if value is None and is_foreign_key(field):
            value = key_of_related(instance, field)
        if guessed and field not in meta.keys:
            found.append(field)  # the row was read in a transaction that was rolled back
        elif value is not before and (value.__class__ is not before.__class__ or value != before):
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
    meta, row = instance._meta, instance._row
    if row is None or force_insert or instance.pk is None:
        if update_fields is not None:
            raise FieldError(f"save(update_fields=...) cannot insert a new {meta.name}")
        if row is not None:
            from treefold_orm._queries.copying import insert_copy

            yield from insert_copy(instance, alias)
        else:
            yield from insert(instance, alias)
        return
    _check_stored(instance, alias)
    if several_databases():
        check_targets(instance, alias)
    database = database_for(alias)
    fields = changed_fields(instance, database)
    if update_fields is not None:
        wanted = _named(meta, update_fields)
        fields = [field for field in wanted if field.attname in instance.__dict__]
    if not fields and (update_fields is not None or not meta.auto_now):
        return
    if any(key in fields for key in meta.keys):
        raise FieldError(
            f"The key of a stored {meta.name} cannot change, got {shown_key(instance)}; "
            "save(force_insert=True) inserts a copy"
        )
    given = _automatic(instance)
    fields += [field for field in given if field not in fields]
    if any(is_expression(instance.__dict__.get(field.attname)) for field in fields):
        from treefold_orm._queries.computed import save_computed

        yield from save_computed(instance, database, fields, given)
    else:
        yield from _update(instance, database, tuple(fields), given)
    if update_fields is None and instance._read_in is not None:
        instance._read_in = None


def _check_stored(instance: Model, alias: str) -> None:
    if not instance._row:
        raise StaleObject(
            f"{instance._meta.name} with key {shown_key(instance)} was deleted; "
            "save(force_insert=True) inserts it again, and with pk = None it becomes a new row"
        )
    if alias != instance._alias:
        raise FieldError(
            f"{instance._meta.name} with key {shown_key(instance)} is stored in the database "
            f"{instance._alias!r}, got using={alias!r}; save(using={alias!r}, force_insert=True) "
            "inserts a copy there"
        )


def shown_key(instance: Model) -> str:
    """The key for an error; a secret is not shown."""
    return "***" if instance._meta.pk.sensitive else repr(instance.pk)


def _named(meta: Meta, names: Sequence[str]) -> list[AnyField]:
    found: list[AnyField] = []
    for name in names:
        field = meta.fields.get(name) or meta.by_attname.get(name)
        if field is None:
            raise meta.unknown(name)
        found.append(field)
    return found


def _automatic(instance: Model) -> dict[AnyField, Any]:
    """The values that every update writes by itself; the instance has them once it is written."""
    given: dict[AnyField, Any] = {field: field.get_default() for field in instance._meta.auto_now}
    version = instance._meta.version
    if version is not None:
        given[version] = loaded_value(instance, version) + 1
    return given


def _update(
    instance: Model, database: Database, fields: Fields, given: dict[AnyField, Any]
) -> Operation[None]:
    meta = instance._meta
    version = meta.version
    key = ("save", meta, fields)
    plan = database.plans.get(key)
    if plan is None:
        from treefold_orm._compile.writes import update_row_plan

        plan = database.plans.keep(
            key, update_row_plan(database.dialect, meta, fields, guard=version)
        )
    params = [given[f] if f in given else clean_value(instance, f) for f in fields]
    params += [getattr(instance, part.attname) for part in meta.keys]
    if version is not None:
        params.append(given[version] - 1)
    args = params if plan.bind is None else plan.bind(params)
    try:
        count = yield Statement("count", plan.sql, args)
    except NO_ANSWER:
        doubt_row(instance)
        raise
    if count != 1:
        raise (yield from not_written(instance, database.alias))
    for field, value in given.items():
        put_value(instance, field.attname, value)
    remember(instance, fields, args)


def not_written(instance: Model, alias: str) -> Operation[StaleObject]:
    """The error for an update that matched no row: it is gone, or has another version."""
    from treefold_orm._queries.operations import exists

    meta, key = instance._meta, shown_key(instance)
    if meta.version is not None and (yield from exists(_one(instance, alias))):
        expected = loaded_value(instance, meta.version)
        return StaleObject(
            f"{meta.name} with key {key} was changed since it was read: its version is no longer "
            f"{expected!r}; refresh_from_db() and apply the change again"
        )
    return StaleObject(
        f"{meta.name} with key {key} was deleted since it was read; save(force_insert=True) "
        "inserts it again"
    )


def loaded_value(instance: Model, field: AnyField) -> Any:
    """The value of a column when the row was read or last written."""
    return instance._row[(instance._shape or instance._meta.columns).index(field)]


def remember(instance: Model, fields: Fields, args: Sequence[Any]) -> None:
    """Take down what the columns hold now, so that `save` writes what is changed from then on."""
    keep_state(instance)
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
    from treefold_orm._queries.operations import delete as delete_rows

    count = yield from delete_rows(_one(instance, alias))
    if alias == instance._alias and instance._row is not None:
        keep_state(instance)
        instance._row = DELETED
    return count


def refresh(instance: Model, alias: str, names: Sequence[str] | None) -> Operation[None]:
    """Read the row again: the columns that are loaded, or the named ones."""
    from treefold_orm._queries.operations import rows

    meta, values = instance._meta, instance.__dict__
    if instance.pk is None:
        raise FieldError(f"This {meta.name} has no key: it was never saved")
    related = [] if names is None else [n for n in names if n in meta.relations]
    columns = (
        [f for f in meta.columns if f.attname in values or not instance._row]
        if names is None
        else _named(meta, [n for n in names if n in meta.fields or n not in meta.relations])
    )
    query = _one(instance, alias)
    if len(columns) < len(meta.columns):
        query = only_fields(query, columns)
    found = yield from rows(query, batch_lazy=False)
    if not found:
        raise meta.model.DoesNotExist(
            f"{meta.name} with key {shown_key(instance)} does not exist; it was deleted"
        )
    for name in [*meta.relations] if names is None else related:
        _forget(instance, name)
    values.pop("_batch", None)  # what was loaded with the old row may be outdated too
    adopt(instance, found[0], columns)
    if instance._alias != alias:
        instance._alias = alias


def _forget(instance: Model, relation: str) -> None:
    cache, field = f"_cached_{relation}", instance._meta.fields.get(relation)
    if isinstance(instance.__dict__.get(cache), list):
        drop_cache(instance, cache)
    else:
        instance.__dict__.pop(cache, None)
    if field is not None:
        instance.__dict__.pop(f"_awaits_{field.attname}", None)


def adopt(instance: Model, fresh: Any, columns: Sequence[AnyField]) -> None:
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
    keep_state(instance)
    for field in shape:
        put_value(instance, field.attname, getattr(fresh, field.attname))
    if whole:
        instance._row, instance._shape = raw, fresh._shape
        instance._read_in = fresh._read_in
    else:
        remember(instance, shape, raw)
        if instance._read_in is None or not instance._read_in.is_undone:
            instance._read_in = fresh._read_in


def _one(instance: Model, alias: str) -> Any:
    from treefold_orm._queries.managers import plain_query

    return with_key(plain_query(instance._meta, alias), instance.pk)
