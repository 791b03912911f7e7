"""Numbers and choices that arrive as text."""

import pytest
from hypothesis import given, strategies as st

from treefold_cli._console.errors import CommandError
from treefold_cli._console.options import parse_choice_option, parse_number_option


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("8000", 8000), ("65535", 65535)])
def test_a_number_within_bounds_is_read(text: str, number: int):
    assert parse_number_option(text, "--port", low=0, high=65535) == number


@pytest.mark.parametrize("text", ["", "x", "-1", "65536", "8_000", " 1", "1.5", "٣", "1" * 5000])
def test_anything_else_is_wrong_use(text: str):
    with pytest.raises(CommandError) as refused:
        parse_number_option(text, "--port", low=0, high=65535)
    assert str(refused.value) == (
        f"Invalid value {text!r} for --port; give a number from 0 to 65535"
    )
    assert refused.value.code == 2


@given(st.integers(0, 65535))
def test_every_port_can_be_written(port: int):
    assert parse_number_option(str(port), "--port", low=0, high=65535) == port


def test_a_known_word_is_read():
    assert parse_choice_option("json", "--format", choices=["text", "json"]) == "json"


@pytest.mark.parametrize("text", ["", "JSON", "xml"])
def test_an_unknown_word_is_wrong_use(text: str):
    with pytest.raises(CommandError) as refused:
        parse_choice_option(text, "--format", choices=["text", "json"])
    assert str(refused.value) == f"Invalid value {text!r} for --format; use one of text, json"
    assert refused.value.code == 2
