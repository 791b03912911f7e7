"""The summary of a request for a developer at a terminal: short and coloured, below its line.

It uses the same writer as the request line, so the two keep their order. It is not a log record: no
handler, filter or file of the user receives it.
"""

from collections.abc import Sequence

from treefold_logging._escape import escape_log_field, escape_unprintable
from treefold_logging._logger import HANDLER
from treefold_logging._stream import supports_colour
from treefold_logging._writer import WRITER, find_standard_error

_COLOURS = {2: 32, 3: 36, 4: 33}
_RED = 31


def shows_summaries() -> bool:
    """Return True if summaries are visible: a terminal with colours, and the log as text."""
    return supports_colour(find_standard_error()) and not HANDLER.entry_formatter.as_json


def log_summary(
    method: str, target: str, status: int, *, seconds: float, notes: Sequence[str] = ()
) -> None:
    """Write a summary such as `200 GET /v1/book 3.1ms, 2 queries in 0.84ms`, in colour.

    Args:
        method: the method as sent; unsafe characters in it are escaped.
        target: the result of `request_target`.
        notes: further text; unsafe characters in it are escaped.
    """
    details = ", ".join([f"{seconds * 1000:.1f}ms", *map(escape_unprintable, notes)])
    colour = _COLOURS.get(status // 100, _RED)
    WRITER.add_entry(
        f"\x1b[{colour}m{status}\x1b[0m {escape_log_field(method)} {target} "
        f"\x1b[2m{details}\x1b[0m\n"
    )
