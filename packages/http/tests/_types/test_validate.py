"""Records checked by ourselves: what fits, what does not and where, what is refused at boot."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NewType, NotRequired, TypedDict

import pytest
from hypothesis import given, strategies as st

from treefold_http._types.parameters import InjectionError
from treefold_http._types.read import parse_annotation
from treefold_http._types.tree import Record
from treefold_http._types.validate import build_json_check


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


ItemId = NewType("ItemId", int)


@dataclass
class Item:
    name: str
    price: float = 0.0


class Point(TypedDict):
    x: int
    y: NotRequired[int]


@dataclass
class Order:
    id: int
    items: list[Item]
    notes: dict[str, str] = field(default_factory=dict[str, str])
    parent: Order | None = None
    point: Point | None = None
    total: int = field(init=False, default=0)


@dataclass
class Scaled:
    size: int = field(init=False)
    unit: ClassVar[int] = 10
    times: InitVar[int]
    plus: InitVar[int | None] = None

    def __post_init__(self, times: int, plus: int | None) -> None:
        self.size = self.unit * times + (plus or 0)


def scaled(times: int, plus: int | None = None) -> Scaled:
    return Scaled(times, plus)


@dataclass
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError("should be positive")


@dataclass
class Unresolved:
    a: Missing  # noqa: F821 # pyright: ignore[reportUndefinedVariable] - what is tested


@dataclass
class Unsupported:
    a: tuple[int, ...]


def check(annotation: Any, value: Any) -> tuple[Any, list[tuple[str, str, str]]]:
    errors: list[dict[str, Any]] = []
    made = build_json_check(parse_annotation(annotation))(value, ["body"], errors)
    return made, [(".".join(map(str, e["loc"])), e["msg"], e["type"]) for e in errors]


DAY = dt.date(2026, 1, 2)
ID = uuid.UUID(int=5)

FITS: list[tuple[Any, Any, Any]] = [
    (Item, {"name": "a"}, Item("a", 0.0)),
    (Item, {"name": "a", "price": 2}, Item("a", 2.0)),
    (Order, {"id": 1, "items": []}, Order(1, [])),
    (Order, {"id": 1, "items": [{"name": "a"}]}, Order(1, [Item("a")])),
    (Order, {"id": 1, "items": [], "notes": {"a": "b"}}, Order(1, [], {"a": "b"})),
    (
        Order,
        {"id": 1, "items": [], "parent": {"id": 2, "items": []}},
        Order(1, [], parent=Order(2, [])),
    ),
    (Order, {"id": 1, "items": [], "point": {"x": 1}}, Order(1, [], point={"x": 1})),
    (Scaled, {"times": 2}, scaled(2)),
    (Scaled, {"times": 2, "plus": 1}, scaled(2, 1)),
    (Point, {"x": 1, "y": 2}, {"x": 1, "y": 2}),
    (list[Item], [{"name": "a"}], [Item("a")]),
    (Item | None, None, None),
    (Item | Point, {"x": 1}, {"x": 1}),
    (int | str, "5", "5"),
    (Any, [1, None], [1, None]),
    (object, 5, 5),
    (list, [1, "a"], [1, "a"]),
    (dict, {"a": 1}, {"a": 1}),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (Mapping[str, int], {"a": 1}, {"a": 1}),
    (dict[Any, int], {"a": 1}, {"a": 1}),
    (int, 10**400, 10**400),
    (Literal["a", 1], 1, 1),
    (Colour, "red", Colour.RED),
    (Colour, 1, Colour.ONE),
    (dt.date, "2026-01-02", DAY),
    (uuid.UUID, str(ID), ID),
    (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
    (ItemId, 5, 5),
    (list[ItemId], [5], [5]),
    (NewType("Stock", Item), {"name": "a"}, Item("a")),
]


@pytest.mark.parametrize(("annotation", "value", "made"), FITS, ids=[str(f[1]) for f in FITS])
def test_what_fits_becomes_the_annotated_type(annotation: Any, value: Any, made: Any) -> None:
    got, errors = check(annotation, value)

    assert errors == []
    assert (got, type(got)) == (made, type(made))


FAILS: list[tuple[Any, Any, list[tuple[str, str, str]]]] = [
    (Item, [], [("body", "body should be an object", "type_error")]),
    (Item, None, [("body", "body should be an object", "type_error")]),
    (Item, {}, [("body.name", "name is required", "missing")]),
    (Item, {"name": None}, [("body.name", "name should be str", "type_error")]),
    (Item, {"name": "a", "price": True}, [("body.price", "price should be float", "type_error")]),
    (Item, {"name": "a", "price": "2"}, [("body.price", "price should be float", "type_error")]),
    (
        Item,
        {"name": "a", "price": 10**400},
        [("body.price", "price should be a finite number", "type_error")],
    ),
    (
        Item,
        {"name": "a", "b": 1, "__class__": 2},
        [
            ("body.__class__", "__class__ is not known here", "extra"),
            ("body.b", "b is not known here", "extra"),
        ],
    ),
    (
        Order,
        {"id": True, "items": [{"name": "a"}, {"price": 1}, 5], "notes": {"a": 1}},
        [
            ("body.id", "id should be int", "type_error"),
            ("body.items.1.name", "name is required", "missing"),
            ("body.items.2", "items should be an object", "type_error"),
            ("body.notes.a", "a should be str", "type_error"),
        ],
    ),
    (
        Order,
        {"id": 1, "items": [], "total": 5},
        [("body.total", "total is not known here", "extra")],
    ),
    (Scaled, {"plus": 1}, [("body.times", "times is required", "missing")]),
    (
        Scaled,
        {"times": "2", "unit": 5, "size": 5},
        [
            ("body.size", "size is not known here", "extra"),
            ("body.unit", "unit is not known here", "extra"),
            ("body.times", "times should be int", "type_error"),
        ],
    ),
    (Point, {"y": 1}, [("body.x", "x is required", "missing")]),
    (Positive, {"number": 0}, [("body", "body should be positive", "value_error")]),
    (list[Positive], [{"number": 0}], [("body.0", "body should be positive", "value_error")]),
    (list[int], {}, [("body", "body should be list", "type_error")]),
    (list[int], [1.0], [("body.0", "body should be int", "type_error")]),
    (dict[str, int], [], [("body", "body should be an object", "type_error")]),
    (int | None, "5", [("body", "body should be int | None", "type_error")]),
    (list[Item] | None, "5", [("body", "body should be list | None", "type_error")]),
    (Item | dict[str, Point], "5", [("body", "body should be Item | dict", "type_error")]),
    (ItemId | list[dt.date], "5", [("body", "body should be ItemId | list", "type_error")]),
    (
        Colour | list[uuid.UUID],
        "5",
        [("body", "body should be Literal['red', 1] | list", "type_error")],
    ),
    (
        Literal["a", 1] | Annotated[Item, "text"],
        "5",
        [("body", "body should be Literal['a', 1] | Item", "type_error")],
    ),
    (Literal["a", 1], True, [("body", "body should be one of a, 1", "type_error")]),
    (Literal["a", 1], [], [("body", "body should be one of a, 1", "type_error")]),
    (Colour, {}, [("body", "body should be one of red, 1", "type_error")]),
    (Colour, 1.0, [("body", "body should be one of red, 1", "type_error")]),
    (dt.date, "yesterday", [("body", "body should be a date in ISO 8601", "value_error")]),
    (dt.date, 5, [("body", "body should be text", "type_error")]),
    (ItemId, "5", [("body", "body should be int", "type_error")]),
]


@pytest.mark.parametrize(("annotation", "value", "found"), FAILS, ids=[str(f[1]) for f in FAILS])
def test_what_does_not_fit_is_refused_with_every_place(
    annotation: Any, value: Any, found: list[tuple[str, str, str]]
) -> None:
    assert check(annotation, value) == (check(annotation, value)[0], found)


def test_an_integer_is_taken_for_a_float_and_no_other_value_for_a_number() -> None:
    made, errors = check(float | int, 1)
    assert (made, type(made), errors) == (1.0, float, [])
    for kind, value in ((int, 1.0), (int, "1"), (float, "1"), (float, True), (int, True)):
        assert check(kind, value)[1] == [
            ("body", f"body should be {kind.__name__}", "type_error"),
        ]


def test_a_record_that_does_not_fit_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    @dataclass
    class Noted:
        a: int
        b: int

        def __post_init__(self) -> None:
            made.append(self.a)

    errors: list[dict[str, Any]] = []
    build_json_check(parse_annotation(list[Noted]))(
        [{"a": 1, "b": "x"}, {"a": 2, "b": 2}], ["body"], errors
    )

    assert made == [2]
    assert len(errors) == 1


@pytest.mark.parametrize("annotation", [tuple[int, ...], set[int], complex, Unsupported])
def test_what_json_has_no_form_for_is_refused_at_boot(annotation: Any) -> None:
    words = (
        r"^A body cannot hold .+ without pydantic or msgspec;"
        r' install one: pip install "treefold\[pydantic\]"$'
    )
    with pytest.raises(InjectionError, match=words):
        build_json_check(parse_annotation(annotation))


def test_keys_that_are_no_text_are_refused_at_boot() -> None:
    with pytest.raises(
        InjectionError, match=r"^The keys of a JSON object must be str, got int; anno"
    ):
        build_json_check(parse_annotation(dict[int, str]))


def test_an_annotation_that_cannot_be_resolved_is_refused_at_boot() -> None:
    with pytest.raises(InjectionError, match=r"^The annotations of Unresolved cannot be res"):
        build_json_check(parse_annotation(Unresolved))


def test_dataclasses_and_typed_dicts_are_records() -> None:
    assert all(isinstance(parse_annotation(kind), Record) for kind in (Item, Point))
    others = [int, list[Item], Item("a"), None, Colour]
    assert not any(isinstance(parse_annotation(kind), Record) for kind in others)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(json_values)
def test_any_value_is_a_record_or_has_errors_with_a_place(value: Any) -> None:
    errors: list[dict[str, Any]] = []
    made = build_json_check(parse_annotation(Order))(value, ["body"], errors)

    assert isinstance(made, Order) != bool(errors)
    assert all(set(e) - {"ctx"} == {"loc", "msg", "type"} and e["loc"][0] == "body" for e in errors)


@given(
    st.integers(),
    st.lists(st.tuples(st.text(), st.floats(allow_nan=False, allow_infinity=False))),
)
def test_a_record_reads_back(id: int, items: list[tuple[str, float]]) -> None:
    document = {"id": id, "items": [{"name": name, "price": price} for name, price in items]}

    assert check(Order, document)[0] == Order(id, [Item(name, price) for name, price in items])


def test_a_choice_says_what_was_expected() -> None:
    errors: list[Any] = []
    build_json_check(parse_annotation(Literal["a", "b", 3]))("s3cret", ["body", "kind"], errors)

    assert errors == [
        {
            "loc": ["body", "kind"],
            "msg": "kind should be one of a, b, 3",
            "type": "type_error",
            "ctx": {"expected": "'a', 'b' or 3"},
        }
    ]
