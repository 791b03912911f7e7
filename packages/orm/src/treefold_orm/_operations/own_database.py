"""The gate of writes: a row is written in its own database, and points to rows of it only."""

from __future__ import annotations

from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._base.references import find_cached_related
from treefold_orm._fields.meta import Instance
from treefold_orm._fields.relations import ForeignKey, is_foreign_key


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


def check_related_databases(instance: Instance, alias: str) -> None:
    """Raise `FieldError` where a related instance that was assigned is of another database."""
    values = instance.__dict__
    for field in instance._meta.columns:
        if not is_foreign_key(field):
            continue
        related: Instance | None = find_cached_related(instance, field.name)
        # with another key in the column, the cached instance is not what will be written; None
        # waits for the key of one that is not saved yet
        if related is not None and values.get(field.attname) in (None, related.pk):
            check_related_database(field, related, alias)


def check_related_database(field: ForeignKey[Any, Any], related: Instance, alias: str) -> None:
    """Raise `FieldError` where `related` is stored in another database than `alias`."""
    if related._row and related._alias != alias:
        name, owner = related._meta.name, field.meta.name
        raise FieldError(
            f"{owner}.{field.name} cannot point to a row of another database, got a {name} of "
            f"{related._alias!r} for a {owner} of {alias!r}; read the {name} with using({alias!r})"
        )
