"""The gate of writes: a row is written in its own database, and points to rows of it only."""

from __future__ import annotations

from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._base.references import find_cached_related
from treefold_orm._fields.base import AnyField, Fields
from treefold_orm._fields.meta import Instance
from treefold_orm._fields.relations import AnyForeignKey, is_foreign_key
from treefold_orm._runtime.connections import database_for
from treefold_orm._terms.operators import Expression


def format_key_for_error(instance: Instance) -> str:
    """The key for an error; a secret is not shown."""
    return "***" if instance._meta.pk.sensitive else repr(instance.pk)


def check_stored_in(instance: Instance, alias: str, remedy: str) -> None:
    """Raise `FieldError` where a stored row is to be written in another database than its own."""
    if instance._row and alias != instance._alias:
        raise FieldError(
            f"{instance._meta.name} with key {format_key_for_error(instance)} is stored in the "
            f"database {instance._alias!r}, got using={alias!r}; {remedy}"
        )


def check_related_databases(instance: Instance, alias: str, fields: Fields) -> None:
    """Raise `FieldError` where one of `fields`, which are to be written, takes its key from a
    related instance of another database.

    A related row that was prefetched from there stands beside the key that was read with the
    instance: this key is written again as it is.
    """
    values = instance.__dict__
    for field in fields:
        if not is_foreign_key(field):
            continue
        related: Instance | None = find_cached_related(instance, field.name)
        if related is None or not related._row or related._alias == alias:
            continue
        # with another key in the column, the cached instance is not what will be written; None
        # waits for the key of one that was not saved when it was assigned
        key = values.get(field.attname)
        if key is None:
            taken = values.get(f"_awaits_{field.attname}")
        elif isinstance(key, Expression) or key != related.pk:
            taken = False
        else:
            taken = not _is_stored_key(instance, field, key, alias)
        if taken:
            check_related_database(field, related, alias)


def _is_stored_key(instance: Instance, field: AnyField, key: Any, alias: str) -> bool:
    shape = instance._shape or instance._meta.columns
    if not instance._row or instance._alias != alias or field not in shape:
        return False
    raw = instance._row[shape.index(field)]
    decode = field.decoder(database_for(alias).dialect.name)
    return key == (raw if decode is None or raw is None else decode(raw))


def check_related_database(field: AnyForeignKey, related: Instance, alias: str) -> None:
    """Raise `FieldError` where `related` is stored in another database than `alias`."""
    if related._row and related._alias != alias:
        name, owner = related._meta.name, field.meta.name
        raise FieldError(
            f"{owner}.{field.name} cannot point to a row of another database, got a {name} of "
            f"{related._alias!r} for a {owner} of {alias!r}; read the {name} with using({alias!r})"
        )
