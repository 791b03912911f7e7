"""The logger `treefold` and its settings (rulings, 'Log line'; S-90)."""

import asyncio
import contextvars
import json
import logging
import threading
from collections.abc import Callable

import pytest

from treefold_logging import configure, flush, get_logger, request_id
from treefold_logging._context import OUTSIDE

Lines = Callable[[], list[str]]


class Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def test_the_logger_is_a_standard_one() -> None:
    assert get_logger() is logging.getLogger("treefold")
    assert type(get_logger()) is logging.Logger
    assert get_logger("jobs") is logging.getLogger("treefold.jobs")
    assert get_logger("treefold.jobs") is get_logger("jobs")
    assert get_logger("treefold") is get_logger()


def test_asking_for_the_logger_again_installs_nothing_twice() -> None:
    for _ in range(3):
        get_logger()
        get_logger("again")
    assert len(get_logger().handlers) == 1
    assert len(get_logger("again").filters) == 1


def test_records_do_not_reach_the_root_logger_unless_asked(lines: Lines) -> None:
    collector = Collector()
    logging.getLogger().addHandler(collector)
    try:
        get_logger().info("one")
        get_logger().propagate = True
        get_logger().info("two")
    finally:
        logging.getLogger().removeHandler(collector)
    assert [record.getMessage() for record in collector.records] == ["two"]
    assert lines() == ["[INFO] one", "[INFO] two"]


def test_s90_records_are_one_line_escaped_and_scrubbed(lines: Lines) -> None:
    get_logger().info("pw=%s é", "a\nb")
    get_logger("db").warning("no connection to %s", "postgres://u:zz@h")
    assert lines() == ["[INFO] pw=a\\nb é", "[WARNING] no connection to postgres://u:***@h"]


def test_the_id_of_the_request_follows_the_message(lines: Lines) -> None:
    token = request_id.set("abc")
    get_logger().info("inside")
    request_id.reset(token)
    get_logger().info("outside")
    assert lines() == ["[INFO] inside id=abc", "[INFO] outside"]


def test_tasks_and_threads_started_in_a_request_carry_its_id(lines: Lines) -> None:
    async def request() -> None:
        request_id.set("abc")
        await asyncio.create_task(asyncio.to_thread(get_logger("job").info, "done"))

    asyncio.run(request())
    assert lines() == ["[INFO] done id=abc"]


def test_every_record_has_the_id_where_user_handlers_see_it() -> None:
    collector = Collector()
    get_logger().addHandler(collector)
    get_logger("child").info("a")
    contextvars.copy_context().run(lambda: (request_id.set("abc"), get_logger().info("b")))
    assert [vars(record)["request_id"] for record in collector.records] == [OUTSIDE, "abc"]


def test_foreign_loggers_are_left_alone() -> None:
    collector = Collector()
    logger = logging.getLogger("foreign")
    logger.addHandler(collector)
    logger.warning("a")
    logger.removeHandler(collector)
    assert not hasattr(collector.records[0], "request_id")
    assert not logger.filters


def test_s87_exceptions_of_user_code_follow_marked_and_scrubbed(lines: Lines) -> None:
    try:
        raise ValueError("\n[INFO] GET /v1/fake 200 token=zz9zz")
    except ValueError:
        get_logger().exception("failed")
    first, *rest = lines()
    assert first == "[ERROR] failed"
    assert all(line.startswith("    | ") for line in rest)
    assert "zz9zz" not in "".join(rest)
    assert rest[-1] == "    | [INFO] GET /v1/fake 200 token=***"


def test_a_stack_is_shown_like_a_traceback(lines: Lines) -> None:
    get_logger().info("here", stack_info=True)
    first, *rest = lines()
    assert first == "[INFO] here"
    assert rest[0] == "    | Stack (most recent call last):"


def test_a_stack_is_scrubbed_and_follows_the_traceback(lines: Lines) -> None:
    record = logging.LogRecord("treefold", logging.INFO, "", 0, "a", (), None)
    record.exc_text, record.stack_info = "Error: token=zz9zz", "Stack: pin=zz9zz"
    get_logger().handle(record)
    assert lines() == ["[INFO] a", "    | Error: token=***", "    | Stack: pin=***"]


def test_an_empty_exc_info_adds_nothing(lines: Lines) -> None:
    get_logger().error("a", exc_info=True)
    assert lines() == ["[ERROR] a"]


def test_errors_are_written_when_the_call_returns(capsys: pytest.CaptureFixture[str]) -> None:
    get_logger().info("first")
    get_logger().error("second")
    assert capsys.readouterr().err == "[INFO] first\n[ERROR] second\n"


def test_user_filters_work(lines: Lines) -> None:
    get_logger().addFilter(lambda record: "secret" not in record.getMessage())
    get_logger().info("a secret")
    get_logger().info("plain")
    assert lines() == ["[INFO] plain"]


def test_a_formatter_of_the_user_is_used(lines: Lines) -> None:
    get_logger().handlers[0].setFormatter(logging.Formatter("<%(message)s>"))
    get_logger().info("a")
    assert lines() == ["<a>"]


def test_a_record_that_cannot_be_formatted_is_reported_by_logging(lines: Lines) -> None:
    get_logger().handlers[0].setFormatter(logging.Formatter("%(absent)s"))
    get_logger().info("a")
    assert "KeyError: 'absent'" in lines()


@pytest.mark.parametrize("level", ["WARNING", "warning", " Warning ", logging.WARNING])
def test_the_level_can_be_set_by_name_or_number(level: int | str, lines: Lines) -> None:
    configure(level=level)
    get_logger().info("a")
    get_logger().warning("b")
    configure()
    get_logger().warning("c")
    assert lines() == ["[WARNING] b", "[WARNING] c"]


def test_json_is_one_object_per_line(lines: Lines) -> None:
    configure(log_format="json")
    request_id.set("abc")
    try:
        get_logger("db").info("a\nb")
        get_logger().error("c", exc_info=ValueError("d"))
    finally:
        request_id.set(OUTSIDE)
    first, second = [json.loads(line) for line in lines()]
    assert first.pop("time")[10] == "T"
    assert first == {
        "level": "INFO",
        "logger": "treefold.db",
        "message": "a\\nb",
        "request_id": "abc",
    }
    assert second["exception"] == "ValueError: d"


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^Unknown log format 'xml'; use 'text' or 'json'$"):
        configure(log_format="xml")  # pyright: ignore[reportArgumentType]  # that is the test


def test_an_unknown_level_is_refused_and_nothing_is_changed(lines: Lines) -> None:
    message = r"^Unknown log level 'LOUD'; use a name such as 'INFO', or a number$"
    with pytest.raises(ValueError, match=message):
        configure(log_format="json", level="LOUD")
    get_logger().info("a")
    assert lines() == ["[INFO] a"]


def test_flushing_waits_for_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1000):
        get_logger().info("%d", number)
    assert flush()
    assert len(capsys.readouterr().err.splitlines()) == 1000


def test_lines_go_to_descriptor_2_where_standard_error_has_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    get_logger().info("a")
    assert flush()
    assert capfd.readouterr().err == "[INFO] a\n"


def test_logging_from_threads_loses_nothing(lines: Lines) -> None:
    def work() -> None:
        for number in range(200):
            get_logger().log(logging.ERROR if number % 50 == 0 else logging.INFO, "%d", number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines()) == 800
