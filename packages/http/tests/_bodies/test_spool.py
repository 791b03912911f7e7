"""S-41, S-42: private files on disk, always removed, never more than the process may take."""

import asyncio
import gc
import os
import stat
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from treefold_http import ServiceUnavailable
from treefold_http._bodies.spool import Spool, close_spools
from treefold_http._runtime.threads import WorkerThreads, run_in_disk_thread

DISK = 1024 * 1024


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def file_of(spool: Spool) -> BinaryIO:
    assert spool._file is not None
    return spool._file


def test_bytes_come_back_from_any_place() -> None:
    async def use() -> list[bytes]:
        spool = Spool()
        await spool.append_chunks([b"abc", b"def"], disk_limit=DISK)
        first = await spool.read(2, 3)
        await spool.append_chunks([b"ghi"], disk_limit=DISK)
        rest = await spool.read(4, -1)
        beyond = await spool.read(100, -1)
        await close_spools([spool])
        return [first, rest, beyond]

    assert asyncio.run(use()) == [b"cde", b"efghi", b""]


def test_s41_the_file_has_no_name_and_is_the_owners_alone(temporary: Path) -> None:
    async def use() -> tuple[list[str], os.stat_result]:
        spool = Spool()
        await spool.append_chunks([b"secret"], disk_limit=DISK)
        found = os.listdir(temporary), os.fstat(file_of(spool).fileno())
        await close_spools([spool])
        return found

    names, status = asyncio.run(use())
    assert names == []
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_nlink == 0


def test_s41_the_directory_is_the_owners_alone(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    make = tempfile.TemporaryFile

    def watched(*, dir: str) -> object:
        modes.append(stat.S_IMODE(os.stat(dir).st_mode))
        assert Path(dir).parent == temporary
        return make(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", watched)

    async def use() -> None:
        spool = Spool()
        await spool.append_chunks([b"x"], disk_limit=DISK)
        await close_spools([spool])

    asyncio.run(use())
    assert modes == [0o700]


def test_s41_a_full_disk_is_reported_and_leaves_nothing(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*, dir: str) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)

    async def use() -> None:
        spool = Spool()
        try:
            with pytest.raises(OSError, match="No space left"):
                await spool.append_chunks([b"x"], disk_limit=DISK)
        finally:
            await close_spools([spool])

    asyncio.run(use())
    assert list(temporary.iterdir()) == []


def test_what_was_appended_is_with_the_system() -> None:
    async def use() -> list[int]:
        spool = Spool()
        sizes: list[int] = []
        for chunk in (b"x" * 100_000, b"a few"):
            await spool.append_chunks([chunk], disk_limit=DISK)
            sizes.append(os.fstat(file_of(spool).fileno()).st_size)
        await close_spools([spool])
        return sizes

    assert asyncio.run(use()) == [100_000, 100_005]


def test_a_disk_that_is_full_says_so_to_whom_appends_even_a_few_bytes() -> None:
    spool = Spool()
    spool._file = open("/dev/full", "wb")  # noqa: SIM115 - the spool closes it

    async def use() -> None:
        with pytest.raises(OSError, match="No space left"):
            await spool.append_chunks([b"x"], disk_limit=DISK)
        await close_spools([spool])

    asyncio.run(use())
    assert file_of(spool).closed


def test_s41_a_disk_that_fails_at_the_end_does_not_keep_other_files_open() -> None:
    failing, other = Spool(), Spool()
    failing._file = open("/dev/full", "wb")  # noqa: SIM115 - the spool closes it
    failing._file.write(b"x")

    async def use() -> None:
        await other.append_chunks([b"x"], disk_limit=DISK)
        await close_spools([failing, other])

    asyncio.run(use())
    assert file_of(failing).closed
    assert file_of(other).closed
    assert (failing.size, other.size) == (0, 0)


def test_a_closed_spool_cannot_be_read() -> None:
    async def use() -> None:
        spool = Spool()
        await spool.append_chunks([b"x"], disk_limit=DISK)
        await close_spools([spool])
        with pytest.raises(ValueError) as refused:
            await spool.read(0, -1)
        assert str(refused.value) == "The upload is closed; read it before the request ends"

    asyncio.run(use())


def test_s42_the_process_takes_no_more_disk_than_allowed_until_some_is_given_back() -> None:
    async def use() -> None:
        first, second = Spool(), Spool()
        await first.append_chunks([b"x" * 60], disk_limit=100)
        with pytest.raises(ServiceUnavailable) as refused:
            await second.append_chunks([b"x" * 41], disk_limit=100)
        assert refused.value.message == "Too many uploads at the same time; try again later"
        assert refused.value.headers == {"Retry-After": "10"}
        await second.append_chunks([b"x" * 40], disk_limit=100)
        await close_spools([first])
        await second.append_chunks([b"x" * 60], disk_limit=100)
        await close_spools([second])

    asyncio.run(use())


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_s42_a_spool_that_nobody_closed_gives_its_share_back() -> None:
    async def use() -> None:
        spool = Spool()
        await spool.append_chunks([b"x" * 100], disk_limit=100)
        other = Spool()
        with pytest.raises(ServiceUnavailable):
            await other.append_chunks([b"x"], disk_limit=100)
        del spool
        gc.collect()
        await other.append_chunks([b"x" * 100], disk_limit=100)
        await close_spools([other])

    asyncio.run(use())


def test_s41_a_caller_cancelled_while_it_writes_leaves_no_file(temporary: Path) -> None:
    async def use() -> Spool:
        spool = Spool()
        spool._lock.acquire()  # the write waits in its thread
        writing = asyncio.ensure_future(spool.append_chunks([b"x"], disk_limit=DISK))
        await asyncio.sleep(0)
        writing.cancel()
        closing = asyncio.ensure_future(close_spools([spool]))
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([writing, closing])
        spool._lock.release()
        while not spool._closed:
            await run_in_disk_thread(lambda: None)
        with pytest.raises(ValueError, match="closed"):
            await spool.read(0, -1)
        return spool

    spool = asyncio.run(use())
    assert spool.size == 0
    assert spool._file is None or spool._file.closed
    assert list(temporary.iterdir()) == []


def test_s41_a_write_that_comes_after_the_close_makes_no_file(temporary: Path) -> None:
    spool = Spool()
    spool.close()
    spool._write_chunks([b"late"])
    assert spool._file is None
    assert os.listdir(temporary) == []


def test_r25_files_are_not_written_in_the_threads_of_handlers() -> None:
    async def use() -> tuple[str, bool]:
        handlers = WorkerThreads(limit=1)
        release = threading.Event()
        busy = asyncio.ensure_future(handlers.run(release.wait))
        spool = Spool()
        await spool.append_chunks([b"x"], disk_limit=DISK)
        written = (await spool.read(0, -1)).decode()
        waiting = not busy.done()
        release.set()
        await busy
        handlers.shutdown()
        await close_spools([spool])
        return written, waiting

    assert asyncio.run(use()) == ("x", True)
