"""The logger `treefold`: its handler, its format, its level.

A standard logger with one handler of the framework, which formats records and passes entries to the
writer. Lines are made in `_line` and written in `_writer`; request lines arrive through
`_request_line`, which makes no record unless a handler or filter of the user needs one.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal

from treefold_logging._context import request_id
from treefold_logging._escape import escape_unprintable
from treefold_logging._line import (
    format_json_entry,
    format_record_message,
    format_text_entry,
    format_traceback,
    scrub_secrets_and_shorten,
    with_exception,
    with_request_id,
)
from treefold_logging._payload import set_payload_encoder
from treefold_logging._words import add_sensitive_words
from treefold_logging._writer import WRITER, Writer, format_text_drop_notice

NAME = "treefold"
FORMATS = ("text", "json")
REQUEST_FIELDS = ("method", "path", "status", "duration_ms", "request_id", "payload")
"""Attributes of the record of a request line, and the names of its fields in JSON."""


class EntryFormatter(logging.Formatter):
    """Formats a record as one entry: escaped to one line, scrubbed, the traceback marked."""

    def __init__(self) -> None:
        super().__init__()
        self.as_json = False

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry of a record; that of a request line is the same as without a record."""
        own = record.__dict__
        identity = str(own.get("request_id", request_id.get()))
        error = _format_record_traceback(record)
        is_request = own.get("is_request_line", False)
        message = (
            escape_unprintable(record.getMessage()) if is_request else format_record_message(record)
        )
        if not self.as_json:
            message = message if is_request else with_request_id(message, identity)
            return format_text_entry(record.levelname, message, error=error)
        values: dict[str, Any] = {"message": message, "request_id": identity}
        if is_request:
            values = {name: own[name] for name in REQUEST_FIELDS}
        values = with_exception(values, error)
        return format_json_entry(
            record.levelname, record.name, values=values, created=record.created
        )


class EntryHandler(logging.Handler):
    """Hands formatted records to the writer; from ERROR upwards they are written at once."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self.writer = writer
        self.entry_formatter = EntryFormatter()
        self.setFormatter(self.entry_formatter)

    def emit(self, record: logging.LogRecord) -> None:
        """Format a record and add it to the buffer."""
        try:
            entry = self.format(record)
            entry = entry if entry.endswith("\n") else f"{entry}\n"  # a formatter of the user
            is_error = record.levelno >= logging.ERROR
            add = self.writer.add_and_write if is_error else self.writer.add_entry
            add(entry)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Write the buffered entries."""
        self.writer.write_buffered(5.0)


class _RequestIdFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.__dict__.setdefault("request_id", request_id.get())
        return True


HANDLER = EntryHandler(WRITER)
STAMP = _RequestIdFilter()


def _set_up_treefold_logger() -> logging.Logger:
    logger = logging.getLogger(NAME)
    logger.addFilter(STAMP)
    logger.addHandler(HANDLER)
    logger.propagate = False
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    return logger


LOGGER = _set_up_treefold_logger()


def get_logger(name: str | None = None) -> logging.Logger:
    """Return the logger `treefold`, or with a name its child `treefold.<name>`.

    A standard `logging.Logger`, which accepts handlers, filters and levels. Its records carry
    `request_id` and are written by the framework's handler, masked like every line. They do not
    propagate to the root logger unless `propagate` is set.
    """
    if name is None or name == NAME:
        return LOGGER
    child = logging.getLogger(name if name.startswith(f"{NAME}.") else f"{NAME}.{name}")
    child.addFilter(STAMP)  # filters do not reach down to children; adding it again changes nothing
    return child


def configure(
    *,
    log_format: Literal["text", "json"] = "text",
    level: int | str | None = None,
    json_encoder: Callable[[Any], bytes] | None = None,
    sensitive_words: Iterable[str] = (),
) -> None:
    """Set the form of the lines, the level of the logger, and further words to mask.

    Args:
        log_format: `text`, or `json` for one object per line.
        level: a level of the standard library, by number or by name in any case; None keeps it.
        json_encoder: writes payloads faster than the standard library's encoder; see `_payload`.
        sensitive_words: words of keys whose values are masked too, wherever they occur in a key;
            words of earlier calls stay.

    Raises ValueError for an unknown form or level, or a word without letters. May be called again;
    the last call counts.
    """
    if log_format not in FORMATS:
        raise ValueError(f"Unknown log format {log_format!r}; use 'text' or 'json'")
    add_sensitive_words(sensitive_words)
    if level is not None:
        LOGGER.setLevel(_parse_level(level))
    set_payload_encoder(json_encoder)
    HANDLER.entry_formatter.as_json = log_format == "json"
    WRITER.notice = _format_json_drop_notice if log_format == "json" else format_text_drop_notice


def flush(timeout: float = 5.0) -> bool:
    """Wait until every line logged so far is written to the operating system.

    Returns False when the stream failed or did not accept them in time; they are kept or counted.
    """
    return WRITER.write_buffered(timeout)


def _parse_level(level: int | str) -> int:
    if isinstance(level, int):
        return level
    number = logging.getLevelNamesMapping().get(level.strip().upper())
    if number is None:
        raise ValueError(f"Unknown log level {level!r}; use a name such as 'INFO', or a number")
    return number


def _format_record_traceback(record: logging.LogRecord) -> str | None:
    error = record.exc_info[1] if record.exc_info else None
    # A record from a queue has only the text.
    text = (
        scrub_secrets_and_shorten(record.exc_text or "")
        if error is None
        else format_traceback(error)
    )
    return (
        "\n".join(filter(None, (text, scrub_secrets_and_shorten(record.stack_info or "")))) or None
    )


def _format_json_drop_notice(dropped: int) -> str:
    values = {"message": "Log lines were lost", "dropped": dropped}
    return format_json_entry("WARNING", NAME, values=values, created=time.time())
