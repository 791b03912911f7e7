"""The buffer and its thread (rulings, 'Log line'; S-91, R-06)."""

import io
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from treefold_logging._writer import (
    FAST_PATH_CHARS,
    FAST_PATH_LINES,
    MAX_CHARS,
    MAX_LINES,
    UNCOUNTED_CHARS,
    URGENT_TIMEOUT,
    WAKE_AT_LINES,
    Writer,
    format_text_drop_notice,
)


class Disk(io.StringIO):
    """A text stream that can be full, or closed for a while by a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.lock = threading.Lock()
        self.writing = threading.Event()

    def write(self, text: str, /) -> int:
        self.writing.set()
        with self.lock:
            if self.full:
                raise OSError("No space left on device")
            return super().write(text)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def writer(disk: Disk) -> Iterator[Writer]:
    writer = Writer(lambda: disk)
    yield writer
    with suppress(RuntimeError):
        disk.lock.release()
    writer.close()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        threading.Event().wait(0.001)


def test_the_thread_writes_what_was_added_in_order(writer: Writer, disk: Disk) -> None:
    expected = "".join(f"{number}\n" for number in range(500))
    for number in range(500):
        writer.add_entry(f"{number}\n")
    until(lambda: disk.getvalue() == expected)


def test_the_thread_rests_when_idle_and_the_next_entry_wakes_it(writer: Writer, disk: Disk) -> None:
    before = set(threading.enumerate())
    writer.add_entry("a\n")
    until(lambda: disk.getvalue() == "a\n" and writer.is_thread_idle)
    (thread,) = set(threading.enumerate()) - before
    writer.add_entry("b\n")
    until(lambda: disk.getvalue() == "a\nb\n" and writer.is_thread_idle)
    assert set(threading.enumerate()) - before == {thread}


def test_no_thread_is_started_before_the_first_entry() -> None:
    before = threading.active_count()
    assert Writer(io.StringIO).write_buffered(0)
    assert threading.active_count() == before


def test_an_urgent_entry_is_written_at_once_behind_the_earlier_ones(
    writer: Writer, disk: Disk
) -> None:
    writer.add_entry("a\n")
    writer.add_and_write("b\n")
    assert disk.getvalue() == "a\nb\n"


def test_draining_says_whether_everything_was_taken(writer: Writer, disk: Disk) -> None:
    writer.add_entry("a\n")
    assert writer.write_buffered(1)
    disk.full = True
    writer.add_entry("b\n")
    assert not writer.write_buffered(1)


def test_s91_a_full_buffer_drops_entries_and_says_how_many(writer: Writer, disk: Disk) -> None:
    disk.lock.acquire()
    writer.add_entry("first\n")
    until(disk.writing.is_set)
    for number in range(MAX_LINES + 7):
        writer.add_entry(f"{number}\n")
    assert len(writer.entries) == MAX_LINES
    disk.lock.release()
    until(lambda: "dropped" in disk.getvalue())
    written = disk.getvalue().splitlines()
    assert written[:2] == ["first", "0"]
    assert written[-1] == "[WARNING] Log lines were lost dropped=7"
    assert len(written) == MAX_LINES + 2


def test_long_entries_are_bounded_by_their_characters(writer: Writer, disk: Disk) -> None:
    disk.lock.acquire()
    writer.add_entry("first\n")
    until(disk.writing.is_set)
    entry = "x" * 65_536 + "\n"
    for _ in range(1000):
        writer.add_entry(entry)
    writer.add_entry("short\n")
    assert sum(map(len, writer.entries)) <= MAX_CHARS
    assert writer.entries[-1] == "short\n"
    disk.lock.release()
    assert writer.write_buffered(5)
    assert "dropped=" in disk.getvalue()
    writer.add_entry(entry)
    assert writer.write_buffered(5)
    assert disk.getvalue().endswith(entry)


def test_a_crowded_buffer_does_not_wait_for_the_interval(
    writer: Writer, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treefold_logging._writer.BATCH_SECONDS", 3600)
    for number in range(WAKE_AT_LINES + 1):
        writer.add_entry(f"{number}\n")
    until(lambda: disk.getvalue().endswith(f"\n{WAKE_AT_LINES}\n"))
    writer.reset_state()  # leaves the thread, which waits for an hour


def test_r06_a_full_disk_costs_lines_and_recovers_by_itself(writer: Writer, disk: Disk) -> None:
    disk.full = True
    for _ in range(3):
        writer.add_and_write("lost\n")
    disk.full = False
    writer.add_and_write("kept\n")
    writer.add_and_write("next\n")
    assert disk.getvalue() == f"kept\n{format_text_drop_notice(3)}next\n"


def test_r06_a_disk_that_fills_within_a_line_has_the_next_line_on_its_own(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with (tmp_path / "log").open("w") as stream:
        writer = Writer(lambda: stream)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            writer.add_and_write("a\n")
            writer.add_and_write("x" * 2000 + "\n")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        writer.add_and_write("b\n")
        writer.close()
    assert (tmp_path / "log").read_text() == f"a\n{'x' * 998}\nb\n{format_text_drop_notice(1)}"


def test_a_stream_that_nobody_reads_makes_urgent_entries_wait_once(
    writer: Writer, disk: Disk
) -> None:
    disk.lock.acquire()
    writer.add_entry("a\n")
    until(disk.writing.is_set)
    started = time.monotonic()
    for _ in range(20):
        writer.add_and_write("b\n")
    assert time.monotonic() - started < 5 * URGENT_TIMEOUT
    disk.lock.release()
    until(lambda: disk.getvalue() == "a\n" + "b\n" * 20)
    writer.add_and_write("c\n")
    assert disk.getvalue().endswith("c\n")


def test_after_closing_entries_are_written_as_they_come(writer: Writer, disk: Disk) -> None:
    writer.add_entry("a\n")
    writer.close()
    writer.add_entry("b\n")
    writer.add_entry("c\n")
    assert disk.getvalue() == "a\nb\nc\n"


def test_an_entry_added_while_writing_is_not_written_into_the_other(disk: Disk) -> None:
    class Reentrant(Disk):
        def write(self, text: str, /) -> int:
            if "outer" in text:
                writer.add_and_write("inner\n")  # as a signal handler may do
            return super().write(text)

    stream = Reentrant()
    writer = Writer(lambda: stream)
    writer.add_and_write("outer\n")
    assert writer.write_buffered(1)
    assert stream.getvalue() == "outer\ninner\n"
    writer.close()


def test_the_stream_is_looked_up_for_every_batch() -> None:
    streams = [io.StringIO(), io.StringIO()]
    writer = Writer(lambda: streams[0])
    writer.add_and_write("a\n")
    del streams[0]
    writer.add_and_write("b\n")
    assert streams[0].getvalue() == "b\n"
    writer.close()


def test_entries_of_many_threads_are_all_written_each_in_its_order(
    writer: Writer, disk: Disk
) -> None:
    def work(name: int) -> None:
        for number in range(500):
            add = writer.add_and_write if number % 97 == 0 else writer.add_entry
            add(f"{name} {number} {'x' * (UNCOUNTED_CHARS if number % 50 == 0 else 0)}\n")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.write_buffered(5)
    words = [line.split() for line in disk.getvalue().splitlines()]
    for name in range(6):
        assert [int(n) for who, n, *_ in words if int(who) == name] == list(range(500))


def test_entries_of_moderate_length_are_bounded_by_their_number(writer: Writer, disk: Disk) -> None:
    """Nobody reads: a few that are not counted, then as many long ones as the limit says."""
    with disk.lock:
        writer.add_entry("first\n")
        disk.writing.wait(10)
        for _ in range(MAX_LINES):
            writer.add_entry("x" * FAST_PATH_CHARS)

        assert (
            FAST_PATH_LINES
            < len(writer.entries)
            <= FAST_PATH_LINES + MAX_CHARS // 2 // FAST_PATH_CHARS
        )
        assert writer.dropped == MAX_LINES - len(writer.entries)
    writer.write_buffered(10)
    assert writer.write_buffered(10)
    writer.add_entry("x" * FAST_PATH_CHARS)
    assert len(writer.entries) == 1
