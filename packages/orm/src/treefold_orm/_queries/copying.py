"""Inserting the row of a stored instance once more: as a copy, into another database, or after it
was deleted. Generators; no I/O of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldError
from treefold_orm._base.journal import drop_cache, put_value
from treefold_orm._base.statement import Operation
from treefold_orm._fields.base import MISSING, Field
from treefold_orm._fields.meta import Meta
from treefold_orm._queries.managers import plain_query
from treefold_orm._queries.operations import rows
from treefold_orm._queries.own_rows import only_fields, with_key
from treefold_orm._queries.saving import codecs, insert, loaded_value
from treefold_orm._runtime.connections import database_for

if TYPE_CHECKING:
    from treefold_orm._models.model import Model


def insert_copy(instance: Model, alias: str) -> Operation[None]:
    """Insert a row with all values of an instance, but with times and a version of its own."""
    meta, values = instance._meta, instance.__dict__
    missing = [field for field in meta.columns if field.attname not in values]
    if missing:
        yield from _load_missing(instance, alias, missing)
    fresh = [field for field in meta.columns if _is_renewed(meta, field)]
    empty = [key for key in meta.keys if values[key.attname] is None]
    former = {field.attname: values[field.attname] for field in (*empty, *fresh)}
    for key in empty:
        if key.db_fills:
            del values[key.attname]
        elif not key.generated:
            put_value(instance, key.attname, key.get_default())
    for field in fresh:
        put_value(instance, field.attname, field.get_default())
    for relation in meta.relations.values():
        if relation.kind != "forward":  # these rows belong to the original
            drop_cache(instance, f"_cached_{relation.name}")
    try:
        yield from insert(instance, alias)
    except BaseException:  # it is still to become a copy
        for name, value in former.items():
            put_value(instance, name, value)
        raise


def _is_renewed(meta: Meta, field: Field[Any]) -> bool:
    """True for times that are set by themselves and for the version: a copy has its own."""
    if field is meta.version:
        return field.default is not MISSING
    return field in meta.auto_now or getattr(field, "auto_now_add", False)


def _load_missing(instance: Model, alias: str, missing: list[Field[Any]]) -> Operation[None]:
    meta, names = instance._meta, ", ".join(field.name for field in missing)
    if not instance._row or alias != instance._alias:
        raise FieldError(
            f"A copy of a {meta.name} needs all its columns, got one without {names}; load them "
            "first"
        )
    key: list[Any] = []
    for part, _, decode in codecs(database_for(alias), meta.keys):
        raw = loaded_value(instance, part)
        key.append(raw if decode is None else decode(raw))
    query = with_key(plain_query(meta, alias), key[0] if len(key) == 1 else tuple(key))
    found = yield from rows(only_fields(query, missing), batch_lazy=False)
    if not found:
        raise meta.model.DoesNotExist(
            f"{meta.name} was deleted, and {names} cannot be loaded for a copy; set them first"
        )
    for field in missing:
        setattr(instance, field.attname, getattr(found[0], field.attname))
