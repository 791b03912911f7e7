"""What every test needs: the lines that were written, and a logger as it is after import."""

import logging
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from treefold_logging import configure, flush, get_logger
from treefold_logging._logger import HANDLER, STAMP

# a limit of the clock for each example would fail on a busy machine
settings.register_profile("treefold", deadline=None)
settings.load_profile("treefold")

Lines = Callable[[], list[str]]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """Take off the handlers that pytest puts on loggers which do not propagate.

    With them every request line would be a record, and its short way would never be tested.
    """
    get_logger().handlers[:] = [HANDLER]


@pytest.fixture(autouse=True)
def untouched_logger() -> Iterator[None]:
    """Undo what a test did to the logger; nothing it wrote reaches the next test."""
    yield
    flush()
    configure(level=logging.INFO)
    logger = get_logger()
    logger.handlers[:] = [HANDLER]
    logger.filters[:] = [STAMP]
    logger.propagate = False
    HANDLER.filters.clear()
    HANDLER.setLevel(logging.NOTSET)
    HANDLER.setFormatter(HANDLER.entry_formatter)


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    """Give the lines written to standard error since the last call."""

    def written() -> list[str]:
        assert flush()
        return capsys.readouterr().err.splitlines()

    flush()
    capsys.readouterr()
    return written
