"""The table and its rows: a column for every type, and the edges of each.

`ROWS` holds what was stored, by key; the oracle computes with these values only.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal as D
from typing import Any

from crossing import kinds
from crossing.kinds import Kind, Level, Tint
from treefold_orm import Model, Reverse, fields

UTC = dt.UTC
Row = dict[str, Any]


class Cross(Model):
    """A column of every type, and targets to assign to (`to_` and the same name)."""

    small = fields.SmallIntegerField(null=True)
    num = fields.IntegerField(null=True)
    big = fields.BigIntegerField(null=True)
    real = fields.FloatField(null=True)
    money = fields.DecimalField(max_digits=12, decimal_places=2, null=True)
    fine = fields.DecimalField(max_digits=18, decimal_places=4, null=True)
    text = fields.TextField(null=True)
    flag = fields.BooleanField(null=True)
    day = fields.DateField(null=True)
    moment = fields.DateTimeField(null=True)
    clock = fields.TimeField(null=True)
    span = fields.DurationField(null=True)
    uid = fields.UUIDField(null=True)
    blob = fields.BinaryField(null=True)
    doc = fields.JSONField(null=True)
    tint = fields.EnumField(Tint, null=True)
    level = fields.EnumField(Level, null=True)
    to_small = fields.SmallIntegerField(null=True)
    to_num = fields.IntegerField(null=True)
    to_big = fields.BigIntegerField(null=True)
    to_real = fields.FloatField(null=True)
    to_money = fields.DecimalField(max_digits=12, decimal_places=2, null=True)
    to_fine = fields.DecimalField(max_digits=18, decimal_places=4, null=True)
    to_text = fields.TextField(null=True)
    to_flag = fields.BooleanField(null=True)
    to_day = fields.DateField(null=True)
    to_moment = fields.DateTimeField(null=True)
    to_clock = fields.TimeField(null=True)
    to_span = fields.DurationField(null=True)
    to_uid = fields.UUIDField(null=True)
    to_blob = fields.BinaryField(null=True)
    to_doc = fields.JSONField(null=True)
    to_tint = fields.EnumField(Tint, null=True)
    to_level = fields.EnumField(Level, null=True)
    me = fields.ForeignKey("self", null=True, related_name="mine")
    mine: Reverse[Cross]
    me_id: int | None
    above = fields.ForeignKey("self", null=True, related_name="below")
    above_id: int | None


COLUMNS: dict[str, Kind] = {
    "small": kinds.INT,
    "num": kinds.INT,
    "big": kinds.INT,
    "real": kinds.FLOAT,
    "money": kinds.decimal(2),
    "fine": kinds.decimal(4),
    "text": kinds.TEXT,
    "flag": kinds.BOOL,
    "day": kinds.DATE,
    "moment": kinds.DATETIME,
    "clock": kinds.TIME,
    "span": kinds.DURATION,
    "uid": kinds.UUID,
    "blob": kinds.BINARY,
    "doc": kinds.JSON,
    "tint": kinds.TINT,
    "level": kinds.LEVEL,
}
LIMITS: dict[str, tuple[int, int]] = {
    "small": (-(2**15), 2**15 - 1),
    "num": (-(2**31), 2**31 - 1),
    "big": (-(2**63), 2**63 - 1),
}
DIGITS = {"money": 10, "fine": 14}  # before the point
NAMES = (*COLUMNS,)


def at(*parts: int) -> dt.datetime:
    """A moment in UTC."""
    return dt.datetime(*parts, tzinfo=UTC)


LAST = dt.time(23, 59, 59, 999999)
_TEN_K = dt.timedelta(days=10_000)


def _row(*values: Any) -> Row:
    row = dict(zip(NAMES, values, strict=True))
    document = {
        key: row[key] if key != "money" or row[key] is None else float(row[key])
        for key in ("small", "num", "big", "real", "money", "text", "flag")
        if row[key] is not None
    }
    return {**row, "doc": document if row["num"] is not None else None}


_PLAIN = [
    _row(7, 7, 7, 7.0, D("7.00"), D("7.0000"), "red", True, dt.date(2024, 2, 29),
         at(2024, 2, 29), dt.time(12), dt.timedelta(seconds=7), uuid.UUID(int=7), b"red", None,
         Tint.RED, Level.LOW),
    _row(*(None,) * len(NAMES)),
    _row(0, 0, 0, 0.0, D("0.00"), D("0.0000"), "", False, dt.date(1970, 1, 1),
         at(1970, 1, 1), dt.time(0), dt.timedelta(0), uuid.UUID(int=0), b"", None,
         Tint.EMPTY, Level.NONE),
    _row(-3, -5, -5, -2.5, D("-2.50"), D("-2.4995"), "-2.5", False, dt.date(1969, 12, 31),
         at(1969, 12, 31, 23, 59, 59, 999999), LAST, dt.timedelta(microseconds=-1),
         uuid.UUID(int=2**127), b"\xff", None, Tint.BLUE, Level.BELOW),
    _row(3, 2, 10, 0.1 + 0.2, D("0.30"), D("0.3050"), "0.3", True, dt.date(2026, 5, 17),
         at(2026, 5, 17, 23, 59, 59, 999999), LAST, dt.timedelta(hours=5, microseconds=3),
         uuid.UUID(int=2**128 - 1), b"\x00", None, Tint.RED, Level.NONE),
    _row(4, 4, 2**31, 4.5, D("2.50"), D("4.5000"), "Zürich ß \u200b😀", True, dt.date(2025, 12, 29),
         at(2025, 12, 29, 11, 30, 15, 500000), dt.time(11, 30, 15, 500000),
         dt.timedelta(days=-1), uuid.UUID(int=9), "ß".encode(), None, Tint.BLUE, Level.LOW),
    _row(1, 100_000, 2**53 + 1, 2.0**53, D("0.01"), D("0.0001"), "12", False,
         dt.date(2024, 12, 31), at(2024, 12, 31, 0, 0, 0, 1), dt.time(0, 0, 0, 1),
         dt.timedelta(days=400), uuid.UUID(int=12), b"12", None, Tint.RED, Level.HIGH),
]  # fmt: skip
_EDGES = [
    _row(32767, 2**31 - 1, 2**63 - 1, 1e15, D("9999999999.99"), D("99999999999999.9999"),
         "9999-12-31", True, dt.date(9999, 12, 31), at(9999, 12, 31, 23, 59, 59, 999999), LAST,
         _TEN_K, uuid.UUID(int=1), b"\xff\xfe", None, Tint.RED, Level.HIGH),
    _row(-32768, -(2**31), -(2**63), -1e16, D("-9999999999.99"), D("-99999999999999.9999"),
         "0001-01-01", False, dt.date(1, 1, 1), at(1, 1, 1), dt.time(0),
         -_TEN_K, uuid.UUID(int=2), b"'", None, Tint.BLUE, Level.BELOW),
    _row(5, 6, -1, 1.7976931348623157e308, D("1.10"), D("-0.0050"), "1.50", None,
         dt.date(2000, 1, 1), at(1999, 12, 31, 23), dt.time(6), dt.timedelta(hours=1),
         uuid.UUID(int=3), b"x", None, Tint.EMPTY, Level.NONE),
]  # fmt: skip
ROWS: dict[int, Row] = {
    key: {**row, "id": key} for key, row in enumerate([*_PLAIN, *_EDGES], start=1)
}

CONSTANTS: dict[str, list[Any]] = {
    "small": [4, 0, -3],
    "num": [7, 2**31 - 1],
    "big": [2**53 + 1, -1],
    "real": [2.5, 0.1, -2.5, 1e16],
    "money": [D("2.50"), D("-0.30")],
    "fine": [D("0.3050"), D("7.0000")],
    "text": ["red", "", "ß"],
    "flag": [True, False],
    "day": [dt.date(2024, 2, 29), dt.date(1969, 12, 31)],
    "moment": [at(2024, 2, 29), at(2026, 5, 17, 23, 59, 59, 999999)],
    "clock": [LAST, dt.time(12)],
    "span": [dt.timedelta(seconds=7), dt.timedelta(microseconds=-1)],
    "uid": [uuid.UUID(int=7)],
    "blob": [b"red", b""],
    "doc": [{"num": 7}],
    "tint": [Tint.RED],
    "level": [Level.LOW],
}


def carrier(name: str) -> Any:
    """A field for a bare value whose Python type does not say how it travels."""
    made: dict[str, Any] = {
        "tint": fields.EnumField(Tint),
        "level": fields.EnumField(Level),
        "doc": fields.JSONField(),
    }
    return made.get(name)


def store(alias: str) -> None:
    """Write the rows, with their keys, into an empty table."""
    Cross.objects.using(alias).bulk_create(
        [
            Cross(**{**row, "id": key, "me_id": key, "above_id": key - 1 if key > 1 else None})
            for key, row in ROWS.items()
        ]
    )
