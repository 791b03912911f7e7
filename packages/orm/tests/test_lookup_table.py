"""The tables that `lookups` and `json_lookups` open with: each row is what happens."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import pytest

from treefold_orm import Model, fields
from treefold_orm._expressions import json_lookups, lookups


class Writer(Model):
    _space = "lookups"
    name = fields.CharField(max_length=20)


class Label(Model):
    _space = "lookups"
    word = fields.CharField(max_length=20)


class Post(Model):
    _space = "lookups"
    title = fields.CharField(max_length=20)
    author = fields.ForeignKey(Writer, related_name="posts")
    tags = fields.ManyToManyField(Label, related_name="posts")
    published = fields.DateTimeField()
    payload = fields.JSONField()


def read_table(module: ModuleType) -> list[list[str]]:
    text = ast.get_docstring(ast.parse(Path(str(module.__file__)).read_bytes())) or ""
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize("row", read_table(lookups), ids=lambda row: row[0])
def test_a_keyword_is_read_into_the_parts_of_the_table(row: list[str]) -> None:
    keyword, *parts = row
    found = lookups.parse_lookup(Post._meta, keyword)
    hops = " ".join(hop.name for hop in found.hops)
    keys = " ".join(found.keys or ())
    assert [hops, found.column.attname, " ".join(found.transforms), keys, found.op] == parts


@pytest.mark.parametrize("row", read_table(json_lookups), ids=" ".join)
def test_a_value_asks_for_the_test_of_the_table(row: list[str]) -> None:
    keyword, value, test = row
    found, _ = lookups.parse_lookup(Post._meta, keyword).prepare_value(ast.literal_eval(value))
    assert found.op == f"json:{test}"


def test_the_tables_have_rows() -> None:
    assert [len(read_table(module)) for module in (lookups, json_lookups)] == [8, 11]
