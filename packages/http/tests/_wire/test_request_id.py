"""The request id: kept when it is safe to repeat, else made here (S-79)."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from treefold_http._wire.request_id import assign_request_id

OURS = re.compile("[0-9a-f]{28,}").fullmatch


def identity(*values: bytes) -> str:
    raw = [(b"host", b"a"), *((b"x-request-id", value) for value in values)]
    return assign_request_id(dict(raw), raw)


@pytest.mark.parametrize(
    "value", ["a", "a-b_c.d:e@f/g+h=i", "0" * 128, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "a/b=="]
)
def test_a_wellformed_id_is_kept(value: str) -> None:
    assert identity(value.encode()) == value


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"a b",
        b" a",
        b"a ",
        b"\x1b[2J",
        b"a\r\nb",
        b"a\n",
        b"\xc3\xa4",
        b'a" x="',
        b"a,b",
        b"a;b",
        b"<a>",
        b"x" * 129,
        b"x" * 10_240,
    ],
)
def test_any_other_value_gives_an_id_of_our_own(value: bytes) -> None:
    assert OURS(identity(value))


@pytest.mark.parametrize("values", [(b"a", b"b"), (b"a", b"a"), (b"a b", b"c")])
def test_more_than_one_value_gives_an_id_of_our_own(values: tuple[bytes, ...]) -> None:
    assert OURS(identity(*values))


def test_a_repeat_of_another_field_does_not_cost_the_id() -> None:
    raw = [(b"cookie", b"a=1"), (b"cookie", b"b=2"), (b"x-request-id", b"mine")]

    assert assign_request_id(dict(raw), raw) == "mine"


def test_ids_of_our_own_never_repeat() -> None:
    assert len({identity() for _ in range(10_000)}) == 10_000


@given(st.binary())
def test_an_id_is_always_safe_to_print(value: bytes) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._:@/+=-]{1,128}", identity(value))


FORK = """
import os
from treefold_http._wire.request_id import assign_request_id
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, assign_request_id({}, []).encode())
    os._exit(0)
os.wait()
print(os.read(reading, 200).decode(), assign_request_id({}, []))
"""


def test_a_forked_process_starts_a_series_of_its_own() -> None:
    # In an interpreter of its own: a process with threads, such as this one, is not to fork.
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=20,
    )
    theirs, ours = done.stdout.split()

    assert OURS(theirs)
    assert OURS(ours)
    assert theirs[:20] != ours[:20]
