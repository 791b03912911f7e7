"""Masking of structures (rulings, 'Log line'; S-82)."""

import copy
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given, strategies as st

from treefold_logging import is_sensitive, mask

SECRET = "hunter2"
Wrap = Callable[[Any], Any]


@dataclass(slots=True)
class Login:
    kind: ClassVar[str] = "login"
    user: str
    password: str


@dataclass(frozen=True)
class Pin:
    pin: int


class Pair(NamedTuple):
    user: str
    pwd: str


class Struct:
    """Has the shape of a msgspec struct."""

    __struct_fields__ = ("name", "token", "absent")

    def __init__(self) -> None:
        self.name = "a"
        self.token = SECRET


class Model:
    """Has the shape of a pydantic model."""

    __slots__ = ("__dict__", "__pydantic_extra__")
    __pydantic_validator__ = object()

    def __init__(self) -> None:
        self.name = "a"
        self.api_key = SECRET
        self.__pydantic_extra__ = {"x_secret": SECRET}

    def __getattr__(self, name: str) -> str:
        return self.__pydantic_extra__[name]


class Broken(Mapping[str, str]):
    def __getitem__(self, key: str) -> str:
        raise RuntimeError(SECRET)

    def __iter__(self) -> Iterator[str]:
        return iter(["name"])

    def __len__(self) -> int:
        return 1


MODEL = {"name": "a", "api_key": "***", "x_secret": "***"}


CASES: list[tuple[Any, Any]] = [
    ({"user": "u", "password": SECRET}, {"user": "u", "password": "***"}),
    ([{"token": SECRET}], [{"token": "***"}]),
    (({"token": SECRET}, 1), ({"token": "***"}, 1)),
    ({"a": {"b": [{"X-Api-Key": SECRET}]}}, {"a": {"b": [{"X-Api-Key": "***"}]}}),
    (OrderedDict[str, Any](pin=1), {"pin": "***"}),
    (deque([{"pin": 1}]), [{"pin": "***"}]),
    ({1, 2}, {1, 2}),
    (frozenset({(1, "a")}), frozenset({(1, "a")})),
    ({Pin(1)}, [{"pin": "***"}]),
    (Login("u", SECRET), {"user": "u", "password": "***"}),
    (Pair("u", SECRET), {"user": "u", "pwd": "***"}),
    (Struct(), {"name": "a", "token": "***"}),
    ({"m": Model()}, {"m": MODEL}),
    ({b"password": SECRET, 1: 2, None: 3}, {b"password": "***", 1: 2, None: 3}),
    ({("a", "b"): {"pin": 1}}, {("a", "b"): {"pin": "***"}}),
    ([], []),
    ({}, {}),
    ((), ()),
]


@pytest.mark.parametrize(("value", "masked"), CASES)
def test_s82_values_under_sensitive_keys_are_masked_in(value: object, masked: object) -> None:
    result = mask(value)
    assert result == masked
    assert type(result) is type(masked)


@pytest.mark.parametrize("value", ["text", b"bytes", 1, 1.5, True, None, Login, object])
def test_a_value_that_is_no_container_is_returned_as_it_is(value: object) -> None:
    assert mask(value) is value


@pytest.mark.parametrize("value", [None, 0, "", "x", [1], {"a": 1}, Login("u", "p"), object()])
def test_a_sensitive_value_is_masked_whatever_it_is(value: object) -> None:
    assert mask({"password": value}) == {"password": "***"}


def test_the_input_is_left_alone_and_shares_nothing_with_the_copy() -> None:
    value = {"a": [{"new_password": "x", "items": [{"X-Api-Key": "y"}, [1]]}]}
    before = copy.deepcopy(value)
    masked: Any = mask(value)
    masked["a"][0]["items"][1].append(2)
    assert value == before


def test_keys_keep_their_order() -> None:
    value: dict[str, Any] = {"z": [1], "password": 1, "a": {}, "b": 1}
    assert list(mask(value)) == ["z", "password", "a", "b"]


WRAPS: list[Wrap] = [lambda x: [x], lambda x: (x,), lambda x: {"a": x}]
PAIRS: list[Wrap] = [lambda x: [x, x], lambda x: (x, x), lambda x: {"a": x, "b": x}]


@pytest.mark.parametrize("wrap", WRAPS)
def test_any_depth_is_masked_without_recursion(wrap: Wrap) -> None:
    value: Any = {"password": SECRET, "name": "a"}
    for _ in range(20_000):
        value = wrap(value)
    masked = mask(value)
    place = "a" if type(value) is dict else 0
    for _ in range(20_000):
        masked = masked[place]
    assert masked == {"password": "***", "name": "a"}


def test_a_cycle_is_shown_as_a_cycle() -> None:
    value: dict[str, Any] = {"password": SECRET}
    value["self"] = value
    value["list"] = [value, (value,)]
    cycle = "<cycle>"
    assert mask(value) == {"password": "***", "self": cycle, "list": [cycle, (cycle,)]}


def test_a_container_met_twice_is_shown_twice() -> None:
    shared = {"pin": 1, "n": [1]}
    assert mask([shared, (shared, shared)]) == [
        {"pin": "***", "n": [1]},
        ({"pin": "***", "n": [1]}, {"pin": "***", "n": [1]}),
    ]


@pytest.mark.parametrize("pair", PAIRS)
def test_shared_branches_do_not_multiply_the_work(pair: Wrap) -> None:
    value: Any = [1]
    for _ in range(60):
        value = pair(value)
    started = time.process_time()
    mask(value)
    assert time.process_time() - started < 1


def test_a_container_that_cannot_be_read_is_shown_as_its_type() -> None:
    assert mask({"a": Broken(), "b": 1}) == {"a": "<Broken>", "b": 1}


def test_objects_made_while_reading_are_not_mixed_up() -> None:
    class Fresh(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return {"key": key, "list": [key]}

        def __iter__(self) -> Iterator[str]:
            return iter("abcdefgh")

        def __len__(self) -> int:
            return 8

    assert mask(Fresh()) == {key: {"key": key, "list": [key]} for key in "abcdefgh"}


def test_further_words_can_be_given() -> None:
    value = {"number_plate": 1, "password": 2, "name": 3}
    assert mask(value, extra=["plate"]) == {"number_plate": "***", "password": "***", "name": 3}
    assert mask(value)["number_plate"] == 1


KEYS = st.text(max_size=8) | st.sampled_from(["password", "X-Api-Key", "pin", "author"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


def expected(value: Any) -> Any:
    kind: Wrap = value.__class__
    if kind is dict:
        return {k: "***" if is_sensitive(k) else expected(v) for k, v in value.items()}
    if kind is list or kind is tuple:
        return kind(expected(item) for item in value)
    return value


@given(VALUES)
def test_masking_says_what_its_definition_says_and_changes_nothing(value: Any) -> None:
    before = copy.deepcopy(value)
    assert mask(value) == expected(value)
    assert value == before
