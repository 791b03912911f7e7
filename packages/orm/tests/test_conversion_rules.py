"""Which type two types have in common, and where a conversion stands in the tree of nodes."""

from __future__ import annotations

import decimal
from typing import Any

import pytest
from orm_models import Author, Everything, Order, Post

from treefold_orm import FieldError
from treefold_orm._expressions.conversion import (
    classify_field,
    convert_for_column,
    convert_node,
    find_common_type,
)
from treefold_orm._expressions.nodes import ColumnNode, ConvertNode, ParamNode
from treefold_orm._fields.carriers import (
    BOOLEAN,
    DATE,
    DATETIME,
    FLOAT,
    INTEGER,
    TEXT,
    make_decimal_field,
)

EVERY = Everything._meta.fields
TOTAL = Order._meta.fields["total"]


def _column(field: Any) -> ColumnNode:
    return ColumnNode(field, (), field)


COMMON = [
    (("small", "big"), "integer", 0),
    (("small", "money"), "decimal", 3),
    (("money", "small"), "decimal", 3),
    (("small", "real"), "float", 0),
    (("money", "real"), "float", 0),
    (("char", "text"), "text", 0),
    (("char", "color"), "text", 0),
    (("day", "moment"), "datetime", 0),
    (("moment", "day"), "datetime", 0),
    (("data", "char"), "text", 0),
    (("data", "flag"), "boolean", 0),
    (("data", "small"), "number", 0),
    (("data", "money"), "float", 0),
    (("small", "data", "real"), "float", 0),
    (("uid", "uid"), "uuid", 0),
]


@pytest.mark.parametrize(("names", "kind", "places"), COMMON)
def test_the_common_type_of_columns(names: tuple[str, ...], kind: str, places: int) -> None:
    found = find_common_type(EVERY[name] for name in names)
    assert found is not None
    assert (classify_field(found), getattr(found, "decimal_places", 0)) == (kind, places)


def test_an_enum_stays_an_enum_beside_itself() -> None:
    assert find_common_type([EVERY["color"], EVERY["color"]]) is EVERY["color"]


def test_decimals_take_the_most_places() -> None:
    found = find_common_type([TOTAL, EVERY["money"], make_decimal_field(1)])
    assert found is make_decimal_field(3)


def test_a_foreign_key_is_compared_as_the_key_it_points_to() -> None:
    found = find_common_type([Post._meta.fields["author"], Author._meta.fields["age"]])
    assert found is INTEGER


def test_what_is_not_known_does_not_count() -> None:
    assert find_common_type([None, TEXT, None]) is TEXT
    assert find_common_type([None]) is None


REFUSED = [
    ("small", "char"),
    ("small", "flag"),
    ("flag", "char"),
    ("day", "char"),
    ("day", "small"),
    ("time", "moment"),
    ("span", "small"),
    ("uid", "char"),
    ("blob", "text"),
    ("data", "day"),
    ("color", "small"),
]


@pytest.mark.parametrize(("one", "other"), REFUSED)
def test_types_without_a_common_one_are_named_in_the_error(one: str, other: str) -> None:
    wanted = rf"Everything\.{one} .* and Everything\.{other} .*convert one with Cast\(\)"
    with pytest.raises(FieldError, match=wanted):
        find_common_type([EVERY[one], EVERY[other]])


def test_a_value_in_the_same_form_stays_as_it_is() -> None:
    node = _column(TOTAL)
    assert convert_node(node, make_decimal_field(2)) is node
    assert convert_node(_column(EVERY["char"]), TEXT).field is EVERY["char"]


def test_a_value_in_another_form_gets_a_conversion() -> None:
    node = _column(EVERY["small"])
    assert convert_node(node, make_decimal_field(2)) == ConvertNode(
        make_decimal_field(2), node, "value"
    )


def test_a_null_without_type_takes_the_type_it_is_converted_to() -> None:
    assert convert_node(ParamNode(None, 4), TEXT) == ParamNode(TEXT, 4)


def test_a_conversion_never_loses_anything() -> None:
    for source, target in ((FLOAT, INTEGER), (make_decimal_field(3), TOTAL), (DATETIME, DATE)):
        with pytest.raises(FieldError, match=r"cannot be used as .*: convert it with Cast\(\)"):
            convert_node(_column(source), target)


@pytest.mark.parametrize("source", [INTEGER, FLOAT, make_decimal_field(4), make_decimal_field(2)])
def test_assignment_converts_to_the_type_of_the_column(source: Any) -> None:
    node = _column(source)
    assert convert_for_column(node, TOTAL) == ConvertNode(TOTAL, node, "assign")


def test_assignment_of_what_fits_in_any_case_needs_no_conversion() -> None:
    for name, target in (("small", "big"), ("char", "text"), ("day", "day"), ("money", "money")):
        node = _column(EVERY[name])
        assert convert_for_column(node, EVERY[target]) is node


@pytest.mark.parametrize(
    ("source", "target"), [(TEXT, "small"), (INTEGER, "text"), (BOOLEAN, "small"), (TEXT, "day")]
)
def test_assignment_between_other_types_is_refused(source: Any, target: str) -> None:
    with pytest.raises(FieldError, match=rf"Everything\.{target} .* cannot be set to .*Cast\(\)"):
        convert_for_column(_column(source), EVERY[target])


def test_a_common_type_does_not_depend_on_the_order() -> None:
    names = ("small", "money", "real", "data", "day", "moment", "char", "color", "flag")
    for one in names:
        for other in names:
            outcomes: list[Any] = []
            for pair in ((one, other), (other, one)):
                try:
                    found = find_common_type(EVERY[name] for name in pair)
                    assert found is not None
                    outcomes.append((classify_field(found), getattr(found, "decimal_places", 0)))
                except FieldError:
                    outcomes.append("refused")
            assert outcomes[0] == outcomes[1]


def test_values_of_python_have_the_places_they_are_written_with() -> None:
    from treefold_orm._fields.carriers import infer_value_field

    found = find_common_type([TOTAL, infer_value_field(decimal.Decimal("0.0005"))])
    assert found is make_decimal_field(4)
