"""Multipart forms from end to end: fields, files, and nothing left behind (S-36 to S-42)."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from treefold_http import ClientDisconnect, HTTPError, ServiceUnavailable
from treefold_http._bodies.forms import ParsedForm, parse_form
from treefold_http._bodies.spool import _spools
from treefold_http._wire.limits import Limits

Encode = Callable[..., bytes]
Chunked = Callable[[bytes, int], AsyncIterator[bytes]]

TYPE = "multipart/form-data; boundary=X-bound"
MIB = 1 << 20
SMALL = Limits(spool=64)


@pytest.fixture(autouse=True)
def nothing_left(temporary: Path) -> Iterator[None]:
    yield
    assert list(temporary.iterdir()) == []
    assert sum(spool.size for spool in _spools) == 0
    assert _open_files(temporary) == 0


def _open_files(directory: Path) -> int:
    """Count open files of a directory, those without a name too."""
    listed = Path("/proc/self/fd")
    links = list(listed.iterdir()) if listed.is_dir() else []
    return sum(os.path.realpath(link).startswith(str(directory)) for link in links)


async def take(form: ParsedForm) -> tuple[list[tuple[str, str]], list[tuple[str, str, bytes]]]:
    files = [
        (name, upload.filename, await upload.read()) for name, upload in form.files.multi_items()
    ]
    await form.close()
    return form.fields.multi_items(), files


async def refused(
    chunks: AsyncIterator[bytes], *, limits: Limits | None = None, content_type: str = TYPE
) -> tuple[int, str]:
    with pytest.raises(HTTPError) as error:
        await parse_form(content_type, chunks, limits=limits or Limits())
    return error.value.status, error.value.message


def test_fields_and_files_come_from_one_parse(encode: Encode, chunked: Chunked) -> None:
    body = encode(
        ('name="title"', "é".encode()),
        ('name="doc"; filename="a\\"b.txt"', b"\x00\xff\r\n", "Content-Type: text/plain"),
        ('name="title"', b"two"),
        ('name="doc"; filename=""', b"", "Content-Type: application/octet-stream"),
    )

    async def use() -> ParsedForm:
        form = await parse_form(TYPE, chunked(body, 10))
        fields, files = await take(form)
        assert fields == [("title", "é"), ("title", "two")]
        assert files == [("doc", 'a"b.txt', b"\x00\xff\r\n"), ("doc", "", b"")]
        return form

    form = asyncio.run(use())
    assert form.fields.getlist("title") == ["é", "two"]
    assert form.files["doc"].content_type == "text/plain"
    assert form.files["doc"].headers["content-type"] == "text/plain"
    assert form.files["doc"].size == 4


_name_characters = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\\')
_parts = st.lists(
    st.tuples(
        st.text(_name_characters, min_size=1),
        st.one_of(st.none(), st.text(st.sampled_from("abé☃ ;=,'./"), max_size=9)),
        st.binary(max_size=200).filter(lambda data: b"--X-bound" not in data),
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(parts=_parts, size=st.integers(1, 300))
def test_any_form_comes_back_exactly(
    encode: Encode, chunked: Chunked, parts: list[tuple[str, str | None, bytes]], size: int
) -> None:
    sent = [
        (name, filename, data if filename is not None else data.hex().encode())
        for name, filename, data in parts
    ]
    body = encode(
        *(
            (f'name="{name}"' + ("" if filename is None else f'; filename="{filename}"'), data)
            for name, filename, data in sent
        )
    )

    async def use() -> None:
        fields, files = await take(await parse_form(TYPE, chunked(body, size), limits=SMALL))
        assert fields == [(name, data.decode()) for name, file, data in sent if file is None]
        assert files == [(name, file, data) for name, file, data in sent if file is not None]

    asyncio.run(use())


def test_a_large_file_is_spooled_and_exact(encode: Encode, chunked: Chunked) -> None:
    content = os.urandom(3 * MIB)
    body = encode(('name="f"; filename="x"', content), ('name="a"', b"1"))

    async def use() -> None:
        form = await parse_form(TYPE, chunked(body, 65_536))
        assert form.files["f"]._spool is not None
        assert sum(spool.size for spool in _spools) == len(content)
        fields, files = await take(form)
        assert fields == [("a", "1")]
        assert files == [("f", "x", content)]

    asyncio.run(use())


def test_s36_d02_the_whole_form_has_a_limit(encode: Encode, chunked: Chunked) -> None:
    body = encode(('name="f"; filename="x"', b"x" * 1000))

    async def use() -> tuple[int, str]:
        form = await parse_form(TYPE, chunked(body, 7), limits=Limits(total=len(body)))
        await form.close()
        return await refused(chunked(body, 7), limits=Limits(total=len(body) - 1))

    status, message = asyncio.run(use())
    assert (status, message) == (
        413,
        f"The form must have at most {len(body) - 1} bytes",
    )


def test_s36_a_field_has_a_limit_and_a_file_has_not(encode: Encode, chunked: Chunked) -> None:
    limits = Limits(field=5)

    async def use() -> tuple[int, str]:
        body = encode(
            ('name="a"', b"12345"), ('name="a"', b"12345"), ('name="f"; filename="x"', b"123456")
        )
        await (await parse_form(TYPE, chunked(body, 3), limits=limits)).close()
        return await refused(chunked(encode(('name="a"', b"123456")), 3), limits=limits)

    assert asyncio.run(use()) == (413, "Field 'a' is larger than 5 bytes")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([('name="a"', b"\xff")], "Field 'a' is not UTF-8 text"),
        ([('name="a"', b"\xc3"), ('name="b"', b"\xa9")], "Field 'a' is not UTF-8 text"),
        (
            [('name="_charset_"', b"latin-1"), ('name="a"', b"\xe9")],
            "Field 'a' is not UTF-8 text",
        ),
        (
            [("filename=x", b"")],
            'A part has no name; send Content-Disposition: form-data; name="..."',
        ),
    ],
)
def test_s37_a_bad_part_is_400(
    encode: Encode, chunked: Chunked, parts: list[tuple[str, bytes]], message: str
) -> None:
    large = ('name="f"; filename="x"', b"x" * 1000)
    body = encode(large, *parts)
    assert asyncio.run(refused(chunked(body, 100), limits=SMALL)) == (400, message)


@pytest.mark.parametrize("size", [64, 4096, MIB])
def test_s37_a_truncated_upload_is_400_and_leaves_nothing(
    encode: Encode, chunked: Chunked, size: int
) -> None:
    body = encode(('name="f"; filename="x"', b"x" * 200_000), end=False)[:-2]
    status, message = asyncio.run(refused(chunked(body, size), limits=Limits(spool=1024)))
    assert (status, message) == (400, "The multipart body ends before its closing boundary")


def test_s36_twenty_thousand_parts_are_refused_at_once(encode: Encode, chunked: Chunked) -> None:
    body = encode(*[('name="f"; filename="x"', b"1")] * 20_000)
    started = time.process_time()
    status, _ = asyncio.run(refused(chunked(body, 65_536)))
    assert status == 400
    assert time.process_time() - started < 0.5


def test_s26_tiny_chunks_cost_little(encode: Encode, chunked: Chunked) -> None:
    body = encode(('name="f"; filename="x"', b"x" * (256 * 1024)))

    async def use() -> int:
        form = await parse_form(TYPE, chunked(body, 1))
        await form.close()
        return form.files["f"].size

    started = time.process_time()
    assert asyncio.run(use()) == 256 * 1024
    assert time.process_time() - started < 0.6


def test_s41_a_client_that_leaves_leaves_nothing(encode: Encode, chunked: Chunked) -> None:
    body = encode(('name="f"; filename="x"', b"x" * 200_000))

    async def leaving() -> AsyncIterator[bytes]:
        async for chunk in chunked(body[:100_000], 20_000):
            yield chunk
        raise ClientDisconnect("The client disconnected before the end of the body")

    async def use() -> None:
        with pytest.raises(ClientDisconnect):
            await parse_form(TYPE, leaving(), limits=Limits(spool=1024))

    asyncio.run(use())


@pytest.mark.parametrize("wait_for", ["chunk", "disk"])
def test_s41_a_cancelled_request_leaves_nothing(
    encode: Encode, chunked: Chunked, wait_for: str
) -> None:
    body = encode(('name="f"; filename="x"', b"x" * 200_000))

    async def use() -> None:
        reached = asyncio.Event()

        async def stalling() -> AsyncIterator[bytes]:
            async for chunk in chunked(body[:100_000], 20_000):
                yield chunk
                if wait_for == "disk":
                    reached.set()
            reached.set()
            await asyncio.get_running_loop().create_future()

        parsing = asyncio.ensure_future(parse_form(TYPE, stalling(), limits=Limits(spool=1024)))
        await reached.wait()
        parsing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await parsing

    asyncio.run(use())


def test_s42_uploads_share_the_disk_and_the_late_ones_are_503(
    encode: Encode, chunked: Chunked
) -> None:
    body = encode(('name="f"; filename="x"', b"x" * 30_000))
    limits = Limits(spool=1024, disk=100_000)

    async def use() -> tuple[int, int]:
        results = await asyncio.gather(
            *(parse_form(TYPE, chunked(body, 5000), limits=limits) for _ in range(8)),
            return_exceptions=True,
        )
        taken = [result for result in results if isinstance(result, ParsedForm)]
        late = [result for result in results if isinstance(result, ServiceUnavailable)]
        assert sum(spool.size for spool in _spools) <= limits.disk
        for form in taken:
            await form.close()
        again = await parse_form(TYPE, chunked(body, 5000), limits=limits)
        await again.close()
        return len(taken), len(late)

    taken, late = asyncio.run(use())
    assert taken + late == 8
    assert taken <= 3
    assert late > 0


def test_s36_one_file_more_than_allowed_removes_the_others(
    encode: Encode, chunked: Chunked
) -> None:
    body = encode(*[('name="f"; filename="x"', b"x" * 1000)] * 4)
    limits = Limits(files=3, spool=64)
    assert asyncio.run(refused(chunked(body, 500), limits=limits)) == (400, "More than 3 files")


def test_closing_takes_what_the_end_of_a_request_passes(encode: Encode, chunked: Chunked) -> None:
    async def use() -> ParsedForm:
        form = await parse_form(TYPE, chunked(encode(('name="f"; filename="x"', b"1")), 9))
        await form.close(ValueError("the request failed"))
        await form.close(None)
        return form

    assert asyncio.run(use()).files["f"].size == 1
