"""The summary of a request: on a terminal only, in colour, and nothing in it moves the cursor."""

import os
import pty
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from treefold_logging import configure, flush, log_summary, shows_summaries


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Generator[Callable[[], str]]:
    """Put a terminal in place of standard error; gives what reads it.

    In the body of a test: between a fixture and its test pytest sets the stream anew.
    """
    monkeypatch.delenv("NO_COLOR", raising=False)
    main, other = pty.openpty()
    os.set_blocking(main, False)

    def read() -> str:
        flush()
        return os.read(main, 1000).decode()

    with (
        os.fdopen(main, "rb", buffering=0),
        os.fdopen(other, "w", buffering=1) as stream,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stderr", stream)
        yield read
        flush()


def test_it_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch):
        assert shows_summaries()
        configure(log_format="json")
        assert not shows_summaries()
        configure(log_format="text")
        monkeypatch.setenv("NO_COLOR", "1")
        assert not shows_summaries()
    monkeypatch.setattr(sys, "stderr", None)
    assert not shows_summaries()


@pytest.mark.parametrize(
    ("status", "colour"), [(200, 32), (304, 36), (404, 33), (500, 31), (101, 31)]
)
def test_it_is_one_short_line_in_the_colour_of_its_status(
    monkeypatch: pytest.MonkeyPatch, status: int, colour: int
) -> None:
    with terminal(monkeypatch) as read:
        log_summary("GET", "/v1/book", status, seconds=0.0031, notes=["2 queries in 0.84ms"])
        shown = read().rstrip()
    told = "\x1b[2m3.1ms, 2 queries in 0.84ms\x1b[0m"
    assert shown == f"\x1b[{colour}m{status}\x1b[0m GET /v1/book {told}"


def test_no_part_of_it_can_move_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as read:
        log_summary("G\x1b[2J\n", "/x", 200, seconds=0, notes=["a\x1b[2J\nb"])
        shown = read()
    assert shown.count("\n") == 1
    assert "\x1b[2J" not in shown
