"""Write the line of each request, straight into the writer's buffer or as a record.

Runs for every request, so it is written for speed, without keyword-only parameters: no record is
made while the logger has only the framework's handler. Every condition is checked at each call,
because handlers, filters and levels may change at any time.
"""

import logging
from collections.abc import Sequence
from typing import Any

from treefold_logging._escape import Printable
from treefold_logging._line import (
    build_request_fields,
    format_request_entry,
    format_request_message,
    format_traceback,
    mark_traceback_lines,
)
from treefold_logging._logger import HANDLER, LOGGER, NAME, STAMP
from treefold_logging._target import request_target
from treefold_logging._writer import WRITER

LONGEST_PLAIN = 200
"""Characters of method, target and id together up to which no part must be shortened."""

_INFO = logging.INFO
_ERROR = logging.ERROR
_FIRST_CLOSE_CODE = 1000
_INTERNAL_ERROR = 1011


class _Durations(dict[int, str]):
    """Milliseconds by hundredths; formatting a float costs as much as half of the line."""

    def __missing__(self, hundredths: int) -> str:
        text = f"{hundredths / 100:.2f}"
        if 0 <= hundredths < 5_000:
            self[hundredths] = text
        return text


_DURATIONS = _Durations()
_OUR_HANDLERS: list[logging.Handler] = [HANDLER]
_OUR_FILTERS: list[logging.Filter] = [STAMP]
_FORMATTER = HANDLER.entry_formatter
_is_enabled = LOGGER.isEnabledFor
_add = WRITER.add_entry


def log_sent_request(
    method: str,
    raw_path: bytes,
    query_string: bytes,
    masked_segments: Sequence[int],
    status: int,
    seconds: float,
    request_id: str,
    payload: str = "-",
    error: BaseException | None = None,
) -> None:
    """Write the line of a request by the parts of its target as they were sent.

    Arguments as those of `request_target` and `log_request`, and the line is theirs; that of a
    short target without anything to hide or escape is written here. For a level that is enabled:
    the caller has asked before it made the arguments.
    """
    if not query_string and not masked_segments and status < 500 and error is None:
        path = raw_path.decode("latin-1")
        plain = f"{method} {path} {request_id}"
        if (
            plain.isascii()
            and plain.isprintable()
            and plain.count(" ") == 2  # no part has one of its own
            and len(plain) <= LONGEST_PLAIN
            and path[:1] == "/"
            # of these a part of a path with a secret has one (`request_target`)
            and not ("%" in path or ":" in path or "eyJ" in path)
            and (payload == "-" or type(payload) is Printable)
            and method
            and request_id
            and not _FORMATTER.as_json
            and _is_written_by_us_alone(_INFO)
        ):
            _add(
                f"[INFO] {method} {path} {status} {_DURATIONS[int(seconds * 100_000 + 0.5)]}ms"
                f" id={request_id} payload={payload}\n"
            )
            return
    target = request_target(raw_path, query_string, masked_segments)
    log_request(method, target, status, seconds, request_id, payload, error)


def _is_written_by_us_alone(level: int) -> bool:
    """Return True if no handler, filter or formatter of the user needs a record of this level."""
    return (
        LOGGER.handlers == _OUR_HANDLERS
        and LOGGER.filters == _OUR_FILTERS
        and HANDLER.formatter is _FORMATTER
        and not (LOGGER.propagate or HANDLER.filters or HANDLER.level > level)
    )


def log_request(
    method: str,
    target: str,
    status: int,
    seconds: float,
    request_id: str,
    payload: str = "-",
    error: BaseException | None = None,
) -> None:
    """Write the line of a request: `[INFO] GET /v1/user 200 0.42ms id=... payload=-`.

    Args:
        method: the method as sent, or WEBSOCKET.
        target: the result of `request_target`; unsafe characters in any part are escaped.
        status: the status of the response, or the close code of a socket.
        seconds: duration of the request.
        request_id: the id of the request.
        payload: the result of `json_payload`, `form_payload` or `opaque_payload`.
        error: an unhandled exception; its traceback follows the line.

    The level is INFO, or ERROR from status 500, for close code 1011, and with an error. A line at
    ERROR is written to the operating system before the return.
    """
    level = _INFO if status < 500 and error is None else _choose_level_by_status(status, error)
    if not _is_enabled(level):
        return
    if not _is_written_by_us_alone(level):
        fields = build_request_fields(
            method, target, status, seconds, request_id=request_id, payload=payload
        )
        _log_request_record(level, fields, error)
        return
    plain = f"{method}{target}{request_id}"
    if (
        level == _INFO
        and not _FORMATTER.as_json
        and plain.isascii()
        and plain.isprintable()
        and " " not in plain
        and len(plain) <= LONGEST_PLAIN
        and (payload == "-" or type(payload) is Printable)
        and method
        and target
        and request_id
    ):
        _add(
            f"[INFO] {method} {target} {status} {_DURATIONS[int(seconds * 100_000 + 0.5)]}ms"
            f" id={request_id} payload={payload}\n"
        )
        return
    fields = build_request_fields(
        method, target, status, seconds, request_id=request_id, payload=payload
    )
    entry = format_request_entry(
        logging.getLevelName(level), NAME, fields=fields, error=error, as_json=_FORMATTER.as_json
    )
    (_add if level < _ERROR else WRITER.add_and_write)(entry)


def _choose_level_by_status(status: int, error: BaseException | None) -> int:
    if error is None and status >= _FIRST_CLOSE_CODE and status != _INTERNAL_ERROR:
        return _INFO  # close codes of sockets are no statuses of HTTP
    return _ERROR


def _log_request_record(level: int, fields: dict[str, Any], error: BaseException | None) -> None:
    message = format_request_message(fields, failed=error is not None)
    raised = None if error is None else (type(error), error, error.__traceback__)
    record = LOGGER.makeRecord(NAME, level, "", 0, message, (), raised)
    record.__dict__.update(fields, is_request_line=True)
    if error is not None:
        # Formatters of other handlers take this text and do not format the traceback themselves.
        record.exc_text = mark_traceback_lines(format_traceback(error))
    try:
        LOGGER.handle(record)
    except Exception as failure:  # a filter or handler of the user; the request must not fail
        HANDLER.emit(record)
        HANDLER.emit(_make_handler_failure_record(failure))


def _make_handler_failure_record(failure: Exception) -> logging.LogRecord:
    message = f"A handler or filter of logger {NAME!r} failed; mend it or take it off the logger"
    raised = (type(failure), failure, failure.__traceback__)
    return LOGGER.makeRecord(NAME, _ERROR, "", 0, message, (), raised)
