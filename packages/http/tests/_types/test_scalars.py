"""Text to the annotated type; what is wrong is a ValueError with words for the client."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import time
import uuid
from typing import Any, Literal, Optional, Union

import pytest
from http_ids import stable_repr
from hypothesis import given, strategies as st

from treefold_http._types.read import parse_annotation
from treefold_http._types.scalars import Converter, build_scalar_converter


class Colour(enum.Enum):
    RED = "red"
    TWO = 2


class Name(enum.StrEnum):
    ADA = "ada"


def of(annotation: Any) -> Converter:
    found = build_scalar_converter(parse_annotation(annotation))
    assert found is not None
    return found


ID = "12345678-1234-5678-1234-567812345678"


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (str, "", ""),
        (str, " a\x00", " a\x00"),
        (int, "5", 5),
        (int, "-5", -5),
        (int, "+5", 5),
        (int, "007", 7),
        (int, "9" * 4300, int("9" * 4300)),
        (float, "1.5", 1.5),
        (float, "1.", 1.0),
        (float, ".5", 0.5),
        (float, "-1e-3", -0.001),
        (float, "1e-999", 0.0),
        (bool, "true", True),
        (bool, "TRUE", True),
        (bool, "1", True),
        (bool, "on", True),
        (bool, "yes", True),
        (bool, "false", False),
        (bool, "0", False),
        (bool, "Off", False),
        (bool, "no", False),
        (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
        (decimal.Decimal, "1e3", decimal.Decimal("1E+3")),
        (uuid.UUID, ID, uuid.UUID(ID)),
        (uuid.UUID, ID.replace("-", ""), uuid.UUID(ID)),
        (uuid.UUID, "ABCDEF12" + ID[8:], uuid.UUID("abcdef12" + ID[8:])),
        (dt.datetime, "2030-01-02T03:04:05", dt.datetime(2030, 1, 2, 3, 4, 5)),
        (dt.datetime, "2030-01-02T03:04:05Z", dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
        (dt.date, "2030-01-02", dt.date(2030, 1, 2)),
        (dt.time, "03:04", dt.time(3, 4)),
        (Colour, "red", Colour.RED),
        (Colour, "2", Colour.TWO),
        (Name, "ada", Name.ADA),
        (Literal["a", 2], "a", "a"),
        (Literal["a", 2], "2", 2),
        (Literal[True], "true", True),
        (Literal[False, "a"], "0", False),
        (int | None, "5", 5),
        (Optional[int], "5", 5),  # noqa: UP045 - the old spelling is still written
        (Union[None, Colour], "red", Colour.RED),  # noqa: UP007 - the old spelling is still written
        (Literal["a"] | None, "a", "a"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_text_becomes_the_annotated_type(annotation: Any, text: str, value: object) -> None:
    found = of(annotation)(text)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("annotation", "words", "texts"),
    [
        (
            int,
            "should be an integer",
            ["", " 5", "5 ", "5\n", "1_000", "1.0", "0x5", "--5", "+", "٣", "²", "a", "9" * 4301],
        ),
        (
            float,
            "should be a finite number",
            [
                "",
                "nan",
                "NaN",
                "inf",
                "-Infinity",
                "1e999",
                "1_0.0",
                ".",
                "1e",
                "1,5",
                " 1",
                "1\n",
                "٣.٣",
            ],
        ),
        (
            decimal.Decimal,
            "should be a finite number",
            [
                "",
                "NaN",
                "sNaN",
                "Infinity",
                "1_0",
                " 1",
                "٣",
                "1e1000000000000000000",
                "1e-99999999999999999999",
            ],
        ),
        (bool, "should be true or false", ["", "2", "t", "y", " true", "true\n", "None"]),
        (
            uuid.UUID,
            "should be a UUID",
            [
                "",
                "a",
                ID[:-1],
                ID + "0",
                "{" + ID + "}",
                "urn:uuid:" + ID,
                "+" + ID.replace("-", "")[1:],
                "1234_678" + ID[8:],
                " " + ID[1:],
                "-" * 36 + ID,
                "\u0661" * 32,
            ],
        ),
        (
            dt.datetime,
            "should be a date and time in ISO 8601",
            ["", "today", "2030-13-01", "1893456000"],
        ),
        (
            dt.date,
            "should be a date in ISO 8601",
            ["", "2030-02-30", "02/01/2030", "2030-01-02T00:00"],
        ),
        (dt.time, "should be a time in ISO 8601", ["", "25:00", "noon"]),
        (Colour, "should be one of red, 2", ["", "RED", "RED ", "Colour.RED", "3"]),
        (Literal["a", 2], "should be one of a, 2", ["", "A", "b", "2.0"]),
    ],
)
def test_what_does_not_fit_is_refused_in_words(
    annotation: Any, words: str, texts: list[str]
) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=f"^{words}$"):
            of(annotation)(text)


@pytest.mark.parametrize("annotation", [int, float, decimal.Decimal, uuid.UUID, dt.datetime, bool])
@pytest.mark.parametrize(
    "text", ["1" * 8000 + "x", "1." + "1" * 8000 + "x", "-" * 8000, "1" * 8000 + "e"]
)
def test_a_value_as_long_as_a_target_is_refused_quickly(annotation: Any, text: str) -> None:
    started = time.thread_time()
    with pytest.raises(ValueError, match=r"^should be"):
        of(annotation)(text)

    assert time.thread_time() - started < 0.2


@given(st.text())
def test_a_converter_gives_a_value_or_a_value_error(text: str) -> None:
    for annotation in (
        int,
        float,
        bool,
        decimal.Decimal,
        uuid.UUID,
        dt.datetime,
        dt.date,
        dt.time,
        Colour,
    ):
        try:
            value = of(annotation)(text)
        except ValueError:
            continue
        assert isinstance(value, annotation)


@given(st.integers())
def test_integers_read_back(number: int) -> None:
    assert of(int)(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_read_back(number: float) -> None:
    value = of(float)(repr(number))

    assert value == number
    assert math.copysign(1, value) == math.copysign(1, number)


@given(st.uuids(), st.datetimes(), st.decimals(allow_nan=False, allow_infinity=False))
def test_other_scalars_read_back(
    identity: uuid.UUID, moment: dt.datetime, number: decimal.Decimal
) -> None:
    assert of(uuid.UUID)(str(identity)) == identity
    assert of(dt.datetime)(moment.isoformat()) == moment
    assert of(decimal.Decimal)(str(number)) == number


@pytest.mark.parametrize(
    "annotation",
    [
        dict,
        list,
        list[int],
        bytes,
        object,
        Any,
        None,
        int | dict,
        dict[str, int],
        type,
        tuple[int],
        "int",
    ],
    ids=stable_repr,
)
def test_what_is_no_scalar_has_no_converter(annotation: Any) -> None:
    assert build_scalar_converter(parse_annotation(annotation)) is None
