"""HTTP dates both ways (RFC 9110, 5.6.7): seconds since the epoch to text and back.

Names of days and months are English in every locale, which is why `time.strptime` and `strftime`
are not used here. Parsing takes exactly the three forms of the RFC; all have a fixed length, so no
text costs more than a few comparisons.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG_DAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_TIME = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"

_FORMS = tuple(
    re.compile(form).fullmatch
    for form in (
        f"{_DAY}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT",
        f"{_LONG_DAY}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT",
        f"{_DAY} {_MONTH} (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})",
    )
)


def format_http_date(seconds: int) -> str:
    """Return the IMF-fixdate of a time, such as `Sun, 06 Nov 1994 08:49:37 GMT`."""
    at = time.gmtime(seconds)
    return (
        f"{_DAYS[at.tm_wday]}, {at.tm_mday:02d} {_MONTHS[at.tm_mon - 1]} {at.tm_year:04d}"
        f" {at.tm_hour:02d}:{at.tm_min:02d}:{at.tm_sec:02d} GMT"
    )


def parse_http_date(text: str, *, this_year: int | None = None) -> int | None:
    """Return the seconds since the epoch, or None for text that is not an HTTP date.

    Args:
        text: IMF-fixdate, or the obsolete forms of RFC 850 and asctime.
        this_year: the year that resolves a two-digit year; None for the current year.
    """
    for form in _FORMS:
        if (found := form(text)) is not None:
            year = int(found["year"])
            if len(found["year"]) == 2:
                year = _expand_two_digit_year(year, this_year or time.gmtime().tm_year)
            return _to_timestamp(year, found)
    return None


def _expand_two_digit_year(year: int, this_year: int) -> int:
    """Read two digits as the year that is at most 50 years ahead (RFC 9110, 5.6.7)."""
    full = this_year - this_year % 100 + year
    return full - 100 if full > this_year + 50 else full


def _to_timestamp(year: int, found: re.Match[str]) -> int | None:
    second = int(found["second"])
    # datetime has no second 60, which is valid in a leap second (RFC 5322, 3.3)
    leap = second == 60
    clock = (int(found["hour"]), int(found["minute"]), second - leap)
    try:
        month = _MONTHS.index(found["month"]) + 1
        at = datetime(year, month, int(found["day"]), *clock, tzinfo=UTC)
    except ValueError:  # such as 31 February or 25 o'clock
        return None
    return int(at.timestamp()) + leap
