"""Where a value leaves its type."""

from __future__ import annotations

from typing import Any

import pytest

from treefold_contract import (
    Definition,
    JsonValue,
    Member,
    Mismatch,
    Record,
    Reference,
    Scalar,
    UnionType,
    find_mismatch,
    read_type,
)

ITEM = Record((Member("price", Scalar("float")), Member("note", Scalar("str"), is_optional=True)))
DEFINITIONS: dict[str, Definition] = {
    "Item": ITEM,
    "Page": Record((Member("items", read_type("[Item]")), Member("next", read_type("str | null")))),
    "Cat": Record((Member("kind", read_type('"cat"')), Member("lives", read_type("int")))),
    "Dog": Record((Member("kind", read_type('"dog"')), Member("name", read_type("str")))),
    "Tree": Record((Member("left", read_type("Tree | Leaf | null")),)),
    "Leaf": Record(
        (Member("left", read_type("Tree | Leaf | null")), Member("size", Scalar("int")))
    ),
    "Self": Reference("Self"),
}


def find(declared: str, value: JsonValue, **options: Any) -> Mismatch | None:
    return find_mismatch(read_type(declared), value, definitions=DEFINITIONS, **options)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("int", 7),
        ("float", 7),
        ("str card", "anything"),
        ("str | null", None),
        ("Item", {"price": 1.5, "unknown": 1}),
        ("[Item] items 1..", [{"price": 1}]),
        ("(int, str)", [1, "a"]),
        ("{int: str}", {"7": "a"}),
        ("Cat | Dog tag kind", {"kind": "dog", "name": "Rex"}),
        ("Cat | ...", 7),
        ('"a" | ...', "b"),
        ("Missing", {"any": 1}),
        ("Self", 7),
        ("any", [None]),
        ('foreign "Money"', 7),
        ('str match "(?<é"', "a"),
    ],
)
def test_a_value_of_its_type_has_no_mismatch(declared: str, value: JsonValue) -> None:
    assert find(declared, value) is None


@pytest.mark.parametrize(
    ("declared", "value", "place", "inner", "got"),
    [
        ("int", "7", "", "int", "7"),
        ("int", True, "", "int", True),
        ("int >=1", 0, "", "int >=1", 0),
        ("Page", {"items": [{"price": 1}, {"price": "2"}]}, ".items[1].price", "float", "2"),
        ("Page", [], "", "Page", []),
        ("[Item]", [{"price": 1, "note": 7}], "[0].note", "str", 7),
        ("[int] items ..1", [1, 2], "", "[int] items ..1", [1, 2]),
        ("[int] unique", [1, 1], "", "[int] unique", [1, 1]),
        ("(int, str)", [1], "", "(int, str)", [1]),
        ("(int, str)", [1, 2], "[1]", "str", 2),
        ("{int: str}", {"a": "b"}, ".a", "int", "a"),
        ("{str: int}", {"a b": "c"}, '["a b"]', "int", "c"),
        ("Item | null", {"price": "2"}, ".price", "float", "2"),
        ("Item | int", "x", "", "Item | int", "x"),
        ("Cat | Dog tag kind", {"kind": "dog", "name": 7}, ".name", "str", 7),
        ('"a" | "b"', "c", "", '"a" | "b"', "c"),
    ],
)
def test_a_mismatch_names_place_type_and_value(
    declared: str, value: JsonValue, place: str, inner: str, got: JsonValue
) -> None:
    found = find(declared, value)
    assert found is not None
    assert (found.place, found.declared, found.value) == (place, read_type(inner), got)


@pytest.mark.parametrize(
    ("declared", "value", "place"),
    [
        ("Page", {"items": []}, ".next"),
        ("Cat | Dog tag kind", {"name": "Rex"}, ".kind"),
    ],
)
def test_a_member_that_must_be_there_is_missing(
    declared: str, value: JsonValue, place: str
) -> None:
    found = find(declared, value)
    assert found is not None
    assert (found.place, found.is_missing) == (place, True)


@pytest.mark.parametrize(
    ("declared", "value", "place"),
    [
        ("int", "7", None),
        ("int", "x", ""),
        ("int", 7, ""),
        ("int", ["7"], None),
        ("int", ["7", "8"], ""),
        ("bool", "true", None),
        ("[int]", ["1", "b"], "[1]"),
        ("[int]", ["1", "2"], None),
        ('"a" | "b"', "b", None),
        ("int | null", "x", ""),
        ("Item", "{}", ""),
    ],
)
def test_text_is_compared_as_text(declared: str, value: JsonValue, place: str | None) -> None:
    found = find(declared, value, alphabet="text")
    assert (found and found.place) == place


def test_a_closed_record_refuses_a_name_in_a_request_only() -> None:
    definitions: dict[str, Definition] = {"Say": Record((), is_closed=True)}
    found = find_mismatch(Reference("Say"), {"x": 1}, side="request", definitions=definitions)
    assert found is not None
    assert found.place == ".x"
    assert find_mismatch(Reference("Say"), {"x": 1}, definitions=definitions) is None


def test_options_that_contain_each_other_are_tried_once() -> None:
    value: JsonValue = "wrong"
    for _ in range(60):  # 2 to the power of 60 combinations
        value = {"left": value, "size": 1}
    found = find_mismatch(
        UnionType((Reference("Tree"), Reference("Leaf"))), value, definitions=DEFINITIONS
    )
    assert found is not None
