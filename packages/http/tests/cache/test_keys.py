"""The token of a value in the key of a kept answer: two values never share one (S-52)."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, strategies as st

from treefold_http.cache._keys import compute_value_key_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ZONES = st.sampled_from([None, dt.UTC, dt.timezone(dt.timedelta(hours=1), "UTC")])
PLAIN: st.SearchStrategy[Any] = st.one_of(
    st.uuids(),
    st.dates(),
    st.datetimes(timezones=ZONES),
    st.times(timezones=ZONES),
    st.timedeltas(),
    st.decimals(),
    st.binary(),
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
VALUES = st.one_of(PLAIN, JSON, st.lists(JSON | PLAIN, max_size=4).map(tuple))


@st.composite
def look_alikes(draw: st.DrawFn) -> tuple[Any, Any]:
    """A value, and one that a careless token would take for it."""
    value: Any = draw(VALUES)
    kind = cast("type[Any]", type(value))
    token = compute_value_key_text(value) or ""
    others: list[Any] = [value, str(value), repr(value), token, [value], (value,), {"tuple": value}]
    if kind in (list, tuple):
        others += [list(value), tuple(value), ["tuple", *value], ("tuple", *value)]
        others += [[list(value)], [tuple(value)]]
    if kind in (bool, int):
        others += [int(value), float(min(value, 2**53)), bool(value), Decimal(value)]
    if kind is dict:
        others += [list(value), list(value.items()), dict(reversed(value.items()))]
    if token[:1] == "[":
        others.append(json.loads(token))
    return value, draw(st.sampled_from(others))


def are_same(one: Any, other: Any) -> bool:
    kind = cast("type[Any]", type(one))
    if kind is not type(other):
        return False
    if kind in (list, tuple):
        return len(one) == len(other) and all(map(are_same, one, other))
    if kind is dict:
        return are_same(list(one.items()), list(other.items()))
    return repr(one) == repr(other)


@given(look_alikes() | st.tuples(VALUES, VALUES))
@example((("a",), ["tuple", "a"]))
@example(((), ["tuple"]))
def test_s52_two_values_with_one_token_are_the_same(pair: tuple[Any, Any]) -> None:
    one, other = pair
    token = compute_value_key_text(one)
    if token is not None and token == compute_value_key_text(other):
        assert are_same(one, other)


@given(VALUES)
def test_a_value_has_the_same_token_each_time(value: Any) -> None:
    assert compute_value_key_text(value) == compute_value_key_text(value)


@pytest.mark.parametrize(
    "value",
    [
        UUID(int=1),
        dt.date(2030, 1, 1),
        dt.datetime(2030, 1, 1),
        dt.datetime(2030, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2030, 1, 1, tzinfo=ZoneInfo("UTC")),
        dt.time(1, tzinfo=dt.UTC),
        dt.timedelta(1),
        Decimal("1.10"),
        b"x",
        ("a", [1, {"b": None}]),
        {"a": [1, 1.5, True]},
    ],
)
def test_values_that_text_stands_for_have_a_token(value: Any) -> None:
    assert compute_value_key_text(value) is not None


class Price(Decimal):
    currency = "EUR"


class Place(UUID):
    pass


class Moment(dt.datetime):
    pass


class Text(bytes):
    def __repr__(self) -> str:
        return "text"


class Zone(dt.tzinfo):
    def __init__(self, hours: int) -> None:
        self.hours = hours

    def utcoffset(self, dt: dt.datetime | None) -> Any:
        return None

    def __repr__(self) -> str:
        return "zone"


@pytest.mark.parametrize(
    "value",
    [
        Price(1),
        Place(int=1),
        Moment(2030, 1, 1),
        Text(b"x"),
        dt.datetime(2030, 1, 1, tzinfo=Zone(1)),
        dt.time(1, tzinfo=Zone(1)),
        (1, (2,)),
        [(1,)],
        (UUID(int=1),),
        {1: 2},
        [float("nan")],
        object(),
    ],
)
def test_s52_values_with_more_than_their_text_shows_have_no_token(value: Any) -> None:
    assert compute_value_key_text(value) is None
