"""`UploadFile`: reading, saving, closing; in memory and on disk alike (S-40, S-41)."""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings, strategies as st

from treefold_http._bodies.forms import FormBuilder
from treefold_http._bodies.part_head import PartHead
from treefold_http._bodies.space import FormSpace
from treefold_http._bodies.uploads import CHUNK, UploadFile, close_uploads
from treefold_http._wire.datastructures import Headers
from treefold_http._wire.limits import Limits

T = TypeVar("T")

Work = Callable[[UploadFile], Awaitable[T]]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    target = tmp_path / "uploads"
    target.mkdir()
    return target


async def _made(content: bytes, *, limit: int, filename: str = "a.txt") -> UploadFile:
    limits = Limits(spool=limit)
    builder = FormBuilder(limits, FormSpace(limits=limits))
    builder.add_and_count_unreserved_bytes(PartHead("file", filename, "text/plain", Headers([])))
    for start in range(0, len(content), 7):
        if wanted := builder.add_and_count_unreserved_bytes(content[start : start + 7]):
            await builder.reserve_or_spill(wanted)
    return builder.build_form().files["file"]


def using(work: Work[T], content: bytes, *, on_disk: bool, filename: str = "a.txt") -> T:
    async def use() -> T:
        upload = await _made(content, limit=3 if on_disk else 1 << 20, filename=filename)
        assert (upload._spool is not None) == (on_disk and len(content) > 3)
        try:
            return await work(upload)
        finally:
            await upload.close()

    return asyncio.run(use())


where = pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "disk"])


@where
def test_read_goes_on_where_it_stopped(on_disk: bool) -> None:
    async def work(upload: UploadFile) -> list[bytes]:
        return [
            await upload.read(4),
            await upload.read(0),
            await upload.read(),
            await upload.read(),
        ]

    assert using(work, b"0123456789", on_disk=on_disk) == [b"0123", b"", b"456789", b""]


@where
def test_seek_goes_to_a_position_from_the_start(on_disk: bool) -> None:
    async def work(upload: UploadFile) -> list[bytes]:
        await upload.read()
        await upload.seek(8)
        tail = await upload.read()
        await upload.seek(99)
        return [tail, await upload.read()]

    assert using(work, b"0123456789", on_disk=on_disk) == [b"89", b""]


def test_a_position_before_the_start_is_refused() -> None:
    async def work(upload: UploadFile) -> None:
        await upload.seek(-1)

    with pytest.raises(ValueError) as refused:
        using(work, b"x", on_disk=False)
    assert str(refused.value) == "The position of seek() must be 0 or more, got -1"


@where
def test_iteration_gives_chunks_of_64_kib_from_the_position_on(on_disk: bool) -> None:
    async def work(upload: UploadFile) -> list[int]:
        await upload.seek(10)
        return [len(chunk) async for chunk in upload]

    sizes = using(work, b"x" * (2 * CHUNK + 15), on_disk=on_disk)
    assert sizes == [CHUNK, CHUNK, 5]


@settings(max_examples=25, deadline=None)
@given(
    content=st.binary(max_size=200),
    reads=st.lists(st.integers(-1, 60), max_size=6),
    on_disk=st.booleans(),
)
def test_reads_of_any_size_give_the_exact_bytes(
    content: bytes, reads: list[int], on_disk: bool
) -> None:
    async def work(upload: UploadFile) -> bytes:
        parts = [await upload.read(n) for n in reads]
        return b"".join([*parts, await upload.read()])

    assert using(work, content, on_disk=on_disk) == content


def test_a_file_of_the_limit_stays_in_memory_and_one_byte_more_does_not() -> None:
    async def use() -> list[bool]:
        uploads = [await _made(b"x" * size, limit=10) for size in (10, 11)]
        spooled = [upload._spool is not None for upload in uploads]
        await close_uploads(uploads)
        return spooled

    assert asyncio.run(use()) == [False, True]


def test_a_test_can_make_one() -> None:
    upload = UploadFile("a.txt", "text/plain", content=b"abc", headers=Headers([(b"a", b"b")]))
    assert asyncio.run(upload.read()) == b"abc"
    assert (upload.filename, upload.content_type, upload.size) == ("a.txt", "text/plain", 3)
    assert upload.headers["A"] == "b"


def test_a_file_without_a_word_about_it_has_empty_texts() -> None:
    upload = UploadFile()
    assert (upload.filename, upload.content_type, upload.size) == ("", "", 0)
    assert len(upload.headers) == 0
    assert asyncio.run(upload.read()) == b""


def test_its_repr_escapes_the_name() -> None:
    assert repr(UploadFile("a\nb", content=b"12")) == "<UploadFile 'a\\nb' 2 bytes>"


@where
def test_a_closed_file_keeps_its_labels_and_loses_its_bytes(on_disk: bool) -> None:
    async def use() -> UploadFile:
        upload = await _made(b"0123456789", limit=3 if on_disk else 100)
        await upload.close()
        await upload.close()
        return upload

    upload = asyncio.run(use())
    assert (upload.filename, upload.size) == ("a.txt", 10)
    with pytest.raises(ValueError, match="The upload is closed"):
        asyncio.run(upload.read())
    with pytest.raises(ValueError, match="The upload is closed"):
        asyncio.run(upload.seek(0))
    with pytest.raises(ValueError, match="The upload is closed"):
        asyncio.run(upload.save("x"))


@where
def test_save_takes_a_full_path_exactly(directory: Path, on_disk: bool) -> None:
    async def work(upload: UploadFile) -> Path:
        await upload.read(5)
        return await upload.save(directory / ".our name")

    saved = using(work, b"0123456789", on_disk=on_disk, filename="../evil")
    assert saved == directory / ".our name"
    assert saved.read_bytes() == b"0123456789"
    assert list(directory.iterdir()) == [saved]


@where
def test_save_leaves_the_position_where_it_was(directory: Path, on_disk: bool) -> None:
    async def work(upload: UploadFile) -> bytes:
        await upload.read(5)
        await upload.save(directory)
        return await upload.read()

    assert using(work, b"0123456789", on_disk=on_disk) == b"56789"


@pytest.mark.parametrize(
    "filename",
    ["../../x", "/etc/x", "C:\\x", "CON", "a\x00.png", "n" * 5000, ".htaccess", "..", "", "☃"],
)
def test_s40_save_into_a_directory_stays_inside(directory: Path, filename: str) -> None:
    async def work(upload: UploadFile) -> Path:
        return await upload.save(str(directory) + "/")

    saved = using(work, b"x", on_disk=False, filename=filename)
    assert saved.parent == directory
    assert list(directory.iterdir()) == [saved]
    assert [path.name for path in directory.parent.iterdir() if path != directory] == ["spool"]


def test_save_refuses_a_name_that_is_taken(directory: Path) -> None:
    taken = directory / "a.txt"
    taken.write_bytes(b"first")

    async def work(upload: UploadFile) -> Path:
        return await upload.save(directory)

    with pytest.raises(FileExistsError):
        using(work, b"second", on_disk=False)
    assert taken.read_bytes() == b"first"
    assert list(directory.iterdir()) == [taken]


def test_save_does_not_write_through_a_link(directory: Path) -> None:
    outside = directory.parent / "outside"
    (directory / "a.txt").symlink_to(outside)

    async def work(upload: UploadFile) -> Path:
        return await upload.save(directory / "a.txt", overwrite=True)

    with pytest.raises(FileExistsError):
        using(lambda upload: upload.save(directory), b"x", on_disk=False)
    saved = using(work, b"x", on_disk=False)
    assert not saved.is_symlink()
    assert not outside.exists()


def test_save_replaces_a_file_when_asked(directory: Path) -> None:
    taken = directory / "a.txt"
    taken.write_bytes(b"first")

    async def work(upload: UploadFile) -> Path:
        return await upload.save(directory, overwrite=True)

    assert using(work, b"second", on_disk=False) == taken
    assert taken.read_bytes() == b"second"


def test_of_two_that_save_one_name_at_a_time_one_fails(directory: Path) -> None:
    async def use() -> list[Path | BaseException]:
        uploads = [UploadFile("a.txt", content=bytes([digit]) * 100) for digit in range(8)]
        return await asyncio.gather(
            *(upload.save(directory) for upload in uploads), return_exceptions=True
        )

    results = asyncio.run(use())
    assert sum(isinstance(result, Path) for result in results) == 1
    assert sum(isinstance(result, FileExistsError) for result in results) == 7
    assert len(list(directory.iterdir())) == 1
    assert len(set((directory / "a.txt").read_bytes())) == 1


def test_save_into_a_directory_that_is_not_there_says_so(directory: Path) -> None:
    missing = str(directory / "missing") + "/"

    async def work(upload: UploadFile) -> Path:
        return await upload.save(missing)

    with pytest.raises(NotADirectoryError) as refused:
        using(work, b"x", on_disk=False)
    assert str(refused.value) == (
        f"The folder of an upload must exist, got {missing!r}; create it first"
    )


def test_a_save_that_fails_leaves_nothing(directory: Path) -> None:
    async def use() -> None:
        upload = await _made(b"0123456789", limit=3)
        spool = upload._spool
        assert spool is not None
        spool.close()
        try:
            with pytest.raises(ValueError, match="closed"):
                await upload.save(directory)
        finally:
            await upload.close()

    asyncio.run(use())
    assert list(directory.iterdir()) == []


def test_a_saved_file_has_the_permissions_of_any_new_file(directory: Path) -> None:
    plain = directory / "plain"
    plain.touch()

    async def work(upload: UploadFile) -> Path:
        return await upload.save(directory)

    saved = using(work, b"x", on_disk=False)
    assert os.stat(saved).st_mode == os.stat(plain).st_mode
