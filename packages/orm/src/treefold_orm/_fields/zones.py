"""Time zones in queries: how a zone travels to each database, and how SQLite cuts in one.

PostgreSQL knows zones itself; SQLite does not and calls `truncate_in_zone`. No SQL is built here.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from typing import Any, ClassVar

from treefold_orm._base.errors import FieldError
from treefold_orm._fields.base import AnyField, Codec, Field, Reading
from treefold_orm._fields.times import DateTimeField


class ZoneField(Field[Any]):
    """Carries a time zone as text: the name of a region, or a fixed distance from UTC."""

    types: ClassVar[dict[str, str]] = {"sqlite": "TEXT", "postgres": "text"}
    internal = "text"

    def coerce(self, value: Any) -> dt.tzinfo:
        require_zone_name(value)
        return value

    def encoder(self, dialect: str) -> Codec | None:
        return require_zone_name if dialect == "sqlite" else _format_posix_zone


def require_zone_name(zone: Any) -> str:
    """The name of a region, or the seconds east of UTC; `FieldError` for other zones."""
    if isinstance(zone, dt.timezone):
        distance = zone.utcoffset(None)
        # the form of POSIX, in which PostgreSQL is given it, has no fractions
        if distance % dt.timedelta(seconds=1):
            raise FieldError(f"tzinfo={zone!r} is not a whole number of seconds from UTC")
        return f"{distance // dt.timedelta(seconds=1):+d}"
    name = getattr(zone, "key", None)
    if not isinstance(zone, dt.tzinfo) or not isinstance(name, str):
        raise FieldError(
            f"tzinfo takes a zoneinfo.ZoneInfo or a datetime.timezone, not {type(zone).__name__}"
        )
    return name


def _format_posix_zone(zone: Any) -> str:
    name = require_zone_name(zone)
    if name[0] not in "+-":
        return name
    # POSIX counts towards the west
    minutes, seconds = divmod(abs(int(name)), 60)
    sign = "-" if name[0] == "+" else "+"
    return f"<fixed>{sign}{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


class ZonedField(DateTimeField[Any]):
    """A datetime that comes back in a zone of its own."""

    def __init__(self, zone: dt.tzinfo) -> None:
        super().__init__()
        self.zone = zone

    def decoder(self, dialect: str) -> Codec | None:
        zone = self.zone
        if dialect == "sqlite":
            return lambda text: dt.datetime.fromisoformat(text).astimezone(zone)
        return lambda value: self.read_unexpected_value(value).astimezone(zone)

    def build_read_rule(self, dialect: str) -> Reading:
        return Reading(self.decoder(dialect))


ZONE: AnyField = ZoneField()


@functools.lru_cache(maxsize=256)
def make_zoned_field(zone: dt.tzinfo) -> ZonedField:
    """The field of datetimes in a zone: one for each, since plans are kept by it."""
    return ZonedField(zone)


def truncate_in_zone(unit: str, datetime_text: str | None, zone_name: str) -> str | None:
    """Cut a datetime, as SQLite keeps it, down to a unit in a zone."""
    if datetime_text is None:
        return None
    moment = dt.datetime.fromisoformat(datetime_text)
    local = moment.astimezone(parse_zone_name(zone_name)).replace(microsecond=0)
    distance = local.utcoffset()
    if unit in _CLOCK:
        # within a day the clock's distance from UTC stays what it was
        local = local.replace(**_CLOCK[unit])
    else:
        local = _FIRST_DAY[unit](local.replace(hour=0, minute=0, second=0))
        # a midnight that clocks skip counts before the change, one that comes twice after it
        distance = min(local.replace(fold=fold).utcoffset() or dt.timedelta() for fold in (0, 1))
    begin = local.replace(tzinfo=dt.timezone(distance or dt.timedelta())).astimezone(dt.UTC)
    return begin.isoformat(" ", "microseconds")


_CLOCK: dict[str, Any] = {"hour": {"minute": 0, "second": 0}, "minute": {"second": 0}, "second": {}}
# by key, without a default: a unit that is missing here must fail, not come back as the day
_FIRST_DAY: dict[str, Callable[[dt.datetime], dt.datetime]] = {
    "year": lambda day: day.replace(month=1, day=1),
    "quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "month": lambda day: day.replace(day=1),
    "week": lambda day: day - dt.timedelta(days=day.weekday()),
    "day": lambda day: day,
}


@functools.lru_cache(maxsize=256)
def parse_zone_name(name: str) -> dt.tzinfo:
    """The zone that `require_zone_name` has named."""
    if name[0] in "+-":
        return dt.timezone(dt.timedelta(seconds=int(name)))
    import zoneinfo

    return zoneinfo.ZoneInfo(name)
