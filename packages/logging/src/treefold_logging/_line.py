"""The lines of the log: requests, records of user code, dropped lines; as text or as JSON.

Pure functions from values to one entry that ends in a line feed. An entry is one line, in text form
followed by the lines of a traceback, which are marked so that none can pass for a log line (S-87).
Where entries go, and which are wanted, is decided elsewhere.
"""

import json
import logging
import time
import traceback
from collections.abc import Mapping
from typing import Any

from treefold_logging._context import OUTSIDE
from treefold_logging._escape import (
    PAYLOAD_LIMIT,
    TEXT_LIMIT,
    Printable,
    escape_log_field,
    escape_unprintable,
    shorten_text,
)
from treefold_logging._mask import describe_value_type
from treefold_logging._scrub import scrub, scrub_header_values

TRACE_PREFIX = "    | "
"""Opens every line of a traceback."""

LONGEST_METHOD = 64
LONGEST_ID = 128

_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def build_request_fields(
    method: str, target: str, status: int, seconds: float, *, request_id: str, payload: str
) -> dict[str, Any]:
    """Return the parts of a request line by name, each safe to stand in it.

    Takes them in the order of `log_request`; each may come from a client. Fields are escaped so
    that a space ends them and nothing else does; the payload, last on the line, may hold spaces.
    """
    if type(payload) is not Printable:
        payload = shorten_text(escape_unprintable(payload), PAYLOAD_LIMIT) or "-"
    return {
        "method": escape_log_field(method, LONGEST_METHOD),
        "path": escape_log_field(target),
        "status": int(status),
        "duration_ms": round(seconds * 1000, 2),
        "request_id": escape_log_field(request_id, LONGEST_ID),
        "payload": payload,
    }


def format_request_message(fields: Mapping[str, Any], *, failed: bool) -> str:
    """Return the line of a request without its level: `GET /v1/user 200 0.42ms id=... payload=-`.

    `->` stands before the status when an exception was not handled.
    """
    arrow = "-> " if failed else ""
    return (
        f"{fields['method']} {fields['path']} {arrow}{fields['status']}"
        f" {fields['duration_ms']:.2f}ms id={fields['request_id']} payload={fields['payload']}"
    )


def format_request_entry(
    level: str, logger: str, *, fields: dict[str, Any], error: BaseException | None, as_json: bool
) -> str:
    """Return the whole entry of a request, as text or as JSON, with its traceback if any."""
    text = None if error is None else format_traceback(error)
    if not as_json:
        message = format_request_message(fields, failed=text is not None)
        return format_text_entry(level, message, error=text)
    values = with_exception(fields, text)
    return format_json_entry(level, logger, values=values, created=time.time())


def format_traceback(error: BaseException) -> str:
    """Return the traceback of an exception with causes, groups and notes: scrubbed, no locals."""
    try:
        text = "".join(traceback.format_exception(error)).rstrip("\n")
    except Exception:  # an exception may fail to describe itself
        text = f"{type(error).__name__}: <traceback cannot be shown>"
    return scrub_secrets_and_shorten(text)


def scrub_secrets_and_shorten(text: str) -> str:
    """Return a text of any length scrubbed and within the limit of messages and tracebacks."""
    # Cut twice: before, to bound the work; after, so that no half of a secret is left at the end.
    return shorten_text(scrub_header_values(scrub(text[: 2 * TEXT_LIMIT])), TEXT_LIMIT)


def mark_traceback_lines(text: str) -> str:
    """Return the lines of a traceback, each marked and free of control characters."""
    lines = text.split("\n")
    return "\n".join([f"{TRACE_PREFIX}{escape_unprintable(line)}" for line in lines])


def format_text_entry(level: str, message: str, *, error: str | None = None) -> str:
    """Return an entry in text form; `error` is the text of a traceback."""
    follow = "" if error is None else f"{mark_traceback_lines(error)}\n"
    return f"[{level}] {message}\n{follow}"


def format_json_entry(level: str, logger: str, *, values: Mapping[str, Any], created: float) -> str:
    """Return an entry in JSON form: one object on one line, the time in UTC as ISO 8601."""
    seconds, milliseconds = divmod(int(created * 1000), 1000)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    entry = {"time": f"{stamp}.{milliseconds:03d}Z", "level": level, "logger": logger, **values}
    return _encode(entry).replace("\x7f", "\\u007f") + "\n"


def with_exception(values: dict[str, Any], error: str | None) -> dict[str, Any]:
    """Return the values of a JSON entry with the text of a traceback, where there is one."""
    return values if error is None else {**values, "exception": error}


def format_record_message(record: logging.LogRecord) -> str:
    """Return the message of a record of user code, scrubbed, on one line.

    Arguments that do not fit the message are named, not raised: a log must not break its caller.
    """
    try:
        message = record.getMessage()
    except Exception as problem:
        shown = record.msg if type(record.msg) is str else describe_value_type(record.msg)
        message = f"{shown} (arguments do not fit the message: {type(problem).__name__})"
    return shorten_text(escape_unprintable(scrub_secrets_and_shorten(message)), TEXT_LIMIT)


def with_request_id(message: str, request_id: str) -> str:
    """Return the message with the id of the request behind it; outside a request unchanged."""
    if request_id == OUTSIDE:
        return message
    return f"{message} id={escape_log_field(request_id, LONGEST_ID)}"
