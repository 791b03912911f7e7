"""Stored values where a type changes: each keeps its meaning, or the change stops before it."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from typing import Any

import pytest
from plan_cases import one
from plan_engines import Bench

from treefold_migrations import PlanError, RunError
from treefold_migrations._plan.between import PlannerHints
from treefold_orm import fields

D = decimal.Decimal
UTC = dt.UTC


class Old(enum.Enum):
    A = "a"
    B = "b"


class New(enum.Enum):
    A = "a"


class Braces(enum.Enum):
    A = "{0}"
    B = "{1} {} %s"


def money(digits: int, places: int, **options: Any) -> Any:
    return fields.DecimalField(max_digits=digits, decimal_places=places, null=True, **options)


def text(limit: int | None = None) -> Any:
    return fields.TextField(max_length=limit, null=True)


integer: Any = fields.BigIntegerField(null=True)
real: Any = fields.FloatField(null=True)
flag: Any = fields.BooleanField(null=True)
day: Any = fields.DateField(null=True)
moment: Any = fields.DateTimeField(null=True)
UUID_TEXT = "c0ffee00-1111-4222-8333-444455556666"
MOMENT = {"sqlite": "'2024-02-29 00:00:00.000000+00:00'", "postgres": "'2024-02-29 00:00:00+00'"}
NOON = {"sqlite": "'2024-02-29 12:00:00.000000+00:00'", "postgres": "'2024-02-29 12:00:00+00'"}

# before, after, stored values that fit (or a pair by engine), values after by engine, values that
# do not fit; None always stays None
TABLE: dict[str, tuple[Any, Any, list[Any], dict[str, list[Any]], list[Any]]] = {
    "more_places": (
        money(6, 2),
        money(10, 4),
        [{"sqlite": "150", "postgres": "1.50"}],
        {"sqlite": [15000], "postgres": [D("1.5000")]},
        [],
    ),
    "fewer_places": (
        money(10, 4),
        money(6, 2),
        [{"sqlite": "15000", "postgres": "1.50"}],
        {"sqlite": [150], "postgres": [D("1.50")]},
        [{"sqlite": "15001", "postgres": "1.5001"}, {"sqlite": "100000000", "postgres": "10000"}],
    ),
    "fewer_digits": (
        money(10, 2),
        money(4, 2),
        [{"sqlite": "-9999", "postgres": "-99.99"}],
        {"sqlite": [-9999], "postgres": [D("-99.99")]},
        [{"sqlite": "10000", "postgres": "100"}],
    ),
    "decimal_from_real": (
        money(6, 2, storage="real"),
        money(6, 2),
        ["1.25", "0.1", "-7"],
        {"sqlite": [125, 10, -700], "postgres": [D("1.25"), D("0.10"), D("-7.00")]},
        ["1.255", "123456"],
    ),
    "decimal_from_text": (
        money(6, 2, storage="text"),
        money(6, 2),
        ["'1.25'", "'-3'", "'0.500'"],
        {"sqlite": [125, -300, 50], "postgres": [D("1.25"), D("-3.00"), D("0.50")]},
        ["'x'", "'1.255'", "'123456'", "''", "'1.2.3'"],
    ),
    "decimal_to_real": (
        money(6, 2),
        money(6, 2, storage="real"),
        [{"sqlite": "125", "postgres": "1.25"}],
        {"sqlite": [1.25], "postgres": [1.25]},
        [],
    ),
    "decimal_to_text": (
        money(6, 2),
        text(),
        [{"sqlite": "150", "postgres": "1.50"}],
        {"sqlite": ["1.50"], "postgres": ["1.50"]},
        [],
    ),
    "decimal_to_short_text": (
        money(6, 2),
        text(4),
        [{"sqlite": "150", "postgres": "1.50"}],
        {"sqlite": ["1.50"], "postgres": ["1.50"]},
        [{"sqlite": "1250", "postgres": "12.50"}],
    ),
    "integer_to_decimal": (
        integer,
        money(4, 2),
        ["5", "-99"],
        {"sqlite": [500, -9900], "postgres": [D("5.00"), D("-99.00")]},
        ["100"],
    ),
    "decimal_to_integer": (
        money(6, 2),
        fields.SmallIntegerField(null=True),
        [{"sqlite": "500", "postgres": "5"}],
        {"sqlite": [5], "postgres": [5]},
        [{"sqlite": "550", "postgres": "5.5"}],
    ),
    "decimal_to_float": (
        money(18, 2),
        real,
        [{"sqlite": "150", "postgres": "1.5"}],
        {"sqlite": [1.5], "postgres": [1.5]},
        [{"sqlite": "123456789012345678", "postgres": "1234567890123456.78"}],
    ),
    "float_to_decimal": (
        real,
        money(5, 2),
        ["1.5", "0.1", "-2.25"],
        {"sqlite": [150, 10, -225], "postgres": [D("1.50"), D("0.10"), D("-2.25")]},
        ["1.255", "1000", "1e300"],
    ),
    "float_to_integer": (
        real,
        fields.IntegerField(null=True),
        ["3.0", "-4"],
        {"sqlite": [3, -4], "postgres": [3, -4]},
        ["1.5", "3e9", "1e300"],
    ),
    "integer_to_float": (
        integer,
        real,
        ["3", "9007199254740992"],
        {"sqlite": [3.0, 9007199254740992.0], "postgres": [3.0, 9007199254740992.0]},
        ["9007199254740993"],
    ),
    "narrower_integer": (
        integer,
        fields.SmallIntegerField(null=True),
        ["32767", "-32768"],
        {"sqlite": [32767, -32768], "postgres": [32767, -32768]},
        ["32768"],
    ),
    "positive": (
        fields.IntegerField(null=True),
        fields.PositiveIntegerField(null=True),
        ["0"],
        {"sqlite": [0], "postgres": [0]},
        ["-1"],
    ),
    "integer_to_flag": (
        integer,
        flag,
        ["0", "1"],
        {"sqlite": [0, 1], "postgres": [False, True]},
        ["2"],
    ),
    "flag_to_integer": (
        flag,
        fields.SmallIntegerField(null=True),
        ["TRUE", "FALSE"],
        {"sqlite": [1, 0], "postgres": [1, 0]},
        [],
    ),
    "flag_to_text": (
        flag,
        text(5),
        ["TRUE", "FALSE"],
        {"sqlite": ["true", "false"], "postgres": ["true", "false"]},
        [],
    ),
    "text_to_flag": (
        text(),
        flag,
        ["'true'", "'false'"],
        {"sqlite": [1, 0], "postgres": [True, False]},
        ["'yes'", "''"],
    ),
    "shorter_text": (
        text(),
        text(3),
        ["'abc'", "'äöü'"],
        {"sqlite": ["abc", "äöü"], "postgres": ["abc", "äöü"]},
        ["'abcd'", "'abc '"],
    ),
    "text_to_integer": (
        text(),
        fields.IntegerField(null=True),
        ["'0'", "'-12'"],
        {"sqlite": [0, -12], "postgres": [0, -12]},
        ["'007'", "'x'", "''", "'1.0'", "'99999999999'", "'99999999999999999999'", "' 1'"],
    ),
    "integer_to_text": (
        integer,
        text(3),
        ["5", "-12"],
        {"sqlite": ["5", "-12"], "postgres": ["5", "-12"]},
        ["1234"],
    ),
    "text_to_decimal": (
        text(),
        money(5, 2),
        ["'1.50'", "'-0.5'", "'7'"],
        {"sqlite": [150, -50, 700], "postgres": [D("1.50"), D("-0.50"), D("7.00")]},
        ["'1.255'", "'1000'", "'1e2'", "'.'", "'-'", "'NaN'"],
    ),
    "text_to_uuid": (
        text(),
        fields.UUIDField(null=True),
        [f"'{UUID_TEXT.upper()}'"],
        {"sqlite": [UUID_TEXT], "postgres": [uuid.UUID(UUID_TEXT)]},
        [f"'{UUID_TEXT[:-1]}'", f"'{UUID_TEXT}0'", "'x'"],
    ),
    "uuid_to_text": (
        fields.UUIDField(null=True),
        text(36),
        [f"'{UUID_TEXT}'"],
        {"sqlite": [UUID_TEXT], "postgres": [UUID_TEXT]},
        [],
    ),
    "text_to_date": (
        text(),
        day,
        ["'2024-02-29'"],
        {"sqlite": ["2024-02-29"], "postgres": [dt.date(2024, 2, 29)]},
        ["'2023-02-29'", "'2024-2-9'", "'today'", "'0000-01-01'"],
    ),
    "date_to_text": (
        day,
        text(),
        ["'2024-02-29'"],
        {"sqlite": ["2024-02-29"], "postgres": ["2024-02-29"]},
        [],
    ),
    "date_to_moment": (
        day,
        moment,
        ["'2024-02-29'"],
        {
            "sqlite": ["2024-02-29 00:00:00.000000+00:00"],
            "postgres": [dt.datetime(2024, 2, 29, tzinfo=UTC)],
        },
        [],
    ),
    "moment_to_date": (
        moment,
        day,
        [MOMENT],
        {"sqlite": ["2024-02-29"], "postgres": [dt.date(2024, 2, 29)]},
        [NOON],
    ),
    "moment_to_text": (
        moment,
        text(),
        [NOON],
        {
            "sqlite": ["2024-02-29 12:00:00.000000+00:00"],
            "postgres": ["2024-02-29 12:00:00.000000+00:00"],
        },
        [],
    ),
    "moment_without_zone": (
        fields.DateTimeField(zone=None, null=True),
        moment,
        ["'2024-02-29 12:00:00'"],
        {
            "sqlite": ["2024-02-29 12:00:00.000000+00:00"],
            "postgres": [dt.datetime(2024, 2, 29, 12, tzinfo=UTC)],
        },
        [],
    ),
    "text_to_json": (
        text(),
        fields.JSONField(null=True),
        ['\'{"b": 1, "a": [2]}\'', "'null'"],
        {"sqlite": ['{"a":[2],"b":1}', "null"], "postgres": ['{"a": [2], "b": 1}', "null"]},
        ["'{'", "'x'", "''"],
    ),
    "json_to_text": (
        fields.JSONField(null=True),
        text(),
        ["'[1,2]'"],
        {"sqlite": ["[1,2]"], "postgres": ["[1, 2]"]},
        [],
    ),
    "member_removed": (
        fields.EnumField(Old, null=True),
        fields.EnumField(New, null=True),
        ["'a'"],
        {"sqlite": ["a"], "postgres": ["a"]},
        ["'b'"],
    ),
    "text_to_enum": (
        text(),
        fields.EnumField(New, null=True),
        ["'a'"],
        {"sqlite": ["a"], "postgres": ["a"]},
        ["'b'"],
    ),
    "text_to_enum_with_braces": (
        text(),
        fields.EnumField(Braces, null=True),
        ["'{0}'", "'{1} {} %s'"],
        {"sqlite": ["{0}", "{1} {} %s"], "postgres": ["{0}", "{1} {} %s"]},
        ["'b'"],
    ),
}


def stored(bench: Bench, given: Any) -> str:
    literal: Any = given
    return literal[bench.engine] if isinstance(given, dict) else literal


@pytest.mark.parametrize("name", TABLE)
def test_values_that_fit_keep_their_meaning(bench: Bench, name: str) -> None:
    before, after, fit, expected, _ = TABLE[name]
    rows = [stored(bench, value) for value in fit] + ["NULL"]
    case = one(before, after, rows, [*expected[bench.engine], None])
    with bench.place():
        case.fill(bench)
        case.apply(bench)
        assert [v for (v,) in bench.rows("item", ["v"], "id")] == [*expected[bench.engine], None]


MISFITS = [
    pytest.param(name, place, id=f"{name}-{place}")
    for name, row in TABLE.items()
    for place in range(len(row[4]))
]


@pytest.mark.parametrize(("name", "place"), MISFITS)
def test_a_value_that_does_not_fit_stops_the_change(bench: Bench, name: str, place: int) -> None:
    before, after, fit, _, wrong = TABLE[name]
    bad = stored(bench, wrong[place])
    case = one(before, after, [stored(bench, fit[0]), bad, bad, "NULL"], [])
    with bench.place():
        case.fill(bench)
        catalog, rows = bench.catalog(), bench.rows("item", ["id", "v"], "id")
        with pytest.raises(RunError, match=r"item: 2 rows .*for example id=[23]\)"):
            case.apply(bench)
        assert bench.catalog() == catalog
        assert bench.rows("item", ["id", "v"], "id") == rows


def test_no_conversion_is_guessed(bench: Bench) -> None:
    case = one(fields.DurationField(), fields.TextField(), [], [])
    with pytest.raises(PlanError, match=r"item\.v cannot change from DurationField to TextField"):
        case.changes(bench.dialect)


def test_an_expression_takes_the_place_of_a_conversion(bench: Bench) -> None:
    using = PlannerHints(using={("item", "v"): 'length("v")'})
    case = one(fields.TextField(), fields.IntegerField(), ["'abc'"], [3], answers=using)
    with bench.place():
        case.fill(bench)
        case.apply(bench)
        assert bench.rows("item", ["v"], "id") == [(3,)]
