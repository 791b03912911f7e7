"""What a restart has healed, from one process to the next."""

from __future__ import annotations

import os

import pytest

from treefold_cli._dev.healed_failures import add_healed_failures, take_healed_failures

HEALED = {("Models/Book.py", "InvalidRequestError"), ("a b.py", "KeyError")}


def test_the_next_process_takes_what_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in add_healed_failures({"LANG": "C"}, HEALED).items():
        monkeypatch.setenv(name, value)

    assert take_healed_failures() == HEALED
    assert not [name for name in os.environ if name.startswith("TREEFOLD_DEV_")]
    assert take_healed_failures() == set()


def test_what_an_earlier_process_passed_on_goes_no_further() -> None:
    former = add_healed_failures({"LANG": "C"}, HEALED)

    assert add_healed_failures(former, set()) == {"LANG": "C"}


@pytest.mark.parametrize("text", ["{", "7", '["a"]', "[[1]]"])
def test_a_variable_of_an_unrelated_process_is_ignored(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("TREEFOLD_DEV_HEALED", text)

    assert take_healed_failures() == set()
