"""Parts while they arrive: in order, once, nothing kept."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from treefold_http import BadRequest, PayloadTooLarge, UnsupportedMediaType
from treefold_http._bodies.multipart import BLOCK
from treefold_http._bodies.parts import Part, stream_parts
from treefold_http._wire.limits import Limits

Encode = Callable[..., bytes]
Chunked = Callable[[bytes, int], AsyncIterator[bytes]]

TYPE = "multipart/form-data; boundary=X-bound"


@pytest.fixture
def body(encode: Encode) -> bytes:
    return encode(
        ('name="a"', b"one"),
        ('name="f"; filename="x.bin"', b"y" * 100_000, "Content-Type: image/png"),
        ('name="empty"', b""),
        ('name="b"', b"two"),
    )


@pytest.mark.parametrize("size", [100, 4096, 1 << 20])
def test_parts_come_in_order_with_their_data(body: bytes, chunked: Chunked, size: int) -> None:
    async def use() -> list[tuple[str, str | None, str, bytes]]:
        return [
            (part.name, part.filename, part.content_type, b"".join([c async for c in part]))
            async for part in stream_parts(TYPE, chunked(body, size))
        ]

    assert asyncio.run(use()) == [
        ("a", None, "", b"one"),
        ("f", "x.bin", "image/png", b"y" * 100_000),
        ("empty", None, "", b""),
        ("b", None, "", b"two"),
    ]


def test_a_part_that_is_not_read_is_passed_over(body: bytes, chunked: Chunked) -> None:
    async def use() -> list[bytes]:
        return [
            await part.read()
            async for part in stream_parts(TYPE, chunked(body, 300))
            if part.name in ("a", "b")
        ]

    assert asyncio.run(use()) == [b"one", b"two"]


def test_a_part_that_is_read_in_part_is_passed_over(body: bytes, chunked: Chunked) -> None:
    async def use() -> list[str]:
        names: list[str] = []
        async for part in stream_parts(TYPE, chunked(body, BLOCK)):
            names.append(part.name)
            async with aclosing(aiter(part)) as chunks:
                await anext(chunks, None)
        return names

    assert asyncio.run(use()) == ["a", "f", "empty", "b"]


def test_a_part_can_be_read_only_in_its_turn(body: bytes, chunked: Chunked) -> None:
    async def use() -> None:
        parts = stream_parts(TYPE, chunked(body, 300))
        async with aclosing(parts):
            first = await anext(parts)
            await anext(parts)
            with pytest.raises(RuntimeError) as refused:
                await first.read()
        assert str(refused.value) == (
            "Part 'a' was skipped and cannot be read any more; read each part before the next"
        )

    asyncio.run(use())


def test_a_part_that_was_read_gives_nothing_more(body: bytes, chunked: Chunked) -> None:
    async def use() -> list[bytes]:
        parts = stream_parts(TYPE, chunked(body, 300))
        async with aclosing(parts):
            first = await anext(parts)
            return [await first.read(), await first.read()]

    assert asyncio.run(use()) == [b"one", b""]


def test_nothing_is_kept_and_nothing_is_read_ahead(
    encode: Encode, chunked: Chunked, temporary: Path
) -> None:
    body = encode(('name="f"; filename="x"', b"y" * (4 << 20)))
    given = 0

    async def counted() -> AsyncIterator[bytes]:
        nonlocal given
        async for chunk in chunked(body, BLOCK):
            given += len(chunk)
            yield chunk

    async def use() -> None:
        taken = 0
        async for part in stream_parts(TYPE, counted()):
            async for chunk in part:
                taken += len(chunk)
                assert given - taken < 2 * BLOCK
        assert taken == 4 << 20

    asyncio.run(use())
    assert list(temporary.iterdir()) == []


def test_a_part_is_read_whole_up_to_the_limit_of_a_field(body: bytes, chunked: Chunked) -> None:
    async def use() -> bytes:
        parts = stream_parts(TYPE, chunked(body, 300), limits=Limits(field=3))
        async with aclosing(parts):
            first = await (await anext(parts)).read()
            with pytest.raises(PayloadTooLarge) as refused:
                await (await anext(parts)).read()
        assert refused.value.message == "Field 'f' is larger than 3 bytes"
        return first

    assert asyncio.run(use()) == b"one"


@pytest.mark.parametrize("cut", [10, 60, 5000, 100_000])
def test_a_body_that_ends_early_is_400(body: bytes, chunked: Chunked, cut: int) -> None:
    async def use() -> None:
        async for part in stream_parts(TYPE, chunked(body[:cut], 300)):
            async for _ in part:
                pass

    with pytest.raises(BadRequest, match="ends before its closing boundary"):
        asyncio.run(use())


def test_a_body_that_is_not_multipart_is_415(chunked: Chunked) -> None:
    async def use() -> None:
        async for _ in stream_parts("application/x-www-form-urlencoded", chunked(b"a=1", 3)):
            pass

    with pytest.raises(UnsupportedMediaType) as refused:
        asyncio.run(use())
    assert refused.value.message == (
        "Content-Type is 'application/x-www-form-urlencoded'; send multipart/form-data"
    )


def test_its_repr_names_it(body: bytes, chunked: Chunked) -> None:
    async def use() -> Part:
        parts = stream_parts(TYPE, chunked(body, 300))
        async with aclosing(parts):
            return await anext(parts)

    assert repr(asyncio.run(use())) == "<Part 'a' filename=None>"
