"""UUID, Binary, JSON, Enum and Array fields, and the lists that a query makes of values.

JSON is written compact with sorted keys on both databases, so that equal documents are equal text;
a value that is not plain JSON is refused rather than rendered through `str`.
"""

from __future__ import annotations

import enum
import functools
import json
import re
import uuid
from typing import Any, ClassVar, Generic, TypeVar, Unpack, cast, overload

from treefold_orm._base.errors import DatabaseError, FieldValueError, ModelError, UnsupportedFeature
from treefold_orm._fields.base import AnyField, Codec, Field, NotNull, Nullable, Options, T
from treefold_orm._fields.numbers import BigIntegerField
from treefold_orm._fields.text import TextField

E = TypeVar("E", bound=enum.Enum)
I = TypeVar("I")  # noqa: E741 - the item type of an array, named as such in the docs

# 64 bits have 19 digits at most; of a longer text, int() takes quadratic time
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


class UUIDField(Field[T]):
    """A UUID; its text form is accepted."""

    types: ClassVar[dict[str, str]] = {"sqlite": "TEXT", "postgres": "uuid"}
    internal = "uuid"
    on_sqlite = (str, uuid.UUID)

    @overload
    def __init__(self: UUIDField[uuid.UUID], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: UUIDField[uuid.UUID | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)

    def coerce(self, value: Any) -> uuid.UUID:
        if isinstance(value, uuid.UUID):
            return value
        if not isinstance(value, str):
            raise self.build_value_error(f"takes a UUID, not {type(value).__name__}")
        try:
            return uuid.UUID(value)
        except ValueError:
            raise self.build_value_error("not a UUID") from None


class BinaryField(Field[T]):
    """Bytes."""

    types: ClassVar[dict[str, str]] = {"sqlite": "BLOB", "postgres": "bytea"}
    internal = "binary"

    @overload
    def __init__(self: BinaryField[bytes], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: BinaryField[bytes | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)

    def coerce(self, value: Any) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise self.build_value_error(f"takes bytes, not {type(value).__name__}")
        return bytes(cast("bytes", value))


class JSONField(Field[T]):
    """Any JSON value: dict with text keys, list, text, number, bool. None means NULL of the
    column.
    """

    types: ClassVar[dict[str, str]] = {"sqlite": "TEXT", "postgres": "jsonb"}
    internal = "json"

    def __init__(self: JSONField[Any], *, null: bool = False, **options: Unpack[Options]) -> None:
        super().__init__(null=null, **options)

    def coerce(self, value: Any) -> Any:
        check_json(self, value)
        return value

    def encoder(self, dialect: str) -> Codec | None:
        return dump_canonical_json

    def decoder(self, dialect: str) -> Codec | None:
        return json.loads

    def checks(self, dialect: str) -> list[str]:
        return ["{0} IS NULL OR json_valid({0})"] if dialect == "sqlite" else []


class EnumField(Field[T], Generic[T]):
    """A member of an `enum.Enum` class, kept as its value (all text, or all integers).

    With a class of `TextChoices` or `IntegerChoices`, members have labels and the model has
    `get_<field>_display()`; a `CharField(choices=...)` of the same class gives plain text instead.
    """

    @overload
    def __init__(self: EnumField[E], enum_class: type[E], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(
        self: EnumField[E | None], enum_class: type[E], **options: Unpack[Nullable]
    ) -> None: ...
    def __init__(self, enum_class: type[Any], **options: Any) -> None:
        self._init_field(options)
        values = [member.value for member in cast("type[enum.Enum]", enum_class)]
        if values and all(isinstance(v, str) for v in values):
            self.base: AnyField = TextField(max_length=max(map(len, values)))
        elif values and all(isinstance(v, int) and not isinstance(v, bool) for v in values):
            self.base = BigIntegerField()
        else:
            raise ModelError(
                f"{enum_class.__name__} needs values that are all text or all integers"
            )
        self.enum_class = enum_class

    @property
    def has_labels(self) -> bool:
        return self.choices is not None or hasattr(self.enum_class, "choices")

    def find_label(self, value: Any) -> str | None:
        if self.choices is None and value is not None:
            return getattr(self.enum_class(value), "label", str(value))
        return super().find_label(value)

    @property
    def internal(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - follows the values' type
        return self.base.internal

    def column_type(self, dialect: str) -> str:
        return self.base.column_type(dialect)

    def coerce(self, value: Any) -> Any:
        try:
            return self.enum_class(value)
        except ValueError:
            raise self.build_value_error(f"not a {self.enum_class.__name__}") from None

    def parse(self, text: str) -> Any:
        # an integer in the one form that str() gives it: int() takes "+1", "01" and " 1" as well
        plain = self.base.internal == "bigint" and _INTEGER.fullmatch(text) is not None
        return self.coerce(int(text) if plain else text)

    def encoder(self, dialect: str) -> Codec | None:
        return _unwrap_enum_member

    def decoder(self, dialect: str) -> Codec | None:
        return _Members(self).__getitem__


class _Members(dict[Any, enum.Enum]):
    """Members by their stored value."""

    def __init__(self, field: EnumField[Any]) -> None:
        members = cast("type[enum.Enum]", field.enum_class)
        super().__init__({member.value: member for member in members})
        self._field = field

    def __missing__(self, value: Any) -> enum.Enum:
        field = self._field
        try:
            return field.enum_class(value)  # it may know old values
        except ValueError:
            name = field.enum_class.__name__
        # not within the handler, whose error shows the value of the row
        raise DatabaseError(
            f"{field.meta.name}.{field.name} holds a value that {name} does not have: add a member "
            "for it, or update the rows"
        )


class ArrayField(Field[T], Generic[T]):
    """A list of one type (PostgreSQL only): `ArrayField(TextField())`."""

    internal = "array"

    @overload
    def __init__(self: ArrayField[list[I]], base: Field[I], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(
        self: ArrayField[list[I] | None], base: Field[I], **options: Unpack[Nullable]
    ) -> None: ...
    def __init__(self, base: AnyField, **options: Any) -> None:
        self._init_field(options)
        if isinstance(base, (ArrayField, JSONField)):
            raise ModelError(
                f"ArrayField of {type(base).__name__} is not supported: use a JSONField"
            )
        self.base = base

    def column_type(self, dialect: str) -> str:
        if dialect != "postgres":
            raise UnsupportedFeature(
                f"{self.meta.name}.{self.name}: ArrayField needs PostgreSQL; use a JSONField"
            )
        return f"{self.base.column_type(dialect)}[]"

    def coerce(self, value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise self.build_value_error(f"takes a list, not {type(value).__name__}")
        try:
            items = cast("list[Any]", value)
            return [
                None if item is None and self.base.null else self.base.clean(item) for item in items
            ]
        except FieldValueError as error:
            raise self.build_value_error(f"an item {error.reason}", **error.limits) from None

    def encoder(self, dialect: str) -> Codec | None:
        encode = self.base.encoder(dialect)
        if encode is None:
            return None
        return lambda items: [None if i is None else encode(i) for i in items]

    def decoder(self, dialect: str) -> Codec | None:
        decode = self.base.decoder(dialect)
        if decode is None:
            return list  # a copy: the loaded row must not change with the attribute
        return lambda items: [None if i is None else decode(i) for i in items]


def dump_canonical_json(value: Any) -> str:
    """Return `value` as compact JSON with sorted keys."""
    return json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def check_json(field: AnyField, value: Any) -> None:
    """Raise `FieldValueError` unless `value` is plain JSON that both databases keep."""
    try:
        text = dump_canonical_json(value)
        # fails for a lone surrogate, which no database takes
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise field.build_value_error(
            "takes plain JSON: dict, list, text, finite number, bool, None"
        ) from None
    # PostgreSQL's jsonb takes no NUL; a text may hold a backslash and these five signs itself
    if "\\u0000" in text and "\0" in "".join(_collect_texts(value)):
        raise field.build_value_error("contains a NUL character")
    # json.dumps() writes the key 1 as "1": another document would come back
    if not _has_only_text_keys(value):
        raise field.build_value_error("takes text keys only")


def _collect_texts(value: Any) -> list[str]:
    found: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            stack.extend(cast("dict[Any, Any]", item).keys())
            stack.extend(cast("dict[Any, Any]", item).values())
        elif isinstance(item, (list, tuple)):
            stack.extend(cast("list[Any]", item))
    return found


def _has_only_text_keys(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            mapping = cast("dict[Any, Any]", item)
            if not all(isinstance(key, str) for key in mapping):
                return False
            stack.extend(mapping.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(cast("list[Any]", item))
    return True


def _unwrap_enum_member(member: enum.Enum) -> Any:
    return member.value


class ListField(ArrayField[list[Any]]):
    """Carries a list of values of one field, NULL among them; no column has it."""

    def __init__(self, base: AnyField) -> None:
        # an ArrayField refuses items that no column has, but a result may have
        self._init_field({"null": True})
        self.base = base

    def coerce(self, value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise self.build_value_error(f"takes a list, not {type(value).__name__}")
        items = cast("list[Any]", value)
        return [None if item is None else self.base.coerce(item) for item in items]

    def encoder(self, dialect: str) -> Codec | None:
        encode = super().encoder(dialect)
        if dialect != "sqlite":
            return encode
        return lambda items: json.dumps(
            [_encode_bytes_as_hex(item) for item in (items if encode is None else encode(items))]
        )

    def decoder(self, dialect: str) -> Codec | None:
        decode = self.base.decoder(dialect)
        if dialect != "sqlite":
            return super().decoder(dialect)
        if self.base.internal == "binary":
            decode = bytes.fromhex
        if decode is None:
            return json.loads
        return lambda text: [None if i is None else decode(i) for i in json.loads(text)]


def _encode_bytes_as_hex(item: Any) -> Any:
    return item.hex() if isinstance(item, bytes) else item


@functools.lru_cache(maxsize=1024)
def make_list_field(base: AnyField) -> AnyField:
    """The field of lists of a field's values: one for each, since plans are kept by it."""
    return ListField(base)
