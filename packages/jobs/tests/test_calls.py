"""Jobs: what may be enqueued is checked where it is enqueued, with a way out in each error."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from datetime import date
from enum import IntEnum
from typing import Any

import own_jobs
import pytest
from hypothesis import given, strategies as st

from treefold_jobs._call import Call, build_checked_call


class Size(IntEnum):
    LARGE = 1


def nested() -> Callable[..., Any]:
    def inner() -> None: ...

    return inner


def in_main() -> None: ...


in_main.__module__ = "__main__"


def removed() -> None: ...


gone = removed
del removed


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (lambda: None, "got a lambda; give it a name there"),
        (nested(), "got 'nested.<locals>.inner', which is nested; move it to the top level"),
        (own_jobs.Sender().send, "got the method 'Sender.send'"),
        (own_jobs.Sender.send, "got the method 'Sender.send'"),
        (own_jobs.Sender.send_all, "got the method 'Sender.send_all'"),
        (own_jobs.Sender, "got the class 'Sender'"),
        (functools.partial(own_jobs.note, 1), "got partial"),
        (print, "got builtin_function_or_method 'print'"),
        ("own_jobs.note", "got str"),
        (in_main, "cannot import 'in_main' from '__main__'; put it into a module"),
        (own_jobs.generate, "got the generator 'generate'"),
        (gone, "finds no function 'removed' in"),
    ],
)
def test_a_function_without_an_importable_name_is_refused(fn: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        build_checked_call(fn, (), {})
    assert text in str(caught.value)


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (date(2026, 1, 2), "got date in 'value'"),
        ((1, 2), "got tuple in 'value'"),
        ({1, 2}, "got set in 'value'"),
        (b"x", "got bytes in 'value'"),
        (Size.LARGE, "got Size in 'value'"),
        (float("nan"), "got nan in 'value'"),
        ({"a": [1, {"b": object()}]}, "got object in \"value['a'][1]['b']\""),
        ({1: 2}, "got a key of type int in 'value'"),
        (CYCLE, "got more than 100 levels in 'value'"),
    ],
)
def test_an_argument_that_is_not_json_is_refused_by_its_place(value: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        build_checked_call(own_jobs.note, (value,), {})
    assert text in str(caught.value)
    assert "pass the key of a row" in str(caught.value)


def test_the_error_of_an_argument_does_not_show_values() -> None:
    with pytest.raises(TypeError) as caught:
        build_checked_call(own_jobs.fail, ("x",), {"password": {"hunter2"}})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "missing a required argument: 'value'"),
        ((1, 2), {}, "too many positional arguments"),
    ],
)
def test_arguments_that_the_function_does_not_take_are_refused(
    args: tuple[Any, ...], kwargs: dict[str, Any], text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        build_checked_call(own_jobs.note, args, kwargs)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=10,
)


@given(JSON, st.dictionaries(st.text(st.characters(), min_size=1), JSON, max_size=3))
def test_json_arguments_arrive_as_they_were_sent(value: Any, more: dict[str, Any]) -> None:
    more.pop("value", None)
    call = build_checked_call(own_jobs.note, (value,), more)
    payload = call.to_json().encode()
    assert Call.from_json(payload) == call
    assert call.resolve() is own_jobs.note


def test_a_function_of_a_former_version_of_its_module_keeps_its_name() -> None:
    async def note(value: Any) -> None: ...

    note.__module__, note.__qualname__ = "own_jobs", "note"
    assert build_checked_call(note, (1,), {}).function == "own_jobs:note"


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"{}", b'"text"', json.dumps({"function": 1}).encode()]
)
def test_a_payload_of_another_program_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError):
        Call.from_json(payload)


@pytest.mark.parametrize("name", ["own_jobs:gone", "own_jobs:Sender", "no_such_module:note"])
def test_a_function_that_is_gone_is_an_import_error(name: str) -> None:
    with pytest.raises(ImportError):
        Call(name, [], {}).resolve()
