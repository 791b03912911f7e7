"""`docs/guides/fields.md` names every field class, its columns and every option."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from treefold.orm import fields
from treefold_orm._models import definition

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/fields.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMON = set(inspect.signature(fields.Field).parameters)
CLASSES: dict[str, Any] = {
    name: value
    for name, value in vars(fields).items()
    if isinstance(value, type) and name not in {"Field", "CompositePrimaryKey"}
}


def rows(section: str) -> dict[str, list[str]]:
    """The rows of the tables below a heading, by each name in their first cell."""
    text = TEXT.partition(f"## {section}\n")[2].partition("\n## ")[0]
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            cells = line.strip("| ").split(" | ")
            found |= {name: cells for name in re.findall(r"`(\w+)`", cells[0])}
    return found


def own_options(kind: Any) -> set[str]:
    return set(inspect.signature(kind).parameters) - COMMON - {"null"}


def test_every_field_class_has_a_row() -> None:
    assert set(rows("Classes")) == {*CLASSES, "CompositePrimaryKey"}


@pytest.mark.parametrize("name", CLASSES)
def test_the_row_of_a_class_has_its_columns_and_options(name: str) -> None:
    cells = rows("Classes")[name]
    types = getattr(CLASSES[name], "types", {})
    shown = [re.findall(r"`(.+?)`", cell)[:1] for cell in cells[2:4]]
    assert not types or shown == [[types["sqlite"]], [types["postgres"]]]
    assert set(re.findall(r"`(\w+)`", "".join(cells[4:]))) == own_options(CLASSES[name])


def test_every_option_has_a_row() -> None:
    assert set(rows("Options of every column field")) == COMMON
    own = {option for kind in CLASSES.values() for option in own_options(kind)}
    assert set(rows("Options of single classes")) == own
    assert set(rows("Options of Meta")) == vars(definition)["_META_OPTIONS"]
