"""Exceptions that a test client asked for, and nobody else."""

from typing import Any

import pytest

from treefold_http._runtime.unhandled import EXTENSION, report_to_test_client


@pytest.mark.parametrize("scope", [{}, {"extensions": None}, {"extensions": {}}])
def test_a_server_that_asks_for_no_exception_gets_none(scope: dict[str, Any]) -> None:
    before = repr(scope)
    report_to_test_client(scope, ValueError("secret"))

    assert repr(scope) == before


def test_a_list_in_the_scope_gets_the_exceptions() -> None:
    errors: list[BaseException] = []
    first, second = ValueError("a"), SystemExit(1)
    for error in (first, second):
        report_to_test_client({"extensions": {EXTENSION: errors}}, error)

    assert errors == [first, second]
