"""Numeric fields: integers in all sizes, keys made by the database, floats and exact decimals.

SQLite stores a Decimal as an integer scaled by its fixed places: exact, sortable, summable.
"""

from __future__ import annotations

import decimal
import math
from functools import partial
from typing import Any, ClassVar, Literal, Unpack, overload

from treefold_orm._base.errors import ModelError, UnsupportedFeature
from treefold_orm._fields.base import (
    Codec,
    Field,
    NotNull,
    Nullable,
    Options,
    Reading,
    T,
    check_storage_options,
)
from treefold_orm._fields.storage import round_to_decimal, scale_to_integer

_ONE_INT = {int}
_ONE_FLOAT = {float}
_ONE_DECIMAL = {decimal.Decimal}


class IntegerField(Field[T]):
    """A 32-bit integer."""

    types: ClassVar[dict[str, str]] = {"sqlite": "INTEGER", "postgres": "integer"}
    internal = "integer"
    low: ClassVar[int] = -(2**31)
    high: ClassVar[int] = 2**31 - 1

    @overload
    def __init__(self: IntegerField[int], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: IntegerField[int | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)

    def coerce(self, value: Any) -> int:
        if value.__class__ is not int and (not isinstance(value, int) or isinstance(value, bool)):
            raise self.build_value_error(f"takes an int, not {type(value).__name__}")
        if not self.low <= value <= self.high:
            raise self.build_value_error(
                f"outside {self.low} to {self.high}", ge=self.low, le=self.high
            )
        # a member of an IntEnum becomes the plain int that rows give back
        return int(value)

    def fits_all(self, values: list[Any]) -> bool:
        if set(map(type, values)) != _ONE_INT:
            return False
        return min(values) >= self.low and max(values) <= self.high

    def parse(self, text: str) -> int:
        # 64 bits have 19 digits at most; of a longer text, int() takes quadratic time. isdigit()
        # alone is true of digits of all scripts, and of `²`.
        if len(text) > 20 or not text.lstrip("-").isascii() or not text.removeprefix("-").isdigit():
            raise self.build_value_error("takes a whole number")
        return self.coerce(int(text))

    def checks(self, dialect: str) -> list[str]:
        if self.low == 0:
            return ["{0} >= 0"]
        if dialect == "sqlite" and self.high < 2**63 - 1:
            return [f"{{0}} BETWEEN {self.low} AND {self.high}"]
        return []


class SmallIntegerField(IntegerField[T]):
    """A 16-bit integer."""

    types: ClassVar[dict[str, str]] = {"sqlite": "INTEGER", "postgres": "smallint"}
    low = -(2**15)
    high = 2**15 - 1

    @overload
    def __init__(self: SmallIntegerField[int], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: SmallIntegerField[int | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)


class BigIntegerField(IntegerField[T]):
    """A 64-bit integer."""

    types: ClassVar[dict[str, str]] = {"sqlite": "INTEGER", "postgres": "bigint"}
    internal = "bigint"
    low = -(2**63)
    high = 2**63 - 1

    @overload
    def __init__(self: BigIntegerField[int], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: BigIntegerField[int | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)


class PositiveSmallIntegerField(SmallIntegerField[T]):
    """A 16-bit integer of at least 0."""

    low = 0

    @overload
    def __init__(self: PositiveSmallIntegerField[int], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(
        self: PositiveSmallIntegerField[int | None], **options: Unpack[Nullable]
    ) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)


class PositiveIntegerField(IntegerField[T]):
    """A 32-bit integer of at least 0."""

    low = 0

    @overload
    def __init__(self: PositiveIntegerField[int], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: PositiveIntegerField[int | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)


class PositiveBigIntegerField(BigIntegerField[T]):
    """A 64-bit integer of at least 0."""

    low = 0

    @overload
    def __init__(self: PositiveBigIntegerField[int], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(
        self: PositiveBigIntegerField[int | None], **options: Unpack[Nullable]
    ) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)


class AutoField(IntegerField[int]):
    """A 32-bit key made by the database."""

    def __init__(self, **options: Unpack[Options]) -> None:
        if "db_default" in options:
            raise ModelError(f"{type(self).__name__} has a default of its own: drop db_default")
        options["primary_key"] = True
        self._init_field(options)

    @property
    def generated(self) -> bool:
        return True

    def checks(self, dialect: str) -> list[str]:
        return []


class BigAutoField(AutoField):
    """A 64-bit key made by the database; the key of a model that declares none."""

    types: ClassVar[dict[str, str]] = {"sqlite": "INTEGER", "postgres": "bigint"}
    internal = "bigint"
    low = -(2**63)
    high = 2**63 - 1


class BooleanField(Field[T]):
    """True or false."""

    types: ClassVar[dict[str, str]] = {"sqlite": "INTEGER", "postgres": "boolean"}
    internal = "boolean"
    on_sqlite = (None, {0: False, 1: True}.__getitem__)  # bool('f') would be true

    @overload
    def __init__(self: BooleanField[bool], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: BooleanField[bool | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)

    def coerce(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.build_value_error(f"takes a bool, not {type(value).__name__}")
        return value

    def fits_all(self, values: list[Any]) -> bool:
        return set(map(type, values)) == {bool}

    def parse(self, text: str) -> bool:
        if text not in {"true", "false", "1", "0"}:
            raise self.build_value_error("takes true or false")
        return text in {"true", "1"}

    def checks(self, dialect: str) -> list[str]:
        return ["{0} IN (0, 1)"] if dialect == "sqlite" else []


class FloatField(Field[T]):
    """A 64-bit floating point number; not a number and the infinities are refused."""

    types: ClassVar[dict[str, str]] = {"sqlite": "REAL", "postgres": "double precision"}
    internal = "float"

    @overload
    def __init__(self: FloatField[float], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: FloatField[float | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)

    def coerce(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.build_value_error(f"takes a float, not {type(value).__name__}")
        try:
            number = float(value)
        # float() of an int such as 10**400
        except OverflowError:
            raise self.build_value_error("too large") from None
        if not math.isfinite(number):
            raise self.build_value_error("must be finite")
        return number

    def fits_all(self, values: list[Any]) -> bool:
        return set(map(type, values)) == _ONE_FLOAT and all(map(math.isfinite, values))

    def parse(self, text: str) -> float:
        try:
            return self.coerce(float(text))
        except ValueError:
            raise self.build_value_error("takes a number") from None


class DecimalField(Field[T]):
    """An exact decimal number of `max_digits` digits, `decimal_places` of them after the point.

    Values with more places are refused, never rounded. SQLite holds at most 18 digits. For a
    column that another tool writes as a floating point number or as text, `storage` is "real" or
    "text": its values are read with `decimal_places`, and computed with exactly.
    """

    internal = "decimal"
    remedy = 'give storage="real" or storage="text" for a column that another tool writes'

    @overload
    def __init__(
        self: DecimalField[decimal.Decimal],
        *,
        max_digits: int,
        decimal_places: int,
        storage: Literal["real", "text"] | None = None,
        **options: Unpack[NotNull],
    ) -> None: ...
    @overload
    def __init__(
        self: DecimalField[decimal.Decimal | None],
        *,
        max_digits: int,
        decimal_places: int,
        storage: Literal["real", "text"] | None = None,
        **options: Unpack[Nullable],
    ) -> None: ...
    def __init__(
        self, *, max_digits: int, decimal_places: int, storage: str | None = None, **options: Any
    ) -> None:
        self._init_field(options)
        if not 0 <= decimal_places <= max_digits or max_digits < 1:
            raise ModelError(
                f"DecimalField(max_digits={max_digits!r}, decimal_places={decimal_places!r}) "
                "has no room"
            )
        self.max_digits = max_digits
        self.decimal_places = decimal_places
        self.unit = decimal.Decimal(1).scaleb(-decimal_places)
        if storage not in (None, "real", "text"):
            raise ModelError(f"storage must be 'real' or 'text', got {storage!r}")
        self.storage = storage or ""
        check_storage_options(f"storage={storage!r}" if storage else "", options)

    def column_type(self, dialect: str) -> str:
        if self.storage:
            self.query_type(dialect)  # has its own limits
            return _KEPT[self.storage, dialect]
        return self.query_type(dialect)

    def query_type(self, dialect: str) -> str:
        if dialect == "postgres":
            return f"numeric({self.max_digits}, {self.decimal_places})"
        if self.max_digits > 18:
            raise UnsupportedFeature(
                f"{self.meta.name}.{self.name}: SQLite keeps at most 18 digits exactly; lower "
                "max_digits"
            )
        return "INTEGER"

    def coerce(self, value: Any) -> decimal.Decimal:
        if isinstance(value, bool) or not isinstance(value, (decimal.Decimal, int, str)):
            raise self.build_value_error(f"takes a Decimal, not {type(value).__name__}")
        try:
            number = decimal.Decimal(value)
        except (decimal.InvalidOperation, ValueError):
            raise self.build_value_error("takes a decimal number") from None
        if not number.is_finite():
            raise self.build_value_error("must be finite")
        # before quantize(), which raises for more digits than its context has, as of 1e5000
        if number and number.adjusted() >= self.max_digits - self.decimal_places:
            whole = self.max_digits - self.decimal_places
            raise self.build_value_error(
                f"more than {whole} digits before the point", whole_digits=whole
            )
        fixed = number.quantize(self.unit, context=_WIDE)
        if fixed != number:
            places = self.decimal_places
            raise self.build_value_error(
                f"more than {places} decimal places", decimal_places=places
            )
        return fixed

    def fits_all(self, values: list[Any]) -> bool:
        # same_quantum() is False for NaN and for the infinities, too
        if set(map(type, values)) != _ONE_DECIMAL or not all(map(self.unit.same_quantum, values)):
            return False
        limit = decimal.Decimal(1).scaleb(self.max_digits - self.decimal_places, _WIDE)
        return max(values) < limit and -limit < min(values)

    def encoder(self, dialect: str) -> Codec | None:
        if dialect != "sqlite":
            return None
        places = self.decimal_places
        return lambda value: int(value.scaleb(places, _WIDE))

    def encode_column(self, values: list[Any], dialect: str) -> list[Any]:
        if dialect != "sqlite" or self.null or self.db_fills:
            return super().encode_column(values, dialect)
        whole = decimal.Decimal(1).scaleb(self.decimal_places, _WIDE)
        return list(map(int, map(partial(_WIDE.multiply, whole), values)))  # two calls in C

    def decoder(self, dialect: str) -> Codec | None:
        if dialect != "sqlite":
            return None
        # one call in C, which takes integers only
        return partial(_WIDE.multiply, decimal.Decimal(1).scaleb(-self.decimal_places))

    def build_read_rule(self, dialect: str) -> Reading:
        if dialect != "sqlite":
            return Reading(None)
        # a REAL or a text in the column is of another tool, and no scaled integer
        return Reading(self.decoder(dialect), raw="{0}.__class__ is int")

    def convert_stored_value(self, raw: Any, dialect: str) -> Any:
        try:
            if dialect == "sqlite":
                return scale_to_integer(raw, self.decimal_places)
            return round_to_decimal(raw, self.decimal_places)
        except ValueError:
            error = self.build_unreadable_error(raw)
        raise error


_KEPT = {
    ("real", "sqlite"): "REAL",
    ("real", "postgres"): "double precision",
    ("text", "sqlite"): "TEXT",
    ("text", "postgres"): "text",
}
# a context of its own: that of the application may round to five digits, or trap nothing
_WIDE = decimal.Context(prec=2000)
