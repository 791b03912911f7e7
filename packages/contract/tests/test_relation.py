"""The relation of two types, as JSON and as text, and the values that show it."""

from __future__ import annotations

import pytest

from treefold_contract import (
    NULL,
    AnyType,
    Comparison,
    Definitions,
    ForeignType,
    ListType,
    Member,
    Record,
    Reference,
    Scalar,
    UnionType,
    Witness,
    compare_types,
    read_type,
)

PAIRS = [
    # old, new, relation as JSON, relation as text
    ("int", "int", "equal", "equal"),
    ("int", "float", "wider", "wider"),
    ("int", "str", "incomparable", "wider"),
    ("bool", "str", "incomparable", "wider"),
    ("bool", "int", "incomparable", "incomparable"),
    ("float", "str decimal", "incomparable", "wider"),
    ("str uuid", "str", "wider", "wider"),
    ("str date", "str datetime", "incomparable", "wider"),
    ("str datetime-aware", "str datetime", "wider", "wider"),
    ("str datetime-naive", "str datetime-aware", "incomparable", "incomparable"),
    ("str ipv4", "str ip", "wider", "wider"),
    ("str card", "str isbn", "unknown", "unknown"),
    ("str card", "str", "wider", "wider"),
    ("int >=1", "int >0", "equal", "equal"),
    ("float >=1", "float >1", "narrower", "narrower"),
    ("int step 4", "int step 2", "wider", "wider"),
    ("int >=0 <=1", "0 | 1", "equal", "narrower"),
    ("str len 1..5", "str len 2..6", "incomparable", "incomparable"),
    ('str match "^a"', 'str match "^b"', "incomparable", "incomparable"),
    ('str match "^[0-9]{4}$"', 'str match "^\\\\d{4}$"', "unknown", "unknown"),
    ('"a" | "b"', '"a"', "narrower", "narrower"),
    ('"a"', '"a" | ...', "wider", "wider"),
    ('"a" | ...', "str", "equal", "equal"),
    ("1", '"1"', "incomparable", "equal"),
    ("true | false", "bool", "equal", "wider"),
    ("int | str", "str | int", "equal", "equal"),
    ("int | null", "int", "narrower", "equal"),
    ("int", "int | str", "wider", "wider"),
    ("int | str", "int | bool", "incomparable", "narrower"),
    ("[int]", "[int] items ..3", "narrower", "narrower"),
    ("[int] items 1..", "[int]", "wider", "wider"),
    ("[int]", "[int] unique", "narrower", "narrower"),
    ("int", "[int]", "incomparable", "wider"),
    ("(int, int)", "[int]", "wider", "wider"),
    ("(int, str)", "(str, int)", "incomparable", "incomparable"),
    ("(int, int)", "(int,)", "incomparable", "incomparable"),
    ("{str: int}", "{str: float}", "wider", "wider"),
    ("any", "int", "narrower", "narrower"),
    ("int", "any", "wider", "wider"),
    ("int lax", "int", "narrower", "narrower"),
    ("bytes base64", "bytes hex", "incomparable", "incomparable"),
]


@pytest.mark.parametrize(("old", "new", "json", "text"), PAIRS)
def test_a_pair_has_one_relation(old: str, new: str, json: str, text: str) -> None:
    before, after = read_type(old), read_type(new)
    assert compare_types(before, after).relation == json
    assert compare_types(before, after, alphabet="text").relation == text


REVERSED = {"wider": "narrower", "narrower": "wider"}


@pytest.mark.parametrize(("old", "new", "json", "text"), PAIRS)
def test_the_relation_of_the_reversed_pair_follows(
    old: str, new: str, json: str, text: str
) -> None:
    found = compare_types(read_type(new), read_type(old))
    assert found.relation == REVERSED.get(json, json)


@pytest.mark.parametrize(
    ("old", "new", "lost", "gained"),
    [
        ("int", "int >=1", 0, None),
        ('"a" | "b"', '"a" | "c"', "b", "c"),
        ("[int]", "[int] items ..2", [0, 0, 0], None),
        ("(int, bool)", "(int, true)", [0, False], None),
        ("{str: int | null}", "{str: int}", {"x": None}, None),
    ],
)
def test_a_witness_shows_the_relation(old: str, new: str, lost: object, gained: object) -> None:
    found = compare_types(read_type(old), read_type(new))
    assert found.lost == Witness(lost)  # type: ignore[arg-type]
    assert found.gained == (None if gained is None else Witness(gained))  # type: ignore[arg-type]


def compare_records(old: Record, new: Record, **side: str) -> Comparison:
    return compare_types(
        Reference("User"),
        Reference("User"),
        old_definitions={"User": old},
        new_definitions={"User": new},
        **side,  # type: ignore[arg-type]
    )


ID = Member("id", Scalar("int"))
NAME = Member("name", Scalar("str"))


def test_a_required_member_narrows_a_body() -> None:
    found = compare_records(Record((ID,)), Record((ID, NAME)))
    assert found.lost == Witness({"id": 0})


def test_a_member_that_answers_lose_is_shown_by_an_answer_without_it() -> None:
    found = compare_records(Record((ID, NAME)), Record((ID,)), side="response")
    assert found.relation == "wider"
    assert found.gained == Witness({"id": 0})


def test_a_default_makes_a_member_optional_in_bodies_alone() -> None:
    old, new = Record((ID,)), Record((Member("id", Scalar("int"), default="1"),))
    assert compare_records(old, new).relation == "wider"
    assert compare_records(old, new, side="response").relation == "equal"


def test_a_closed_record_refuses_other_members() -> None:
    found = compare_records(Record((ID,)), Record((ID,), is_closed=True))
    assert found.lost == Witness({"id": 0, "unknown": 0})


def test_an_open_union_of_answers_has_any_value() -> None:
    old = UnionType((Reference("A"), Reference("B")), is_open=True)
    new = UnionType((Reference("A"), Scalar("int")))
    definitions = {"A": Record((ID,)), "B": Record((NAME,))}
    found = compare_types(
        old, new, side="response", old_definitions=definitions, new_definitions=definitions
    )
    assert found.relation == "narrower"


def test_a_tag_that_is_not_sent_is_refused() -> None:
    kind = Member("kind", read_type('"cat"'), default='"cat"')
    definitions: Definitions = {"Cat": Record((kind,)), "Dog": Record((ID,))}
    options = (Reference("Cat"), Reference("Dog"))
    found = compare_types(
        UnionType(options),
        UnionType(options, tag="kind"),
        old_definitions=definitions,
        new_definitions=definitions,
    )
    assert found.relation == "narrower"
    assert found.lost == Witness({})


def test_a_recursive_type_is_compared_to_its_end() -> None:
    def tree(leaf: Scalar) -> Record:
        node = UnionType((Reference("User"), NULL))
        return Record((Member("left", node), Member("leaf", leaf)))

    assert compare_records(tree(Scalar("int")), tree(Scalar("int"))).relation == "equal"
    found = compare_records(tree(Scalar("float")), tree(Scalar("int")))
    assert found.relation == "narrower"
    assert found.lost is not None


def test_a_list_of_itself_ends() -> None:
    node = Record((Member("items", ListType(Reference("User"))),))
    closed = Record(node.members, is_closed=True)
    assert compare_records(node, closed).relation == "narrower"


def test_a_name_without_definition_is_a_foreign_type() -> None:
    foreign = {"User": ForeignType("Money")}
    assert compare_types(Reference("User"), Reference("Other")).relation == "unknown"
    found = compare_types(Reference("User"), ForeignType("Money"), old_definitions=foreign)
    assert found.relation == "equal"
    assert compare_types(ForeignType("Money"), AnyType()).relation == "wider"


def test_the_view_of_a_side_is_preferred() -> None:
    definitions: Definitions = {
        "User in": Record((ID,)),
        "User out": Record((ID, NAME)),
        "Plain": Record((ID,)),
    }
    for side, relation in (("request", "equal"), ("response", "wider")):
        found = compare_types(
            Reference("User"),
            Reference("Plain"),
            side=side,  # type: ignore[arg-type]
            old_definitions=definitions,
            new_definitions=definitions,
        )
        assert found.relation == relation


def test_a_pattern_of_another_dialect_refuses_nothing_for_certain() -> None:
    old, new = read_type("str"), read_type('str match "(?<n>"')
    assert compare_types(old, new).relation == "narrower"
    assert compare_types(old, new).lost is None
    assert compare_types(new, read_type('str match "("')).relation == "unknown"


def test_a_pattern_of_a_stranger_takes_no_long_time() -> None:
    old, new = read_type("str len 40.."), read_type('str len 40.. match "(x+x+)+y"')
    found = compare_types(old, new)
    assert (found.relation, found.lost) == ("narrower", None)
