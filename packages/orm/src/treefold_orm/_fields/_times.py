"""Date, Time, DateTime and Duration.

Points in time are aware and kept in UTC. SQLite keeps dates and times as text of fixed width
(sorts right, readable by its date functions) and durations as whole microseconds.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar, Literal, Unpack, overload

from treefold_orm._fields._base import Codec, Field, Options, T


def _utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class DateField(Field[T]):
    """A day; text in ISO form is accepted."""

    types: ClassVar[dict[str, str]] = {"sqlite": "TEXT", "postgres": "date"}
    internal = "date"

    @overload
    def __init__(
        self: DateField[dt.date], *, null: Literal[False] = False, **options: Unpack[Options]
    ) -> None: ...
    @overload
    def __init__(
        self: DateField[dt.date | None], *, null: Literal[True], **options: Unpack[Options]
    ) -> None: ...
    def __init__(self, *, null: bool = False, **options: Unpack[Options]) -> None:
        super().__init__(null=null, **options)

    def coerce(self, value: Any) -> dt.date:
        if isinstance(value, str):
            try:
                return dt.date.fromisoformat(value)
            except ValueError:
                raise self.wrong("takes a date as YYYY-MM-DD") from None
        if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
            raise self.wrong(f"takes a date, not {type(value).__name__}")
        return value

    def encoder(self, dialect: str) -> Codec | None:
        return dt.date.isoformat if dialect == "sqlite" else None

    def decoder(self, dialect: str) -> Codec | None:
        return dt.date.fromisoformat if dialect == "sqlite" else None


class TimeField(Field[T]):
    """A time of day without zone; text in ISO form is accepted."""

    types: ClassVar[dict[str, str]] = {"sqlite": "TEXT", "postgres": "time"}
    internal = "time"

    @overload
    def __init__(
        self: TimeField[dt.time], *, null: Literal[False] = False, **options: Unpack[Options]
    ) -> None: ...
    @overload
    def __init__(
        self: TimeField[dt.time | None], *, null: Literal[True], **options: Unpack[Options]
    ) -> None: ...
    def __init__(self, *, null: bool = False, **options: Unpack[Options]) -> None:
        super().__init__(null=null, **options)

    def coerce(self, value: Any) -> dt.time:
        if isinstance(value, str):
            try:
                value = dt.time.fromisoformat(value)
            except ValueError:
                raise self.wrong("takes a time as HH:MM:SS") from None
        if not isinstance(value, dt.time):
            raise self.wrong(f"takes a time, not {type(value).__name__}")
        if value.tzinfo is not None:
            raise self.wrong("takes a time without zone")
        return value

    def encoder(self, dialect: str) -> Codec | None:
        return _time_text if dialect == "sqlite" else None

    def decoder(self, dialect: str) -> Codec | None:
        return dt.time.fromisoformat if dialect == "sqlite" else None


class DateTimeField(Field[T]):
    """A point in time, aware; kept in UTC and read back in UTC.

    `auto_now_add` sets it when the row is created, `auto_now` at every save.
    """

    types: ClassVar[dict[str, str]] = {"sqlite": "TEXT", "postgres": "timestamptz"}
    internal = "datetime"

    @overload
    def __init__(
        self: DateTimeField[dt.datetime],
        *,
        auto_now_add: bool = False,
        auto_now: bool = False,
        null: Literal[False] = False,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DateTimeField[dt.datetime | None],
        *,
        auto_now_add: bool = False,
        auto_now: bool = False,
        null: Literal[True],
        **options: Unpack[Options],
    ) -> None: ...
    def __init__(
        self,
        *,
        auto_now_add: bool = False,
        auto_now: bool = False,
        null: bool = False,
        **options: Unpack[Options],
    ) -> None:
        if auto_now_add or auto_now:
            options.setdefault("default", _utc_now)
        super().__init__(null=null, **options)
        self.auto_now = auto_now

    def coerce(self, value: Any) -> dt.datetime:
        if isinstance(value, str):
            try:
                value = dt.datetime.fromisoformat(value)
            except ValueError:
                raise self.wrong("takes a date and time in ISO form") from None
        if not isinstance(value, dt.datetime):
            raise self.wrong(f"takes a datetime, not {type(value).__name__}")
        if value.tzinfo is None:
            raise self.wrong("takes an aware datetime: give it a zone, such as datetime.UTC")
        try:
            return value.astimezone(dt.UTC)
        except OverflowError:
            raise self.wrong("outside the years 1 to 9999 in UTC") from None

    def encoder(self, dialect: str) -> Codec | None:
        return _datetime_text if dialect == "sqlite" else None

    def decoder(self, dialect: str) -> Codec | None:
        return dt.datetime.fromisoformat if dialect == "sqlite" else None


class DurationField(Field[T]):
    """A span of time."""

    types: ClassVar[dict[str, str]] = {"sqlite": "INTEGER", "postgres": "interval"}
    internal = "duration"

    @overload
    def __init__(
        self: DurationField[dt.timedelta],
        *,
        null: Literal[False] = False,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __init__(
        self: DurationField[dt.timedelta | None], *, null: Literal[True], **options: Unpack[Options]
    ) -> None: ...
    def __init__(self, *, null: bool = False, **options: Unpack[Options]) -> None:
        super().__init__(null=null, **options)

    def coerce(self, value: Any) -> dt.timedelta:
        if not isinstance(value, dt.timedelta):
            raise self.wrong(f"takes a timedelta, not {type(value).__name__}")
        if not -_LONGEST < value < _LONGEST:
            raise self.wrong("longer than 100,000 years")
        return value

    def parse(self, text: str) -> dt.timedelta:
        try:
            return self.coerce(dt.timedelta(seconds=float(text)))
        except (ValueError, OverflowError):
            raise self.wrong("takes a number of seconds") from None

    def encoder(self, dialect: str) -> Codec | None:
        return _microseconds if dialect == "sqlite" else None

    def decoder(self, dialect: str) -> Codec | None:
        return _from_microseconds if dialect == "sqlite" else None


_MICROSECOND = dt.timedelta(microseconds=1)
_LONGEST = dt.timedelta(days=36_525_000)


def _time_text(value: dt.time) -> str:
    return value.isoformat("microseconds")


def _datetime_text(value: dt.datetime) -> str:
    return value.isoformat(" ", "microseconds")


def _microseconds(value: dt.timedelta) -> int:
    return value // _MICROSECOND


def _from_microseconds(value: int) -> dt.timedelta:
    return dt.timedelta(microseconds=value)
