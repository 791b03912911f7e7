"""The ORM keeps secret what the log masks: both have the same words, in lists of their own."""

import re
from pathlib import Path

import pytest

from treefold.orm import Model, fields
from treefold_logging import _words, mask
from treefold_orm._base import names


def test_both_lists_are_the_same() -> None:
    assert set(names.CONTAINED) == set(_words.CONTAINED)
    assert names.WHOLE == _words.WHOLE


@pytest.mark.parametrize("word", sorted({*_words.CONTAINED, *_words.WHOLE}))
def test_a_name_is_sensitive_to_both(word: str) -> None:
    assert names.is_sensitive_name(word)
    assert mask({word: "x"}) == {word: "***"}


def test_a_field_is_sensitive_by_its_name() -> None:
    held = fields.CharField(max_length=10)
    type("Holder", (Model,), {"__module__": "holder", "client_assertion": held})
    assert held.sensitive


@pytest.mark.parametrize("name", ["author", "shipping", "classname", "passage", "panel", "tokyo"])
def test_ordinary_names_are_neither(name: str) -> None:
    assert not names.is_sensitive_name(name)
    assert mask({name: "x"}) == {name: "x"}


def test_the_page_on_logging_lists_all_of_them(repository: Path) -> None:
    page = (repository / "docs/guides/logging.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| `password`")]
    contained, whole = (re.findall(r"`(\w+)`", cell) for cell in row.strip("| ").split(" | "))
    assert (set(contained), set(whole)) == (set(_words.CONTAINED), _words.WHOLE)
