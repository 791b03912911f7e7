"""The form of entries (specification, 'Log line'; S-77, S-78, S-87)."""

import json
import logging
import re
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from treefold_logging._escape import TEXT_LIMIT
from treefold_logging._line import (
    TRACE_PREFIX,
    build_request_fields,
    format_json_entry,
    format_record_message,
    format_request_entry,
    format_request_message,
    format_text_entry,
    format_traceback,
    with_request_id,
)

FORGED = "\n[INFO] GET /v1/fake 200 1.00ms id=x payload={}\x1b[31m"


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


def fields(**parts: Any) -> dict[str, Any]:
    given_parts: dict[str, Any] = {"status": 200, "seconds": 0.00042, "payload": "-"}
    given_parts |= {"method": "GET", "target": "/v1/user", "request_id": "abc"}
    return build_request_fields(**(given_parts | parts))


def test_the_line_of_a_request_has_the_specified_form() -> None:
    assert (
        format_request_message(fields(), failed=False) == "GET /v1/user 200 0.42ms id=abc payload=-"
    )


def test_an_arrow_stands_before_the_status_of_an_unhandled_error() -> None:
    assert format_request_message(fields(status=500), failed=True).startswith(
        "GET /v1/user -> 500 "
    )


LINE = re.compile(
    r"\[(?P<level>[A-Z]+)\] (?P<method>[!-~]+) (?P<path>[!-~]+) (?P<status>\d+)"
    r" (?P<ms>\d+\.\d\d?)ms id=(?P<id>[!-~]+) payload=(?P<payload>.+)\n"
)


@given(st.text(), st.text(), st.integers(100, 4999), st.floats(0, 1e6), st.text(), st.text())
def test_s78_a_strict_parser_recovers_the_fields_of_any_request(
    method: str, target: str, status: int, seconds: float, request_id: str, payload: str
) -> None:
    parts = build_request_fields(
        method, target, status, seconds, request_id=request_id, payload=payload
    )
    entry = format_text_entry("INFO", format_request_message(parts, failed=False))
    match = LINE.fullmatch(entry)
    assert match is not None
    assert match["method"] == parts["method"]
    assert match["path"] == parts["path"]
    assert int(match["status"]) == status
    assert match["id"] == parts["request_id"]
    assert match["payload"] == parts["payload"]
    assert all(char >= " " for char in entry[:-1])


def test_s78_a_path_cannot_forge_the_fields_behind_it() -> None:
    parts = fields(target="/v1/x 200 1.0ms id=forged payload={}")
    match = LINE.fullmatch(format_text_entry("INFO", format_request_message(parts, failed=False)))
    assert match is not None
    assert match["id"] == "abc"
    assert match["path"] == "/v1/x%20200%201.0ms%20id=forged%20payload={}"


def test_s87_no_line_of_a_traceback_looks_like_a_line_of_the_log() -> None:
    error = ValueError(FORGED)
    error.add_note(FORGED)
    error.__cause__ = ExceptionGroup(FORGED, [KeyError(FORGED), OSError("\r\u2028[INFO]\x85")])
    entry = format_request_entry("ERROR", "x", fields=fields(), error=raised(error), as_json=False)
    first, *rest = entry.removesuffix("\n").split("\n")
    assert first.startswith("[ERROR] GET /v1/user -> 200 ")
    assert all(line.startswith(TRACE_PREFIX) for line in rest)
    assert all(line.isprintable() for line in rest)
    assert len(entry.splitlines()) == len(rest) + 1


def test_s87_a_traceback_tells_causes_groups_and_notes() -> None:
    error = ValueError("outer")
    error.add_note("a note")
    error.__cause__ = ExceptionGroup("several", [KeyError("one"), OSError("two")])
    text = format_traceback(raised(error))
    assert all(part in text for part in ("outer", "a note", "several", "one", "two", __file__))


@pytest.mark.parametrize(
    "message",
    ["postgresql://u:zz9zz@h/db", "host=h password=zz9zz", "Bearer zz9zz", "Set-Cookie: a=zz9zz"],
)
def test_s87_secrets_in_exceptions_are_scrubbed(message: str) -> None:
    error = ValueError(message)
    error.add_note(message)
    error.__context__ = ExceptionGroup(message, [ValueError(message)])
    text = format_traceback(error)
    assert "ValueError" in text
    assert "zz9zz" not in text


def test_s87_a_traceback_shows_no_locals() -> None:
    def fails() -> None:
        name = "".join(["local", "value"])
        raise ValueError(len(name))

    with pytest.raises(ValueError, match="10") as caught:
        fails()
    assert "localvalue" not in format_traceback(caught.value)


def test_an_exception_that_cannot_be_described_is_named() -> None:
    class Strange(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    error = Strange()
    error.__dict__["__notes__"] = 5
    assert "Strange" in format_traceback(error)


def test_a_huge_exception_is_cut() -> None:
    assert len(format_traceback(ValueError("x" * 10_000_000))) <= TEXT_LIMIT


def test_json_entries_are_one_object_on_one_line() -> None:
    entry = format_json_entry(
        "INFO", "treefold", values={"message": "a\n\x7f\u202e"}, created=1700000000.0625
    )
    assert entry.endswith("}\n")
    assert entry[:-1].isprintable()
    assert json.loads(entry) == {
        "time": "2023-11-14T22:13:20.062Z",
        "level": "INFO",
        "logger": "treefold",
        "message": "a\n\x7f\u202e",
    }


def test_a_request_in_json_has_its_fields_and_the_exception() -> None:
    entry = format_request_entry(
        "ERROR", "treefold", fields=fields(), error=raised(ValueError(FORGED)), as_json=True
    )
    got = json.loads(entry)
    assert entry.count("\n") == 1
    assert got.pop("time").endswith("Z")
    assert got.pop("exception").endswith(f"ValueError: {FORGED}")
    assert got == {
        "level": "ERROR",
        "logger": "treefold",
        "method": "GET",
        "path": "/v1/user",
        "status": 200,
        "duration_ms": 0.42,
        "request_id": "abc",
        "payload": "-",
    }


def record(message: Any, *args: Any) -> logging.LogRecord:
    return logging.LogRecord("treefold", logging.INFO, "", 0, message, args, None)


@pytest.mark.parametrize(
    ("message", "args", "shown"),
    [
        ("pw=%s", ("a\nb",), "pw=a\\nb"),
        ("token=%s", ("zz",), "token=***"),
        ("é 日本", (), "é 日本"),
        ("%d files", ("x",), "%d files (arguments do not fit the message: TypeError)"),
        (5, ("x",), "<int> (arguments do not fit the message: TypeError)"),
    ],
)
def test_s90_messages_are_scrubbed_and_escaped(message: Any, args: Any, shown: str) -> None:
    assert format_record_message(record(message, *args)) == shown


def test_a_huge_message_is_cut() -> None:
    assert len(format_record_message(record("x" * 10_000_000))) <= TEXT_LIMIT


def test_the_id_follows_the_message_inside_a_request_only() -> None:
    assert with_request_id("done", "a b") == "done id=a%20b"
    assert with_request_id("done", "-") == "done"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("X-Api-Key: 4f1c7f6a9d2b4e0f", "X-Api-Key: ***"),
        ("sent x-auth-token:abc, X-Page: 2", "sent x-auth-token:***, X-Page: 2"),
        ("Private-Token : 'a b' refused", "Private-Token : '***' refused"),
        ('X-Amz-Security-Token: "abc"', 'X-Amz-Security-Token: "***"'),
        ("X-CSRF-Token: a\nX-Other: b", "X-CSRF-Token: ***\nX-Other: b"),
        (
            "[(b'x-api-key', b'abc'), (b'x-page', b'2')]",
            "[(b'x-api-key', b'***'), (b'x-page', b'2')]",
        ),
        ("('X-Api-Key', 'abc')", "('X-Api-Key', '***')"),
        ("non-secret: a", "non-secret: ***"),
        ("Invalid password: too short", "Invalid password: too short"),
        ("at 2026-11-26: late", "at 2026-11-26: late"),
        ("X-Request-Id: abc", "X-Request-Id: abc"),
    ],
)
def test_s87_values_of_header_fields_are_scrubbed_from_exceptions(text: str, shown: str) -> None:
    written = format_traceback(raised(ValueError(text)))
    assert written.endswith(f"ValueError: {shown}")


def test_s88_scrubbing_of_header_fields_takes_linear_time() -> None:
    for part in ("a-", "X-Api-Key", "x-api-key:", "b'x-api-key', ", "a-b: ", "-" * 50, "\\"):
        began = time.process_time()
        format_traceback(ValueError(part * 20_000))
        assert time.process_time() - began < 0.5
