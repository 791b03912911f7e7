"""Why a value cannot be computed with: one wording for both databases.

PostgreSQL tells it by a code, SQLite by the functions of the connection. No reason names a value.
"""

from __future__ import annotations

RANGE = "A number must fit the range of its type"
ZERO = "A number cannot be divided by zero"
POWER = "A power or root must have a real result"
LOGARITHM = "A logarithm must be taken of a number above zero"
FORM = "A text must have the form of the type that it is cast to"
DATES = "A date or time must exist and lie between the years 1 and 9999"
LENGTH = "A length must not be negative"
TOO_LONG = "A text must not be longer than its column"
LONG = "A text must not be longer than a database keeps"

BY_SQLSTATE = {
    "22001": TOO_LONG,
    "22003": RANGE,
    "22007": FORM,
    "22008": DATES,
    "22011": LENGTH,
    "22012": ZERO,
    "2201E": LOGARITHM,
    "2201F": POWER,
    "22P02": FORM,
    "54000": LONG,
}
