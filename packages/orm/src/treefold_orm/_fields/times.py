"""Date, Time, DateTime and Duration.

Points in time are aware and kept in UTC. SQLite keeps dates and times as text of fixed width
(sorts right, readable by its date functions) and durations as whole microseconds.
"""

from __future__ import annotations

import datetime as dt
from operator import attrgetter, methodcaller
from typing import Any, ClassVar, Unpack, overload

from treefold_orm._base.errors import ModelError
from treefold_orm._fields.base import (
    MISSING,
    Codec,
    Field,
    NotNull,
    Nullable,
    Reading,
    T,
    check_storage_options,
)
from treefold_orm._fields.storage import add_utc_offset

_MICROSECOND = dt.timedelta(microseconds=1)


def _utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _to_microseconds(value: dt.timedelta) -> int:
    return value // _MICROSECOND


def _from_microseconds(value: int) -> dt.timedelta:
    return dt.timedelta(microseconds=value)


class DateField(Field[T]):
    """A day; text in ISO form is accepted."""

    types: ClassVar[dict[str, str]] = {"sqlite": "TEXT", "postgres": "date"}
    internal = "date"
    on_sqlite = (dt.date.isoformat, dt.date.fromisoformat)

    @overload
    def __init__(self: DateField[dt.date], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: DateField[dt.date | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)

    def coerce(self, value: Any) -> dt.date:
        if isinstance(value, str):
            try:
                return dt.date.fromisoformat(value)
            except ValueError:
                raise self.build_value_error("takes a date as YYYY-MM-DD") from None
        # a datetime is a date to Python, whose time would be lost
        if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
            raise self.build_value_error(f"takes a date, not {type(value).__name__}")
        return value

    def fits_all(self, values: list[Any]) -> bool:
        return set(map(type, values)) == {dt.date}


class TimeField(Field[T]):
    """A time of day without zone; text in ISO form is accepted."""

    types: ClassVar[dict[str, str]] = {"sqlite": "TEXT", "postgres": "time"}
    internal = "time"
    on_sqlite = (methodcaller("isoformat", "microseconds"), dt.time.fromisoformat)

    @overload
    def __init__(self: TimeField[dt.time], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: TimeField[dt.time | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)

    def coerce(self, value: Any) -> dt.time:
        if isinstance(value, str):
            try:
                value = dt.time.fromisoformat(value)
            except ValueError:
                raise self.build_value_error("takes a time as HH:MM:SS") from None
        if not isinstance(value, dt.time):
            raise self.build_value_error(f"takes a time, not {type(value).__name__}")
        if value.tzinfo is not None:
            raise self.build_value_error("takes a time without zone")
        return value


class DateTimeField(Field[T]):
    """A point in time, aware; kept in UTC and read back in UTC.

    `auto_now_add` sets it when the row is created, `auto_now` at every save. For a column that
    another tool writes without a zone, `zone` is None: values are naive in Python, are computed
    with as if they were UTC, and compared with each other only.
    """

    types: ClassVar[dict[str, str]] = {"sqlite": "TEXT", "postgres": "timestamptz"}
    internal = "datetime"
    remedy = "give zone=None for a column without a zone, or convert its values to UTC"

    @overload
    def __init__(
        self: DateTimeField[dt.datetime],
        *,
        auto_now_add: bool = False,
        auto_now: bool = False,
        zone: dt.timezone | None = dt.UTC,
        **options: Unpack[NotNull],
    ) -> None: ...
    @overload
    def __init__(
        self: DateTimeField[dt.datetime | None],
        *,
        auto_now_add: bool = False,
        auto_now: bool = False,
        zone: dt.timezone | None = dt.UTC,
        **options: Unpack[Nullable],
    ) -> None: ...
    def __init__(
        self,
        *,
        auto_now_add: bool = False,
        auto_now: bool = False,
        zone: dt.timezone | None = dt.UTC,
        **options: Any,
    ) -> None:
        if zone is not None and zone is not dt.UTC:
            raise ModelError(f"zone must be datetime.UTC or None, got {zone!r}")
        if auto_now_add or auto_now:
            options.setdefault("default", _utc_now if zone else _naive_utc_now)
        self._init_field(options)
        self.storage = "" if zone else "naive"
        check_storage_options("" if zone else "zone=None", options)
        self.auto_now = auto_now
        self.auto_now_add = auto_now_add

    def column_type(self, dialect: str) -> str:
        return "timestamp" if self.storage and dialect == "postgres" else self.types[dialect]

    def query_type(self, dialect: str) -> str:
        return self.types[dialect]

    def coerce(self, value: Any) -> dt.datetime:
        if isinstance(value, str):
            try:
                value = dt.datetime.fromisoformat(value)
            except ValueError:
                raise self.build_value_error("takes a date and time in ISO form") from None
        if not isinstance(value, dt.datetime):
            raise self.build_value_error(f"takes a datetime, not {type(value).__name__}")
        if self.storage:
            if value.tzinfo is not None:
                raise self.build_value_error(
                    "takes a datetime without a zone, as its column holds them"
                )
            return value
        if value.tzinfo is None:
            raise self.build_value_error(
                "takes an aware datetime: give it a zone, such as datetime.UTC"
            )
        try:
            # the first of January of the year 1 in +01:00 lies in the year 0 in UTC
            return value.astimezone(dt.UTC)
        except OverflowError:
            raise self.build_value_error("outside the years 1 to 9999 in UTC") from None

    def fits_all(self, values: list[Any]) -> bool:
        if set(map(type, values)) != {dt.datetime}:
            return False
        return all(zone is dt.UTC for zone in map(_zone_of, values))

    def encoder(self, dialect: str) -> Codec | None:
        if self.storage:
            return _format_naive_as_utc if dialect == "sqlite" else _attach_utc_zone
        return _datetime_text if dialect == "sqlite" else None

    def decoder(self, dialect: str) -> Codec | None:
        if self.storage:
            return _parse_naive_datetime if dialect == "sqlite" else _strip_zone
        return dt.datetime.fromisoformat if dialect == "sqlite" else self.read_unexpected_value

    def convert_stored_value(self, raw: Any, dialect: str) -> Any:
        try:
            return add_utc_offset(raw) if dialect == "sqlite" else _attach_utc_zone(raw)
        except (ValueError, AttributeError):
            error = self.build_unreadable_error(raw)
        # outside of the handler: the error caught there quotes the value, and would be its context
        raise error

    def build_read_rule(self, dialect: str) -> Reading:
        if self.storage:
            return Reading(self.decoder(dialect))
        if dialect == "sqlite":
            # fromisoformat() gives the one UTC object for +00:00, and no other distance does
            return Reading(dt.datetime.fromisoformat, value="{0}.tzinfo is utc")
        return Reading(None, raw="{0}.tzinfo is not None")

    def read_unexpected_value(self, raw: Any) -> Any:
        if isinstance(raw, dt.datetime):
            if raw.tzinfo is not None and raw.utcoffset() == _ZERO:
                return raw
            if raw in (dt.datetime.max, dt.datetime.min):  # the driver's infinity
                return raw.replace(tzinfo=dt.UTC)
        raise self.build_unreadable_error(raw)

    def describe_raw_value(self, raw: Any) -> str:
        if isinstance(raw, (str, dt.datetime)):
            return "a date and time that is not in UTC"
        return super().describe_raw_value(raw)


class DurationField(Field[T]):
    """A span of time."""

    types: ClassVar[dict[str, str]] = {"sqlite": "INTEGER", "postgres": "interval"}
    internal = "duration"
    on_sqlite = (_to_microseconds, _from_microseconds)

    @overload
    def __init__(self: DurationField[dt.timedelta], **options: Unpack[NotNull]) -> None: ...
    @overload
    def __init__(self: DurationField[dt.timedelta | None], **options: Unpack[Nullable]) -> None: ...
    def __init__(self, **options: Any) -> None:
        self._init_field(options)

    def coerce(self, value: Any) -> dt.timedelta:
        if not isinstance(value, dt.timedelta):
            raise self.build_value_error(f"takes a timedelta, not {type(value).__name__}")
        if not -_LONGEST < value < _LONGEST:
            raise self.build_value_error("longer than 100,000 years")
        return value

    def parse(self, text: str) -> dt.timedelta:
        try:
            return self.coerce(dt.timedelta(seconds=float(text)))
        except (ValueError, OverflowError):
            raise self.build_value_error("takes a number of seconds") from None

    def build_read_rule(self, dialect: str) -> Reading:
        if dialect != "sqlite" or self.meta is MISSING:  # an average is no whole number
            return Reading(self.decoder(dialect))
        return Reading(_from_microseconds, raw="{0}.__class__ is int")


_ZERO = dt.timedelta()
_zone_of = attrgetter("tzinfo")
# 64 bits of microseconds are 292,000 years: sums of two spans still fit
_LONGEST = dt.timedelta(days=36_525_000)


_datetime_text: Codec = methodcaller("isoformat", " ", "microseconds")


def _naive_utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC).replace(tzinfo=None)


def _attach_utc_zone(value: dt.datetime) -> dt.datetime:
    return value.replace(tzinfo=dt.UTC)


def _strip_zone(value: dt.datetime) -> dt.datetime:
    return value.replace(tzinfo=None)


def _format_naive_as_utc(value: dt.datetime) -> str:
    return f"{value.isoformat(' ', 'microseconds')}+00:00"


def _parse_naive_datetime(value: str) -> dt.datetime:
    return dt.datetime.fromisoformat(value).replace(tzinfo=None)
