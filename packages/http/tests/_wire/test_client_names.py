"""Names that a client chose are marked where `**` takes them, and plain everywhere else."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from treefold_http import FormData
from treefold_http._json.json import dumps, encode_json_with_stdlib
from treefold_http._wire.client_names import ClientName, ClientObject
from treefold_http._wire.datastructures import QueryParams


def kinds(**given: Any) -> list[type]:
    """The types of the names that arrive."""
    return [type(name) for name in given]


MAPPINGS = [
    ClientObject({"a": 1, "b": 2}),
    QueryParams.parse(b"a=1&b=2&a=3"),
    FormData([("a", "1"), ("b", "2")]),
]


@pytest.mark.parametrize("mapping", MAPPINGS, ids=lambda m: type(m).__name__)
def test_names_are_marked_on_their_way_through_stars(mapping: Any) -> None:
    marked = [ClientName, ClientName]
    assert kinds(**mapping) == marked
    assert kinds(**dict(mapping)) == marked
    assert kinds(**{**mapping}) == marked
    assert kinds(c=1, **mapping) == [str, *marked]


@pytest.mark.parametrize("mapping", MAPPINGS, ids=lambda m: type(m).__name__)
def test_names_are_plain_everywhere_else(mapping: Any) -> None:
    assert [type(name) for name in mapping] == [str, str]
    assert [type(name) for name, _ in mapping.items()] == [str, str]
    chosen = {name: value for name, value in mapping.items() if name in {"a", "b"}}
    assert kinds(**chosen) == [str, str]
    assert set(mapping) == {"a", "b"}
    assert mapping.keys() & {"a", "x"} == {"a"}
    assert mapping.keys() <= {"a", "b"}
    assert list(mapping.keys()) == ["a", "b"]
    assert len(mapping.keys()) == 2


def test_a_marked_object_is_a_dictionary_to_all_who_read_it() -> None:
    value = ClientObject({"a": {"b": 1}, "c": None})
    assert value == {"a": {"b": 1}, "c": None}
    assert repr(value) == "{'a': {'b': 1}, 'c': None}"
    written = b'{"a":{"b":1},"c":null}'
    assert (dumps(value), encode_json_with_stdlib(value)) == (written, written)
    assert dumps(dict(value)) == dumps([ClientName("x"), value])[5:-1] == written
    assert json.dumps(value, separators=(",", ":")).encode() == written
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
    match value:
        case {"a": {"b": found}}:
            assert found == 1
        case _:
            pytest.fail("not matched")
