"""Parts of dates and times on SQLite, and dates cut down to a unit.

Dates and times are text of fixed width in UTC, so parts are cut out of the text: `strftime` would
round the fraction of a second, and count the last microsecond of a day to the next. `substr` counts
signs from 1:

| Kind | Text | First sign of each part |
|---|---|---|
| date | `2026-11-28` | year 1, month 6, day 9 |
| time | `09:35:12.000001` | hour 1, minute 4, second 7 |
| datetime | `2026-11-28 09:35:12.000001+00:00` | those of a date, hour 12, minute 15, second 18 |

A template takes the value in the place of `{}`.
"""

from __future__ import annotations

from typing import LiteralString

from treefold_orm._base.errors import FieldError
from treefold_orm._dialects.dialect import UNIT_WORDS
from treefold_orm._dialects.sql import SQL

_DATE_PARTS: dict[str, LiteralString] = {
    "year": "CAST(substr({}, 1, 4) AS INTEGER)",
    # the Thursday of its week says which year a day belongs to (ISO 8601)
    "iso_year": "CAST(substr(date(substr({}, 1, 10), '-3 days', 'weekday 4'), 1, 4) AS INTEGER)",
    "quarter": "((CAST(substr({}, 6, 2) AS INTEGER) + 2) / 3)",
    "month": "CAST(substr({}, 6, 2) AS INTEGER)",
    "week": "((CAST(strftime('%j', date(substr({}, 1, 10), '-3 days', 'weekday 4')) AS INTEGER) "
    "- 1) / 7 + 1)",
    "day": "CAST(substr({}, 9, 2) AS INTEGER)",
    # 1 is Sunday here, and Monday in ISO 8601; `%w` counts Sunday as 0
    "week_day": "(CAST(strftime('%w', substr({}, 1, 10)) AS INTEGER) + 1)",
    "iso_week_day": "((CAST(strftime('%w', substr({}, 1, 10)) AS INTEGER) + 6) % 7 + 1)",
    "date": "substr({}, 1, 10)",
}
_TIME_PARTS: dict[str, LiteralString] = {
    "hour": "CAST(substr({}, 1, 2) AS INTEGER)",
    "minute": "CAST(substr({}, 4, 2) AS INTEGER)",
    "second": "CAST(substr({}, 7, 2) AS INTEGER)",
    "time": "{}",
}
_TIME_PARTS_OF_DATETIME: dict[str, LiteralString] = {
    "hour": "CAST(substr({}, 12, 2) AS INTEGER)",
    "minute": "CAST(substr({}, 15, 2) AS INTEGER)",
    "second": "CAST(substr({}, 18, 2) AS INTEGER)",
    "time": "substr({}, 12, 15)",
}
_PARTS_BY_KIND: dict[str, dict[str, LiteralString]] = {
    "date": _DATE_PARTS,
    "time": _TIME_PARTS,
    "datetime": {**_DATE_PARTS, **_TIME_PARTS_OF_DATETIME},
}
_CUT_DATE: dict[str, LiteralString] = {
    "year": "(substr({}, 1, 4) || '-01-01')",
    "quarter": "(substr({0}, 1, 5) || printf('%02d-01', (CAST(substr({0}, 6, 2) AS INTEGER) - 1) "
    "/ 3 * 3 + 1))",
    "month": "(substr({}, 1, 7) || '-01')",
    # 'weekday 1' goes on to a Monday and stays on one: six days earlier it meets that of the week
    "week": "date(substr({}, 1, 10), '-6 days', 'weekday 1')",
    "day": "substr({}, 1, 10)",
}
_CUT_DATETIME: dict[str, LiteralString] = {
    "hour": "(substr({}, 1, 13) || ':00:00.000000+00:00')",
    "minute": "(substr({}, 1, 16) || ':00.000000+00:00')",
    "second": "(substr({}, 1, 19) || '.000000+00:00')",
}


def extract_date_part(part: str, value: SQL, kind: str) -> SQL:
    """A part of a date, a time or a datetime."""
    template = _PARTS_BY_KIND.get(kind, {}).get(part)
    if template is None:
        raise FieldError(f"A {kind} has no part {part!r}")
    return SQL(template, value)


def truncate_to_unit(unit: str, value: SQL, kind: str, zone: SQL | None = None) -> SQL:
    """A date or datetime cut down to a unit, in a zone where one is given."""
    if zone is not None:
        return SQL("treefold_trunc('{}', {}, {})", UNIT_WORDS[unit], value, zone)
    if kind == "datetime" and unit in _CUT_DATETIME:
        return SQL(_CUT_DATETIME[unit], value)
    if unit not in _CUT_DATE:
        raise FieldError(f"A {kind} cannot be cut to {unit!r}")
    cut = SQL(_CUT_DATE[unit], value)
    return SQL("({} || ' 00:00:00.000000+00:00')", cut) if kind == "datetime" else cut
