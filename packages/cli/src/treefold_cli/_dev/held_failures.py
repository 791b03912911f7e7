"""Hold the log of failed imports back while the next save may repair them.

A name that is renamed in two files is broken between the two saves:

    Services/words.py   def count(): ...                    saved first: `n` is gone
    Api/v1/X/Get.py     from Services.words import count    saved 100 ms later

The reload of the first save fails, and the last good version serves. Its traceback would only
distract; it is logged if no other save follows at once.
"""

import contextlib
import logging
from collections.abc import Collection, Generator

from treefold_http import BrokenFile
from treefold_logging import get_logger


class HeldFailures:
    """The failures that reloads have found and not logged yet.

    Attributes:
        records: those of the last reload, in order.
    """

    def __init__(self) -> None:
        self.records: list[logging.LogRecord] = []
        self._earlier: list[logging.LogRecord] = []

    @contextlib.contextmanager
    def hold_back(self) -> Generator[None]:
        """Keep the records of failed imports, instead of logging them."""
        log = get_logger()
        log.addFilter(self._is_logged)
        try:
            yield
        finally:
            log.removeFilter(self._is_logged)

    def _is_logged(self, record: logging.LogRecord) -> bool:
        is_held = bool(record.exc_info) and getattr(record, "is_finding", False)
        if is_held:
            self.records.append(record)
        return not is_held

    def set_aside(self) -> None:
        """Keep the records until the outcome of the next reload is known."""
        self._earlier += self.records
        self.records.clear()

    def log_unrepaired(self, broken: Collection[BrokenFile]) -> None:
        """Log the records of the last reload, and those of earlier ones that it has not repaired.

        Args:
            broken: the report of the last reload, which logs no failure of an earlier one again.
        """
        failures = {(one.cause, one.error) for one in broken}
        for record in [*(one for one in self._earlier if one.args in failures), *self.records]:
            get_logger().handle(record)
        self._earlier.clear()
        self.records.clear()
