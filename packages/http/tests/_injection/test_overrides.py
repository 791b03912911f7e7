"""The mapping of replacements: says when it changes."""

from __future__ import annotations

import pytest

from treefold_http._injection.overrides import Overrides


def one() -> int:
    return 1


def two() -> int:
    return 2


def test_every_change_is_told() -> None:
    changes: list[int] = []
    overrides = Overrides(lambda: changes.append(len(overrides)))
    overrides[one] = two
    overrides[one] = one
    del overrides[one]
    overrides.update({one: two, two: one})
    overrides.clear()
    overrides |= {one: one}
    assert overrides.setdefault(two, one) is one
    assert overrides.pop(one) is one
    assert overrides.popitem() == (two, one)

    assert changes == [1, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0]


def test_it_reads_like_a_mapping_and_reading_tells_nothing() -> None:
    changes: list[int] = []
    overrides = Overrides(lambda: changes.append(1))
    overrides[one] = two
    changes.clear()

    assert overrides[one] is two
    assert overrides.get(two) is None
    assert list(overrides) == [one]
    assert len(overrides) == 1
    assert one in overrides
    assert overrides == {one: two}
    assert repr(overrides) == repr({one: two})
    assert changes == []


def test_removing_what_is_not_there_tells_nothing() -> None:
    changes: list[int] = []
    overrides = Overrides(lambda: changes.append(1))
    with pytest.raises(KeyError):
        del overrides[one]

    assert changes == []
