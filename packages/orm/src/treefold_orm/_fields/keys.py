"""Primary keys: the attribute `pk` of models and instances, and keys of several columns.

A key of one column is that column. A key of several is a `KeyColumns` in `Meta.pk`, which
is no column: a query compares, orders and reads its parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

from treefold_orm._base.errors import FieldValueError, ModelError
from treefold_orm._fields.base import AnyField, Field, Fields, Owner, Stored

if TYPE_CHECKING:
    from treefold_orm._terms.columns import AnyColumn, Column

_UNORDERED = frozenset({"binary", "json", "array"})
"""Kinds of columns that cannot be part of a key: they have no order in which rows could come."""


T = TypeVar("T")


class Keyed(Protocol[T]):
    """A model whose key is called `id`, as far as its `pk` knows it."""

    @property
    def id(self) -> Field[T]: ...


class KeyAccess:
    """`pk` of a model with a key of one column.

    To a type checker it has the type of `id`: which field is the key, it cannot see.
    """

    @overload
    def __get__(self, instance: None, owner: type[Keyed[T]]) -> Column[T]: ...
    @overload
    def __get__(self, instance: Keyed[T], owner: type[object]) -> T: ...
    @overload
    def __get__(self, instance: object, owner: type[object]) -> Any: ...
    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        if instance is None:
            return owner._meta.pk.column
        return getattr(instance, owner._meta.pk.attname)

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(instance, instance._meta.pk.attname, value)


class CompositePrimaryKey(KeyAccess):
    """A primary key of several columns: `pk = CompositePrimaryKey("tenant", "number")`.

    `pk` of an instance is a tuple of their values, and None until all are set; a query compares it
    with tuples: `get(pk=(1, 7))`, `filter(pk__in=[(1, 7), (1, 8)])`, `order_by("pk")`. No relation
    can point to such a model. Raises `ModelError` at the class for parts that cannot be a key.
    """

    def __init__(self, *fields: str) -> None:
        if len(fields) < 2 or len(set(fields)) != len(fields):
            raise ModelError(
                f"CompositePrimaryKey must have at least two different fields, got {fields!r}; "
                "for one field set primary_key=True"
            )
        self.names = fields

    @overload
    def __get__(self, instance: None, owner: type[object]) -> AnyColumn: ...
    @overload
    def __get__(self, instance: Stored, owner: type[object]) -> tuple[Any, ...] | None: ...
    def __get__(self, instance: Stored | None, owner: type[Any]) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - several fields have no common type
        meta: Any = owner._meta
        if instance is None:
            return meta.pk.column
        values = tuple([getattr(instance, part.attname) for part in meta.keys])
        return None if None in values else values

    def __set__(self, instance: Any, value: Any) -> None:
        keys = instance._meta.keys
        if value is None:
            value = [None] * len(keys)
        elif not isinstance(value, (tuple, list)) or len(cast("list[Any]", value)) != len(keys):
            wanted = f"takes a tuple of {len(keys)} values, or None"
            raise instance._meta.pk.build_value_error(wanted)
        for part, item in zip(keys, cast("list[Any]", value), strict=True):
            # an instance goes to the relation of the part, its key to the column
            setattr(instance, part.name if hasattr(item, "_meta") else part.attname, item)


class KeyColumns(Field[tuple[Any, ...]]):
    """The primary key of a model with several key columns; `parts` are these columns.

    A field in all places that take one (lookups, orders, messages), with tuples as values; no
    column of its own is created or read.
    """

    internal = "key"

    def __init__(self, parts: Fields) -> None:
        super().__init__(primary_key=True)
        self.parts = parts

    def bind(self, meta: Owner, name: str) -> None:
        for part in self.parts:
            _check_key_part(meta, part)
        self.meta = meta
        self.name = self.attname = self.column_name = name

    @property
    def sensitive(self) -> bool:
        return any(part.sensitive for part in self.parts)

    def coerce(self, value: Any) -> tuple[Any, ...]:
        if hasattr(value, "_meta") and value._meta is self.meta:
            if value.pk is None:
                raise self.build_value_error(f"that {self.meta.name} is not saved yet")
            value = value.pk
        if not isinstance(value, (tuple, list)):
            raise self.build_value_error(
                f"takes a tuple of {len(self.parts)} values, not {type(value).__name__}"
            )
        items = cast("list[Any]", value)
        if len(items) != len(self.parts):
            raise self.build_value_error(f"takes {len(self.parts)} values, not {len(items)}")
        if None in items:
            raise self.build_value_error("no part of a key may be null")
        try:
            return tuple([p.coerce(item) for p, item in zip(self.parts, items, strict=True)])
        except FieldValueError as error:
            raise self.build_value_error(f"{error.field} {error.reason}", **error.limits) from None

    def parse(self, text: str) -> tuple[Any, ...]:
        raise self.build_value_error("cannot come from one text; take its columns one by one")

    def column_type(self, dialect: str) -> str:
        return ""


def _check_key_part(meta: Owner, part: AnyField) -> None:
    where = f"{meta.name}.{part.name}"
    if part.null:
        raise ModelError(f"{where} cannot be part of the primary key: drop null=True")
    if not hasattr(part, "to") and part.internal in _UNORDERED:
        raise ModelError(
            f"{where} cannot be part of the primary key: a {type(part).__name__} has no order"
        )


def expand_key_columns(field: AnyField) -> Fields:
    """The columns that a field stands for: itself, or the parts of a key of several columns."""
    return field.parts if isinstance(field, KeyColumns) else (field,)
