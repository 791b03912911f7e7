"""Columns to members of a shape: type, rule, default, and whether a request may set it.

    class Book(Model):                                member of a shape
        id                                            int, read-only
        title = CharField(max_length=40)              Annotated[str, ColumnRule], required
        note = TextField(null=True)                   Annotated[str, ColumnRule] | None = None
        stock = IntegerField(default=1)               Annotated[int, ColumnRule] = 1
        kind = CharField(choices=["a", "b"], ...)     Annotated[Literal["a", "b"], ColumnRule]
        made = DateTimeField(auto_now_add=True)       Annotated[datetime, ColumnRule], read-only
        author = ForeignKey(Author)                   author_id: that of `Author.id`

The rule checks what a request sends, as a write would, after its JSON was read as the type. Nothing
here knows HTTP: documents read the attributes of a rule, whose names are those of annotated-types.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import uuid
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from treefold_orm._base.errors import FieldError
from treefold_orm._fields.base import MISSING, AnyField
from treefold_orm._fields.numbers import IntegerField
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._fields.structured import ArrayField, EnumField
from treefold_orm._fields.text import EmailField, TextField, URLField

SCALAR_TYPES: Mapping[str, Any] = {
    "text": str,
    "integer": int,
    "bigint": int,
    "boolean": bool,
    "float": float,
    "decimal": decimal.Decimal,
    "date": dt.date,
    "time": dt.time,
    "datetime": dt.datetime,
    "duration": dt.timedelta,
    "uuid": uuid.UUID,
}
"""The types of values whose text a request can have, by the type in the database."""
_TYPES: Mapping[str, Any] = {
    **SCALAR_TYPES,
    "binary": bytes,
    # all of JSON but null, which is NULL of the column
    "json": dict[str, Any] | list[Any] | str | int | float | bool,
}
_FORMATS: dict[type[AnyField], str] = {EmailField: "email", URLField: "uri"}
READ_ONLY = "read_only"
UNSET = "unset"


class ColumnRule:
    """The rule of a column, as metadata of a type.

    Attributes:
        max_length, ge, le: its limits; None without one.
        format: the form of its text in JSON Schema, such as `email`; None without one.
        description: its text for people.
    """

    def __init__(self, field: AnyField) -> None:
        self._clean = field.clean
        self.max_length: int | None = None
        if isinstance(field, TextField) and not field.choices:
            self.max_length = field.max_length
        self.format = next((f for kind, f in _FORMATS.items() if isinstance(field, kind)), None)
        self.ge: int | None = None
        self.le: int | None = None
        if isinstance(field, IntegerField) and not (field.primary_key or field.choices):
            self.ge, self.le = field.low, field.high
        self.description: str | None = field.help_text or None

    def check_field_value(self, value: Any) -> Any:
        """Return a value as its column takes it, or raise `FieldValueError`, a `ValueError`."""
        return self._clean(value)


def build_member_type(field: AnyField) -> Any:
    """Return the type of the values of a column, with its rule.

    Raises:
        FieldError: for a field whose values have no type that JSON is read as.
    """
    made: Any = Annotated[_find_value_type(field), ColumnRule(field)]
    return made | None if field.null else made


def _find_value_type(field: AnyField) -> Any:
    if is_foreign_key(field):
        return _find_value_type(field.known_target.pk)
    if field.choices:
        plain = [value.value if isinstance(value, enum.Enum) else value for value in field.choices]
        given = tuple(value for value in plain if value is not None)
        if all(isinstance(value, (str, int)) for value in given):
            return Literal[given]
    if isinstance(field, EnumField):
        return field.enum_class
    if isinstance(field, ArrayField):
        return list[build_member_type(field.base)]
    if (known := _TYPES.get(field.internal)) is None:
        raise FieldError(
            f"{field!r} cannot be a member of a shape: its values have no JSON form; annotate"
            f" the member, {field.name}: T"
        )
    return known


def build_dataclass_field(field: AnyField, *, is_version: bool) -> Any:
    """Return the default of a member, as `dataclasses.field()` takes it."""
    if is_read_only(field, is_version=is_version):
        return dataclasses.field(metadata={READ_ONLY: True})
    if field.db_fills:
        unset = functools.partial(_refuse_unset, field.name)
        return dataclasses.field(default_factory=unset, metadata={UNSET: True})
    if callable(field.default):
        return dataclasses.field(default_factory=field.default)
    if field.default is MISSING:
        return dataclasses.field(default=None) if field.null else dataclasses.field()
    if field.default.__hash__ is None:  # an object or list of JSON, of which each shape has its own
        return dataclasses.field(default_factory=functools.partial(copy.deepcopy, field.default))
    return dataclasses.field(default=field.default)


def has_default(field: dataclasses.Field[Any]) -> bool:
    """Return True for a member of a dataclass with a default."""
    return field.default is not dataclasses.MISSING or (
        field.default_factory is not dataclasses.MISSING
    )


def get_default(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a member that has one."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def is_read_only(field: AnyField, *, is_version: bool) -> bool:
    """Return True for a column that no request sets: a key that the database makes, a time that is
    set by itself, the version.
    """
    automatic = getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    return bool(field.generated or automatic or is_version)


def _refuse_unset(name: str) -> Any:
    raise FieldError(f"{name!r} has no value yet: the database fills it, so read the row again")
