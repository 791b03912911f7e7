"""Two files for one route: the one visited later serves, at boot and after any save."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from http_reloading import Live, handler

from treefold_http import Application

if TYPE_CHECKING:
    from conftest import Answer, Lines

FIRST = "Api/v1/X/Get.py"
PAIRS = ["Api/v1/x/Get.py", "Api/v1/X/get.py"]


@pytest.fixture
def live(project: Callable[..., Application], ask: Callable[..., Answer]) -> Callable[..., Live]:
    def make(files: dict[str, str]) -> Live:
        return Live(project(files, dev=True), ask)

    return make


def told(lines: Lines, second: str) -> int:
    line = f"duplicate GET /v1/x: {FIRST[4:]}, {second[4:]}"
    return sum(text == line for text in lines.texts())


@pytest.mark.parametrize("second", PAIRS)
def test_the_later_file_serves_after_any_save(
    live: Callable[..., Live], lines: Lines, second: str
) -> None:
    served = live({FIRST: handler("1"), second: handler("2")})
    assert (served.get(), told(lines, second)) == ([2], 1)

    served.edit({FIRST: handler("10")})
    assert served.get() == [2]
    served.edit({second: handler("20")})
    assert served.get() == [20]
    served.edit({FIRST: handler("100"), second: handler("200")})
    assert served.get() == [200]
    served.edit({"Api/v1/Y/Get.py": handler("3")})
    assert served.get() == [200]
    served.edit({FIRST: "this is no Python"})
    assert served.get() == [200]
    served.edit({second: None})
    assert served.get() == 500
    served.edit({FIRST: handler("1")})
    assert served.get() == [1]
    assert served.app.table.duplicates == ()


@pytest.mark.parametrize("second", PAIRS)
@pytest.mark.parametrize("is_later", [True, False])
def test_a_second_file_takes_its_place_in_the_order(
    live: Callable[..., Live], lines: Lines, second: str, is_later: bool
) -> None:
    was, added = (FIRST, second) if is_later else (second, FIRST)
    served = live({was: handler("1")})
    served.edit({added: handler("2")})

    assert (served.get(), told(lines, second)) == ([2 if is_later else 1], 1)
    assert [each.files for each in served.app.table.duplicates] == [(FIRST[4:], second[4:])]
    served.edit({was: handler("10")})
    assert served.get() == [2 if is_later else 10]
