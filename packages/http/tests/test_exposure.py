"""Exceptions that a test client asked for, and nobody else."""

from typing import Any

import pytest

from treefold_http._exposure import EXTENSION, expose


@pytest.mark.parametrize("scope", [{}, {"extensions": None}, {"extensions": {}}])
def test_a_server_that_asks_for_no_exception_gets_none(scope: dict[str, Any]) -> None:
    before = repr(scope)
    expose(scope, ValueError("secret"))

    assert repr(scope) == before


def test_a_list_in_the_scope_gets_the_exceptions() -> None:
    errors: list[BaseException] = []
    first, second = ValueError("a"), SystemExit(1)
    for error in (first, second):
        expose({"extensions": {EXTENSION: errors}}, error)

    assert errors == [first, second]
