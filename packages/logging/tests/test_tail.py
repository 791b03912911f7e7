"""The last lines in memory: what is written, masked, bounded, and only where it was asked for."""

import asyncio
import io
import subprocess
import sys
from collections.abc import Iterator

import pytest

from treefold_logging import flush, get_logger, json_payload, keep_tail, log_request
from treefold_logging._tail import SIZE, Tail
from treefold_logging._writer import WRITER, Writer


@pytest.fixture
def writer() -> Writer:
    """A writer to memory."""
    stream = io.StringIO()
    return Writer(lambda: stream)


@pytest.fixture
def tail() -> Iterator[Tail]:
    """The tail of this process, gone after the test."""
    WRITER.tail = None  # an application in this process may have begun one
    yield keep_tail()
    WRITER.tail = None


async def first(tail: Tail) -> list[str]:
    follower = tail.follow()
    try:
        return await anext(follower)
    finally:
        await follower.aclose()


def test_lines_are_kept_only_after_it_was_asked_for(writer: Writer) -> None:
    writer.add_entry("before\n")
    assert writer.write_buffered()
    tail = keep_tail(writer)
    writer.add_entry("after\n")
    assert writer.write_buffered()

    assert asyncio.run(first(tail)) == ["after\n"]


def test_there_is_one_tail(writer: Writer) -> None:
    assert keep_tail(writer) is keep_tail(writer)


def test_the_last_200_lines_are_kept(writer: Writer) -> None:
    tail = keep_tail(writer)
    for number in range(SIZE + 50):
        writer.add_entry(f"{number}\n")
    assert writer.write_buffered()

    assert asyncio.run(first(tail)) == [f"{number}\n" for number in range(50, SIZE + 50)]


def test_lines_are_masked_like_those_on_the_stream(
    tail: Tail, capsys: pytest.CaptureFixture[str]
) -> None:
    get_logger().warning("Connecting to postgres://ann:hunter2@db/shop")
    payload = json_payload({"password": "hunter2"})
    log_request("POST", "/v1/user", 201, 0.001, request_id="r1", payload=payload)
    assert flush()

    lines = asyncio.run(first(tail))
    assert "".join(lines) == capsys.readouterr().err
    assert len(lines) == 2
    assert "hunter2" not in "".join(lines)


def test_each_line_reaches_every_follower_as_it_is_written(writer: Writer) -> None:
    async def follow() -> list[list[str]]:
        tail = keep_tail(writer)
        one, other = tail.follow(), tail.follow()
        seen = [await anext(one), await anext(other)]
        writer.add_and_write("live\n")
        seen += [await asyncio.wait_for(anext(each), 5) for each in (one, other)]
        await one.aclose()
        writer.add_and_write("later\n")
        seen.append(await asyncio.wait_for(anext(other), 5))
        await other.aclose()
        return seen

    assert asyncio.run(follow()) == [[], [], ["live\n"], ["live\n"], ["later\n"]]


def test_a_slow_follower_loses_the_oldest_lines_and_no_memory(writer: Writer) -> None:
    async def follow() -> list[str]:
        follower = keep_tail(writer).follow()
        await anext(follower)
        for number in range(3 * SIZE):
            writer.add_and_write(f"{number}\n")
        lines = await anext(follower)
        await follower.aclose()
        return lines

    assert asyncio.run(follow()) == [f"{number}\n" for number in range(2 * SIZE, 3 * SIZE)]


def test_a_loop_that_ended_harms_nobody(writer: Writer) -> None:
    tail = keep_tail(writer)
    loop = asyncio.new_event_loop()
    follower = tail.follow()
    loop.run_until_complete(anext(follower))
    loop.close()
    writer.add_entry("on\n")

    assert writer.write_buffered()
    assert asyncio.run(first(tail)) == ["on\n"]
    follower.aclose().close()


def test_importing_the_package_loads_no_event_loop() -> None:
    code = "import sys, treefold_logging; print('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
