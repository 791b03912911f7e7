"""Checking all values of an instance before it is saved: `Model.full_clean`.

No I/O: checks that need the database (uniqueness, missing targets, check constraints) are made
when the row is written.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from treefold_orm._base.errors import FieldValueError, ValidationError
from treefold_orm._base.names import check_untainted
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Instance
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._operations.row_state import adopt_related_key
from treefold_orm._terms.operators import Expression

WHOLE = "__all__"


def full_clean(instance: Instance, exclude: Collection[str]) -> None:
    """Check every field but those in `exclude`, then call `clean()`; raise all that was found."""
    meta = instance._meta
    for name in exclude:
        check_untainted(name)
        meta.require_column(name)
    found: dict[str, list[str]] = {}
    for field in meta.columns:
        if field.name in exclude or field.attname in exclude:
            continue
        if messages := _clean_and_collect_errors(instance, field):
            found[field.name] = messages
    for name, messages in _collect_errors_of_clean(instance).items():
        found.setdefault(name, []).extend(messages)
    if found:
        raise ValidationError(found, model=meta.name)


def _clean_and_collect_errors(instance: Instance, field: AnyField) -> list[str]:
    values = instance.__dict__
    if field.attname not in values:
        return []  # not loaded, or left to the database
    value = values[field.attname]
    if isinstance(value, Expression) or (value is None and field.generated):
        return []  # the database makes the value
    try:
        if value is None and is_foreign_key(field):
            value = adopt_related_key(instance, field)
        setattr(instance, field.attname, field.clean(value))
    except FieldValueError as error:
        return _collect_value_errors(field, value) or [error.reason]
    return []


def _collect_value_errors(field: AnyField, value: Any) -> list[str]:
    """Return the errors of a value of the right type; nothing for a value of another type."""
    try:
        if value is None:
            return []
        return [each.reason for each in field.iter_value_errors(field.coerce(value))]
    except FieldValueError:
        return []


def _collect_errors_of_clean(instance: Instance) -> dict[str, list[str]]:
    try:
        instance.clean()
    except ValidationError as error:
        return error.message_dict
    except FieldValueError as error:
        return {error.field: [error.reason]}
    except ValueError as error:
        return {WHOLE: [str(error)]}
    return {}
