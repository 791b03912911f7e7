# ruff: noqa: RUF001 - letters that look like others are the point
"""Functions of text: the same characters on both databases, whatever is asked of them."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import uuid
from typing import Any

import pytest
from orm_expressions import Case, differences
from orm_models import Color, Everything

from treefold_orm import (
    MD5,
    SHA256,
    Concat,
    DataError,
    Expression,
    F,
    FieldError,
    Left,
    Length,
    Lower,
    LPad,
    LTrim,
    Position,
    Repeat,
    Replace,
    Reverse,
    Right,
    RPad,
    RTrim,
    Substr,
    Trim,
    Upper,
    Value,
)

UID = uuid.UUID("0A1B2C3D-0000-4000-8000-00000000ffff")
ROW = {
    "char": "AñB c ",
    "text": "",
    "slug": "abcdef",
    "integer": -7,
    "small": 2,
    "big": 2**62,
    "real": 1.5,
    "money": decimal.Decimal("-0.070"),
    "flag": True,
    "uid": UID,
    "day": dt.date(826, 1, 2),
    "time": dt.time(23, 5, 0, 120000),
    "moment": dt.datetime(2026, 5, 14, tzinfo=dt.UTC),
    "span": dt.timedelta(hours=1),
    "data": {"s": "Tree", "n": 5},
    "blob": b"x",
    "color": Color.RED,
}

CASES: list[Case] = [
    (Lower("char"), "añb c "),
    (Lower(Value("ÀΣİẞ")), "àσiß"),
    (Lower("data__s"), "tree"),
    (Lower("data__n"), None),
    (Lower("url"), None),
    (Upper("char"), "AÑB C "),
    (Upper(Value("straße ﬁ ŉ ᾳ ǆ")), "STRAßE ﬁ ŉ ᾼ Ǆ"),
    (Upper("color"), "RED"),
    (Length("char"), 6),
    (Length("text"), 0),
    (Length(Value("🌲é")), 2),
    (Length("data__s"), 4),
    (Length("url"), None),
    (Trim(Value("\t a  ")), "\t a"),
    (LTrim(Value("  a ")), "a "),
    (RTrim("char"), "AñB c"),
    (Reverse("char"), " c BñA"),
    (Reverse(Value("")), ""),
    (Reverse("url"), None),
    (MD5("slug"), "e80b5017098950fc58aad83c8c14978e"),
    (MD5("char"), hashlib.md5("AñB c ".encode(), usedforsecurity=False).hexdigest()),
    (SHA256("char"), hashlib.sha256("AñB c ".encode()).hexdigest()),
    (SHA256("url"), None),
    (Position("char", "B"), 3),
    (Position("char", "b"), 0),
    (Position("char", ""), 1),
    (Position("text", ""), 1),
    (Position("text", "x"), 0),
    (Position("char", F("url")), None),
    (Position("url", "x"), None),
    (Replace("slug", "cd", "X"), "abXef"),
    (Replace("slug", "cd"), "abef"),
    (Replace("slug", "", "X"), "abcdef"),
    (Replace("text", "", "X"), ""),
    (Replace("slug", F("url"), "x"), None),
    (Replace("slug", "a", F("url")), None),
    (Substr("char", 2, 2), "ñB"),
    (Substr("slug", 3), "cdef"),
    (Substr("slug", 9), ""),
    (Substr("slug", 5, 100), "ef"),
    (Substr("slug", 2, 0), ""),
    (Substr("slug", F("small")), "bcdef"),
    (Substr("slug", F("small") + 1, F("small")), "cd"),
    (Substr("slug", F("small") - 2, 3), "ab"),
    (Substr("slug", F("small") - 4, 4), "a"),
    (Substr("slug", F("integer"), 3), ""),
    (Substr("slug", F("integer")), "abcdef"),
    (Substr("slug", Value(-1), 3), "a"),
    (Substr("slug", F("positive"), 3), None),
    (Substr("slug", 1, F("positive")), None),
    (Substr("url", 1, 1), None),
    (Left("char", 2), "Añ"),
    (Left("slug", 0), ""),
    (Left("slug", -2), "abcd"),
    (Left("slug", F("integer")), ""),
    (Left("slug", 99), "abcdef"),
    (Left("slug", F("positive")), None),
    (Left("url", 1), None),
    (Right("char", 3), " c "),
    (Right("slug", 0), ""),
    (Right("slug", -2), "cdef"),
    (Right("slug", -9), ""),
    (Right("slug", 99), "abcdef"),
    (Right("slug", F("small")), "ef"),
    (Right("url", 1), None),
    (LPad("slug", 8), "  abcdef"),
    (LPad("slug", 9, "xy"), "xyxabcdef"),
    (LPad("slug", 3, "x"), "abc"),
    (LPad("slug", 9, ""), "abcdef"),
    (LPad("slug", F("integer")), ""),
    (LPad("text", 2, "é"), "éé"),
    (LPad("slug", 9, F("url")), None),
    (RPad("slug", 9, "xy"), "abcdefxyx"),
    (RPad("slug", 3, "x"), "abc"),
    (RPad("slug", 9, ""), "abcdef"),
    (RPad("slug", F("integer")), ""),
    (RPad("url", 3), None),
    (Repeat("slug", 2), "abcdefabcdef"),
    (Repeat("slug", 0), ""),
    (Repeat("slug", F("integer")), ""),
    (Repeat("url", 2), None),
    (Repeat("slug", F("positive")), None),
    (Concat("slug", Value("-"), "char"), "abcdef-AñB c "),
    (Concat("slug", "url", "text"), "abcdef"),
    (Concat("url"), ""),
    (Concat("integer", Value(" "), "big"), "-7 4611686018427387904"),
    (Concat("money"), "-0.070"),
    (Concat(F("money") * 0), "0.000"),
    (Concat("real", Value("/"), F("real") * 2), "1.5/3"),
    (Concat(Value(1e15), Value(" "), Value(-1.25e-7)), "1e+15 -1.25e-07"),
    (Concat(Value(0.1 + 0.2), Value(" "), Value(123456.0)), "0.30000000000000004 123456"),
    (Concat("day", Value(" "), "time"), "0826-01-02 23:05:00.12"),
    (Concat("uid"), str(UID)),
    (Concat("color", Value("!")), "red!"),
    (Concat("data__s", "data__n"), "Tree"),
    (Concat(Lower("char"), Length("char")), "añb c 6"),
]


async def test_functions_of_text(db: Any, half: Any) -> None:
    assert await differences(half, ROW, CASES) == []


REFUSED = [
    (lambda: Lower("integer"), r"Lower must be given text, got Everything.integer \(int\)"),
    (lambda: Upper("money"), r"convert it with Cast\(..., fields.TextField\(\)\)"),
    (lambda: Length("blob"), "Length must be given text"),
    (lambda: Trim("flag"), "Trim must be given text"),
    (lambda: Reverse("day"), "Reverse must be given text"),
    (lambda: MD5("uid"), "MD5 must be given text"),
    (lambda: Position("integer", "7"), "Position must be given text"),
    (lambda: Position("slug", 7), "Position: part must be text, got 7"),
    (lambda: Replace("slug", F("integer"), "x"), "Replace must be given text"),
    (lambda: Replace("slug", "a", 1), "Replace: new must be text, got 1"),
    (lambda: Substr("slug", 0), r"start must be a whole number of at least 1, got 0; .* Right"),
    (lambda: Substr("slug", -2, 2), "start must be a whole number of at least 1, got -2"),
    (lambda: Substr("slug", 1, -1), "length must be a whole number of at least 0, got -1"),
    (lambda: Substr("slug", "small"), "start must be a whole number of at least 1, got 'small'"),
    (lambda: Substr("slug", F("real")), "Substr must be given a whole number here"),
    (lambda: Substr("integer", 1), "Substr must be given text"),
    (lambda: Left("slug", True), "length must be a whole number"),
    (lambda: Left("integer", 1), "Left must be given text"),
    (lambda: LPad("slug", -1), "length must be a whole number of at least 0, got -1"),
    (lambda: LPad("slug", 2**40), "must be a whole number of at least 0"),
    (lambda: RPad("slug", 3, 0), "RPad: fill must be text, got 0"),
    (lambda: Repeat("slug", 1.5), "number must be a whole number of at least 0, got 1.5"),
    (lambda: Concat("slug", "flag"), r"got Everything.flag \(bool\); convert it with Cast"),
    (lambda: Concat("slug", "moment"), "Concat must be given text, a number, a date"),
    (lambda: Concat("span"), "Concat must be given text"),
    (lambda: Concat("blob"), "Concat must be given text"),
    (lambda: Concat(), "Concat must be given something to join"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_text_is_refused_when_the_query_is_made(build: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        Everything.objects.annotate(x=build())


FAILING: list[tuple[Expression, str]] = [
    (Substr("slug", 1, F("integer")), "A length must not be negative"),
    (Repeat("slug", F("big")), "A (number|text) must"),
    (Repeat("slug", 2**31 - 1), "A text must not be longer than a database keeps"),
    (LPad("slug", 2**31 - 1), "A text must not be longer than a database keeps"),
    (RPad("slug", 2**31 - 1), "A text must not be longer than a database keeps"),
]


@pytest.mark.parametrize(("expression", "message"), FAILING, ids=range(len(FAILING)))
async def test_a_text_that_cannot_be_made_is_a_data_error(
    db: Any, half: Any, expression: Expression, message: str
) -> None:
    await half(Everything.objects).create(**ROW)
    with pytest.raises(DataError, match=message):
        await half.rows(Everything.objects.annotate(x=expression))
