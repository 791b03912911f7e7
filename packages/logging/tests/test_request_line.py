"""The line of a request, its short way and its record (specification and rulings, 'Log line')."""

import io
import json
import logging
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from treefold_logging import (
    configure,
    flush,
    form_payload,
    get_logger,
    json_payload,
    log_request,
    request_target,
)

Lines = Callable[[], list[str]]
Change = Callable[[logging.Logger], object]


class Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def log(status: int = 200, **parts: Any) -> None:
    given_parts: dict[str, Any] = {"request_id": "abc"} | parts
    log_request("GET", "/v1/user", status, 0.00042, **given_parts)


def failing() -> ValueError:
    try:
        raise ValueError("token=zz9zz")
    except ValueError as error:
        return error


def test_the_line_has_the_specified_form(lines: Lines) -> None:
    log()
    log_request("POST", "/a?b=1", 201, 1.2345, request_id="x", payload=json_payload({"a": 1}))
    assert lines() == [
        "[INFO] GET /v1/user 200 0.42ms id=abc payload=-",
        '[INFO] POST /a?b=1 201 1234.50ms id=x payload={"a":1}',
    ]


@pytest.mark.parametrize(
    ("status", "level"),
    [
        *((101, "INFO"), (200, "INFO"), (404, "INFO"), (499, "INFO"), (500, "ERROR")),
        *((503, "ERROR"), (599, "ERROR"), (1000, "INFO"), (1001, "INFO"), (1008, "INFO")),
        *((1011, "ERROR"), (1012, "INFO"), (4000, "INFO")),
    ],
)
def test_the_level_follows_the_status_or_close_code(status: int, level: str, lines: Lines) -> None:
    log(status)
    assert lines() == [f"[{level}] GET /v1/user {status} 0.42ms id=abc payload=-"]


def test_an_unhandled_error_has_an_arrow_and_its_traceback(lines: Lines) -> None:
    log(500, error=failing())
    first, *rest = lines()
    assert first == "[ERROR] GET /v1/user -> 500 0.42ms id=abc payload=-"
    assert rest[0] == "    | Traceback (most recent call last):"
    assert rest[-1] == "    | ValueError: token=***"


def test_a_status_of_500_alone_has_neither(lines: Lines) -> None:
    log(500)
    assert lines() == ["[ERROR] GET /v1/user 500 0.42ms id=abc payload=-"]


def test_s91_an_error_line_is_written_when_the_call_returns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log()
    log(500)
    assert [line[:7] for line in capsys.readouterr().err.splitlines()] == ["[INFO] ", "[ERROR]"]


def test_a_line_below_the_level_is_not_written(lines: Lines) -> None:
    get_logger().setLevel(logging.ERROR)
    log()
    log(500)
    logging.disable(logging.CRITICAL)
    log(500)
    logging.disable(logging.NOTSET)
    get_logger().disabled = True
    log(500)
    get_logger().disabled = False
    assert len(lines()) == 1


def add_handler(logger: logging.Logger) -> None:
    logger.addHandler(logging.NullHandler())


def add_filter(logger: logging.Logger) -> None:
    logger.addFilter(lambda record: True)


def add_filter_to_handler(logger: logging.Logger) -> None:
    logger.handlers[0].addFilter(lambda record: True)


def propagate(logger: logging.Logger) -> None:
    logger.propagate = True


CHANGES: list[Change] = [add_handler, add_filter, add_filter_to_handler, propagate]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"payload": json_payload({"a": "x y"})},
        {"payload": "free \n text"},
        {"request_id": "a b"},
        {"status": 404, "payload": form_payload([("auth=x", "y")])},
        {"status": 500, "error": failing()},
    ],
)
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_as_a_record_the_line_is_the_same(
    change: Change, parts: dict[str, Any], log_format: Any, lines: Lines
) -> None:
    configure(log_format=log_format)
    log(**parts)
    change(get_logger())
    log(**parts)
    written = [re.sub(r'"time":"[^"]*"', "", line) for line in lines()]
    half = len(written) // 2
    assert written[:half] == written[half:] != []


def test_a_user_handler_gets_a_record_with_the_fields(lines: Lines) -> None:
    collector = Collector()
    get_logger().addHandler(collector)
    log_request("GET", "/a b", 500, 0.5, request_id="abc", payload="{}", error=failing())
    (record,) = collector.records
    assert record.getMessage() == "GET /a%20b -> 500 500.00ms id=abc payload={}"
    assert record.levelname == "ERROR"
    shown = {name: vars(record)[name] for name in ("method", "path", "status", "duration_ms")}
    assert shown == {"method": "GET", "path": "/a%20b", "status": 500, "duration_ms": 500.0}
    assert vars(record)["request_id"] == "abc"
    assert vars(record)["payload"] == "{}"
    assert record.exc_info is not None
    assert len(lines()) > 1


def test_s87_other_handlers_get_the_scrubbed_traceback() -> None:
    stream = io.StringIO()
    get_logger().addHandler(logging.StreamHandler(stream))
    log(500, error=failing())
    assert "    | ValueError: token=***" in stream.getvalue()
    assert "zz9zz" not in stream.getvalue()


def test_a_user_filter_may_stop_or_change_a_line(lines: Lines) -> None:
    def judge(record: logging.LogRecord) -> bool:
        record.msg = str(record.msg).replace("user", "someone")
        return vars(record)["status"] != 404

    get_logger().addFilter(judge)
    log(200)
    log(404)
    assert lines() == ["[INFO] GET /v1/someone 200 0.42ms id=abc payload=-"]


def test_a_user_filter_that_fails_costs_no_request_and_is_reported(lines: Lines) -> None:
    def broken(record: logging.LogRecord) -> bool:
        raise RuntimeError("broken filter")

    get_logger().addFilter(broken)
    log()
    first, second, *rest = lines()
    assert first == "[INFO] GET /v1/user 200 0.42ms id=abc payload=-"
    assert second == (
        "[ERROR] A handler or filter of logger 'treefold' failed; mend it or take it off the logger"
    )
    assert rest[-1] == "    | RuntimeError: broken filter"


def test_without_our_handler_our_line_is_not_written(lines: Lines) -> None:
    collector = Collector()
    get_logger().handlers[:] = [collector]
    log()
    assert lines() == []
    assert len(collector.records) == 1


def test_the_level_of_our_handler_counts(lines: Lines) -> None:
    get_logger().handlers[0].setLevel(logging.ERROR)
    log()
    log(500)
    assert len(lines()) == 1


def test_a_formatter_of_the_user_formats_request_lines_too(lines: Lines) -> None:
    get_logger().handlers[0].setFormatter(logging.Formatter("%(status)d %(path)s"))
    log()
    assert lines() == ["200 /v1/user"]


def test_json_has_the_fields_of_the_request(lines: Lines) -> None:
    configure(log_format="json")
    log(payload=json_payload({"pin": 1}))
    got = json.loads(lines()[0])
    assert got.pop("time").endswith("Z")
    assert got == {
        "level": "INFO",
        "logger": "treefold",
        "method": "GET",
        "path": "/v1/user",
        "status": 200,
        "duration_ms": 0.42,
        "request_id": "abc",
        "payload": '{"pin":"***"}',
    }


LINE = re.compile(
    r"\[INFO\] (?P<method>[!-~]+) (?P<path>[!-~]+) 200 0\.42ms"
    r" id=(?P<id>[!-~]+) payload=(?P<payload>.+)\n"
)
HOSTILE = st.text() | st.sampled_from(
    [
        "\n[INFO] GET / 200 1ms id=x payload=-",
        " 200 1ms id=y payload={}",
        "",
        " ",
        "\x1b[2J",
        "\x85",
    ]
)


@given(HOSTILE, st.binary(), st.binary(), HOSTILE, HOSTILE)
def test_s77_s78_any_request_gives_one_line_that_parses_to_its_fields(
    method: str, raw_path: bytes, query: bytes, request_id: str, payload: str
) -> None:
    saved, sys.stderr = sys.stderr, io.StringIO()
    try:
        target = request_target(raw_path, query)
        log_request(method, target, 200, 0.00042, request_id=request_id, payload=payload)
        flush()
        written = sys.stderr.getvalue()
    finally:
        sys.stderr = saved
    match = LINE.fullmatch(written)
    assert match is not None
    assert match["path"] == target
    assert all(char >= " " for char in written[:-1])
    assert not re.search("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", written)


def test_requests_of_many_threads_each_give_their_line(lines: Lines) -> None:
    def work(name: int) -> None:
        for number in range(300):
            log(500 if number % 100 == 0 else 200, request_id=f"{name}-{number}")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [line.split("id=")[1].split()[0] for line in lines()]
    for name in range(4):
        mine = [one for one in ids if one.startswith(f"{name}-")]
        assert mine == [f"{name}-{number}" for number in range(300)]
