"""The text and the JSON form of types: one text for each type, and back."""

from __future__ import annotations

import json

import pytest
from drawn_facts import DEFINITIONS, TYPES
from hypothesis import given

from treefold_contract import (
    NULL,
    Choice,
    ChoiceValue,
    Definition,
    Limits,
    ListType,
    Reference,
    Scalar,
    TypeNode,
    UnionType,
    read_type,
    type_from_json,
    type_to_json,
    write_type,
)

EXAMPLES = {
    "int >=1 | null": UnionType((Scalar("int", limits=Limits(minimum=1)), NULL)),
    "[User] items 1..5 unique": ListType(Reference("User"), 1, 5, is_unique=True),
    '"a" | "b" | ...': Choice((ChoiceValue('"a"'), ChoiceValue('"b"')), is_open=True),
    '1 (LOW) | 10 (HIGH) | "x"': Choice(
        (ChoiceValue("1", "LOW"), ChoiceValue("10", "HIGH"), ChoiceValue('"x"'))
    ),
    '"a" | ... | User': UnionType((Choice((ChoiceValue('"a"'),), is_open=True), Reference("User"))),
    '"a" | User | ...': UnionType((Choice((ChoiceValue('"a"'),)), Reference("User")), is_open=True),
    "Cat | Dog tag kind": UnionType((Reference("Cat"), Reference("Dog")), tag="kind"),
    "$int": Reference("int"),
    'str email len ..80 match "^a"': Scalar("str", "email", Limits(max_length=80, pattern="^a")),
}


@pytest.mark.parametrize(("text", "node"), EXAMPLES.items())
def test_a_type_has_one_text(text: str, node: TypeNode) -> None:
    assert write_type(node) == text
    assert read_type(text) == node


@given(TYPES)
def test_the_text_of_a_type_is_read_as_that_type(node: TypeNode) -> None:
    text = write_type(node)
    again = read_type(text)
    assert write_type(again) == text
    assert "\n" not in text


@given(DEFINITIONS)
def test_the_json_form_of_a_type_is_read_as_that_type(node: Definition) -> None:
    form = type_to_json(node)
    assert type_from_json(json.loads(json.dumps(form))) == node


def test_the_json_form_leaves_out_defaults() -> None:
    assert type_to_json(ListType(Scalar("str"))) == {
        "node": "ListType",
        "item": {"node": "Scalar", "kind": "str"},
    }


@pytest.mark.parametrize(
    "form", [None, {}, {"node": "Unknown"}, {"node": "Limits"}, {"node": "Scalar", "colour": 1}]
)
def test_a_form_that_is_no_type_is_refused(form: object) -> None:
    with pytest.raises(ValueError, match="must"):
        type_from_json(form)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Type must have a type before '', got ''"),
        ("text", "Type must be of a known kind, got 'text' in 'text'"),
        ("[int", "Type must have ']' before '', got '[int'"),
        ("int )", "Type must end after 'int ', got 'int )'"),
        ("| int", "Type must not begin with '|', got '| int'"),
        ("int >=x", "Limit must be a number, got 'x' in 'int >=x'"),
        ("[" * 60, "Type must be nested at most 50 deep"),
    ],
)
def test_a_text_that_is_no_type_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="must") as raised:
        read_type(text)
    assert str(raised.value).startswith(message)


def test_a_name_that_is_no_word_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Name of a type must be a word, got 'Page\[User\]'"):
        write_type(Reference("Page[User]"))
