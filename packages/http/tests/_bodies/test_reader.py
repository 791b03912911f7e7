"""The one reader of a body: limits, early leave, chunking, double reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from treefold_http import ClientDisconnect, PayloadTooLarge
from treefold_http._bodies.reader import BodyReader


def reader(
    chunks: Sequence[bytes], *, limit: int = 1000, declared: int | None = None, cut: bool = False
) -> BodyReader:
    """Over a protocol-exact `receive`: the chunks, then the disconnect."""
    pending = list(chunks) or [b""]

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0)
        if pending:
            chunk = pending.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(pending) or cut}
        return {"type": "http.disconnect"}

    return BodyReader(receive, declared, limit=limit)


async def collect(source: BodyReader) -> list[bytes]:
    return [chunk async for chunk in source.stream_chunks()]


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_chunks_are_joined_in_order(chunks: list[bytes]) -> None:
    source = reader(chunks)

    assert asyncio.run(source.read()) == b"".join(chunks)
    assert source.buffered_body == b"".join(chunks)
    assert source.size == len(b"".join(chunks))


def test_a_second_read_gives_the_same_bytes() -> None:
    async def main() -> None:
        source = reader([b"a", b"b"])
        assert await source.read() is await source.read()

    asyncio.run(main())


def test_a_body_that_was_read_can_still_be_streamed() -> None:
    async def main() -> None:
        source = reader([b"a", b"b"])
        await source.read()
        assert await collect(source) == [b"ab"]
        assert await collect(source) == [b"ab"]

    asyncio.run(main())


def test_an_empty_body_is_read_and_streamed_as_nothing() -> None:
    async def main() -> None:
        assert await reader([]).read() == b""
        source = reader([b"", b""])
        assert await collect(source) == []

    asyncio.run(main())


def test_messages_without_body_or_more_body_are_the_end() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    assert asyncio.run(BodyReader(receive, None, limit=10).read()) == b""


def test_a_stream_gives_the_chunks_that_arrive_and_keeps_none() -> None:
    async def main() -> None:
        source = reader([b"a", b"", b"bc"])
        assert await collect(source) == [b"a", b"bc"]
        assert source.buffered_body is None
        assert source.size == 3

    asyncio.run(main())


@pytest.mark.parametrize(
    ("again", "words"),
    [
        (
            BodyReader.read,
            r"^stream\(\) already consumed the body; keep its chunks, or call body\(\) first$",
        ),
        (collect, "^The body was already streamed and is not kept; read it once$"),
    ],
)
def test_what_was_streamed_cannot_be_read_again(
    again: Callable[[BodyReader], Awaitable[Any]], words: str
) -> None:
    async def main() -> None:
        source = reader([b"a"])
        await collect(source)
        with pytest.raises(RuntimeError, match=words):
            await again(source)

    asyncio.run(main())


def test_a_stream_that_was_left_half_way_cannot_be_read() -> None:
    async def main() -> None:
        source = reader([b"a", b"b"])
        stream = source.stream_chunks()
        assert await anext(stream) == b"a"
        with pytest.raises(RuntimeError, match=r"stream\(\) already consumed the body"):
            await source.read()

    asyncio.run(main())


def test_two_readers_at_once_never_share_the_body_between_them() -> None:
    async def main() -> None:
        source = reader([b"a", b"b", b"c", b"d"])
        results = await asyncio.gather(source.read(), source.read(), return_exceptions=True)
        assert all(result == b"abcd" or isinstance(result, RuntimeError) for result in results)
        assert b"abcd" in results

    asyncio.run(main())


@pytest.mark.parametrize("chunks", [[b"12345"], [b"123", b"45"], [b"", b"12345", b""]])
def test_a_body_of_exactly_the_limit_is_taken(chunks: list[bytes]) -> None:
    assert asyncio.run(reader(chunks, limit=5, declared=5).read()) == b"12345"


@pytest.mark.parametrize(
    "chunks", [[b"123456"], [b"12345", b"6"], [b"1"] * 6, [b"1" * 5, b"2" * 10_000]]
)
@pytest.mark.parametrize("take", [BodyReader.read, collect])
def test_a_body_above_the_limit_is_refused_whatever_was_declared(
    take: Callable[[BodyReader], Awaitable[Any]], chunks: list[bytes]
) -> None:
    for declared in (None, 5):
        with pytest.raises(PayloadTooLarge, match=r"^413 The body must have at most 5 bytes$"):
            asyncio.run(_run(take, reader(chunks, limit=5, declared=declared)))


async def _run(take: Callable[[BodyReader], Awaitable[Any]], source: BodyReader) -> Any:
    return await take(source)


@pytest.mark.parametrize("take", [BodyReader.read, collect])
def test_a_declared_size_above_the_limit_is_refused_before_anything_is_read(
    take: Callable[[BodyReader], Awaitable[Any]],
) -> None:
    async def receive() -> dict[str, Any]:
        raise AssertionError("nothing may be read")

    source = BodyReader(receive, 6, limit=5)
    with pytest.raises(PayloadTooLarge):
        asyncio.run(_run(take, source))

    assert not source.has_started


def test_a_limit_of_zero_takes_the_empty_body_only() -> None:
    assert asyncio.run(reader([], limit=0).read()) == b""
    with pytest.raises(PayloadTooLarge):
        asyncio.run(reader([b"a"], limit=0).read())


@pytest.mark.parametrize("chunks", [[], [b"a"], [b"a", b"b"]])
@pytest.mark.parametrize("take", [BodyReader.read, collect])
def test_a_client_that_leaves_early_is_never_a_short_body(
    take: Callable[[BodyReader], Awaitable[Any]], chunks: list[bytes]
) -> None:
    source = reader(chunks or [b""], cut=True)
    with pytest.raises(
        ClientDisconnect, match=r"^The client disconnected before the end of the body$"
    ):
        asyncio.run(_run(take, source))

    assert source.disconnected
    assert source.buffered_body is None


def test_a_disconnect_before_any_byte_is_said_again_on_the_next_read() -> None:
    async def main() -> None:
        source = reader([b""], cut=True)
        for _ in range(2):
            with pytest.raises(ClientDisconnect):
                await source.read()

    asyncio.run(main())


def test_a_quarter_million_tiny_chunks_are_joined_in_linear_time() -> None:
    async def main() -> None:
        left = 65_536

        async def receive() -> dict[str, Any]:
            nonlocal left
            left -= 1
            return {"type": "http.request", "body": b"x", "more_body": left > 0}

        async with asyncio.timeout(2):
            assert len(await BodyReader(receive, None, limit=100_000).read()) == 65_536

    asyncio.run(main())


def test_waiting_for_the_client_to_leave_ends_when_it_does() -> None:
    async def main() -> None:
        source = reader([b"a"])
        await source.read()
        async with asyncio.timeout(2):
            await source.wait_for_disconnect()
        assert source.disconnected

    asyncio.run(main())


def test_waiting_for_the_client_to_leave_takes_nothing_of_an_unread_body() -> None:
    async def main() -> None:
        source = reader([b"a", b"b"], declared=2)
        waiting = asyncio.ensure_future(source.wait_for_disconnect())
        await asyncio.sleep(0)
        assert await source.read() == b"ab"
        waiting.cancel()
        await asyncio.wait([waiting])

    asyncio.run(main())


def test_looking_for_the_client_loses_no_part_of_the_body() -> None:
    async def main() -> None:
        source = reader([b"a", b"b"], declared=2)
        for _ in range(3):
            assert not await source.is_disconnected()
        assert await source.read() == b"ab"

    asyncio.run(main())


def test_a_client_that_left_after_its_body_is_seen_and_stays_gone() -> None:
    async def main() -> None:
        source = reader([b"a"], declared=1)
        assert await source.read() == b"a"
        seen = [await source.is_disconnected() for _ in range(4)]
        assert seen[-1]
        assert seen == sorted(seen)

    asyncio.run(main())


@pytest.mark.parametrize("declared", [0, None], ids=["HTTP/1.1", "HTTP/2"])
def test_a_client_that_leaves_a_request_without_a_body_is_seen(declared: int | None) -> None:
    async def main() -> None:
        source = reader([], declared=declared)
        seen = [await source.is_disconnected() for _ in range(6)]
        assert (seen[0], seen[-1]) == (False, True)

    asyncio.run(main())


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    while not await holds():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)


def test_a_client_that_left_behind_its_unread_body_is_seen_and_the_body_is_whole() -> None:
    async def main() -> None:
        source = reader([b"a", b"", b"b"], declared=2)
        await until(source.is_disconnected)
        assert await source.read() == b"ab"

    asyncio.run(main())


def test_a_client_that_left_in_its_body_is_seen_and_the_body_is_not_whole() -> None:
    async def main() -> None:
        source = reader([b"a"], declared=2, cut=True)
        await until(source.is_disconnected)
        with pytest.raises(ClientDisconnect):
            await source.read()

    asyncio.run(main())


def test_a_look_holds_no_more_of_an_unread_body_than_its_bound() -> None:
    async def main() -> None:
        given = 0

        async def receive() -> dict[str, Any]:
            nonlocal given
            given += 1
            return {"type": "http.request", "body": b"x" * 50_000, "more_body": given < 10}

        source = BodyReader(receive, 500_000, limit=500_000)
        waiting = asyncio.ensure_future(source.wait_for_disconnect())
        for _ in range(20):
            assert not await source.is_disconnected()
        assert given == 2
        assert len(await source.read()) == 500_000
        waiting.cancel()
        await asyncio.wait([waiting])

    asyncio.run(main())


@pytest.mark.parametrize("declared", [2, None], ids=["announced", "not announced"])
def test_who_reads_while_another_waits_for_the_end_gets_the_whole_body(
    declared: int | None,
) -> None:
    async def main() -> None:
        source = reader([b"a", b"b"], declared=declared)
        waiting = asyncio.ensure_future(source.wait_for_disconnect())
        await asyncio.sleep(0)
        assert await collect(source) == [b"a", b"b"]
        async with asyncio.timeout(5):
            await waiting

    asyncio.run(main())


def test_waiting_for_the_client_to_leave_ends_for_a_request_of_http_2_without_a_body() -> None:
    async def main() -> None:
        source = reader([])
        async with asyncio.timeout(5):
            await source.wait_for_disconnect()
        assert source.disconnected

    asyncio.run(main())


def test_a_wait_that_is_given_up_takes_back_its_question_and_a_reader_asks_again() -> None:
    async def main() -> None:
        asked: list[asyncio.Future[dict[str, Any]]] = []

        async def receive() -> dict[str, Any]:
            asked.append(asyncio.get_running_loop().create_future())
            return await asked[-1]

        source = BodyReader(receive, None, limit=10)
        waiting = asyncio.ensure_future(source.wait_for_disconnect())
        reading = asyncio.ensure_future(source.read())
        for _ in range(5):
            await asyncio.sleep(0)
        waiting.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert asked[0].cancelled()
        asked[1].set_result({"type": "http.request", "body": b"a"})
        assert await reading == b"a"

    asyncio.run(main())


def test_a_client_that_stays_is_not_waited_for_and_the_look_ends_with_the_request() -> None:
    async def main() -> None:
        cancelled = asyncio.Event()

        async def receive() -> dict[str, Any]:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return {}

        source = BodyReader(receive, 0, limit=10)
        assert not await source.is_disconnected()
        await source.stop_disconnect_probe()
        await asyncio.wait_for(cancelled.wait(), 5)

    asyncio.run(main())
