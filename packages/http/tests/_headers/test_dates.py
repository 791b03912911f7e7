"""HTTP dates: one form out, three forms in, nothing near them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

import pytest
from hypothesis import given, strategies as st

from treefold_http._headers.dates import format_http_date, parse_http_date

EXAMPLE = 784111777  # 6 November 1994, 08:49:37, the example of the RFC

seconds = st.integers(
    int(datetime(1, 1, 1, tzinfo=UTC).timestamp()),
    int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()),
)


def test_a_time_is_written_as_the_rfc_shows_it() -> None:
    assert format_http_date(EXAMPLE) == "Sun, 06 Nov 1994 08:49:37 GMT"


@given(seconds)
def test_what_is_written_is_read_back(at: int) -> None:
    assert parse_http_date(format_http_date(at)) == at


@given(st.integers(int(datetime(1000, 1, 1, tzinfo=UTC).timestamp()), 10**11))
def test_the_standard_library_agrees(at: int) -> None:
    text = format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True)
    assert format_http_date(at) == text
    assert parse_http_date(text) == int(parsedate_to_datetime(text).timestamp())


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun Nov 06 08:49:37 1994",
    ],
)
def test_each_form_of_the_rfc_is_read(text: str) -> None:
    assert parse_http_date(text, this_year=2026) == EXAMPLE


@pytest.mark.parametrize(
    ("digits", "this_year", "year"),
    [
        ("94", 2026, 1994),
        ("76", 2026, 2076),
        ("77", 2026, 1977),
        ("26", 2026, 2026),
        ("00", 2099, 2000),
    ],
)
def test_a_year_of_two_digits_is_at_most_50_years_ahead(
    digits: str, this_year: int, year: int
) -> None:
    read = parse_http_date(f"Sunday, 01-Jan-{digits} 00:00:00 GMT", this_year=this_year)
    assert read == int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


def test_a_year_of_two_digits_is_read_against_today_by_default() -> None:
    year = time.gmtime().tm_year
    read = parse_http_date(f"Sunday, 01-Jan-{year % 100:02d} 00:00:00 GMT")
    assert read == int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


def test_a_leap_second_is_the_second_after() -> None:
    assert parse_http_date("Sat, 31 Dec 2016 23:59:60 GMT") == parse_http_date(
        "Sun, 01 Jan 2017 00:00:00 GMT"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "784111777",
        "yesterday",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "sun, 06 nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nov ١٩٩٤ 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT\n",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT" * 1000,
    ],
)
def test_anything_else_is_no_date(text: str) -> None:
    assert parse_http_date(text) is None


@given(st.text(max_size=60))
def test_no_text_makes_it_fail(text: str) -> None:
    assert parse_http_date(text) is None or isinstance(parse_http_date(text), int)
