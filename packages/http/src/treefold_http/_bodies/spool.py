"""Bytes of an upload on disk: a private unlinked file, used in threads of its own.

The file is made 0600 in a new 0700 directory and unlinked immediately if the system allows it, so
that no file is left behind however the process ends (S-41). The threads are not those of sync
handlers: a slow disk must not block handlers, nor handlers an upload (R-25).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import BinaryIO
from weakref import WeakSet

from treefold_http._bodies.space import FormSpace
from treefold_http._runtime.threads import run_in_disk_thread
from treefold_http._wire.errors import ServiceUnavailable

COPY = 256 * 1024
"""Bytes of one read while a file of a form is copied."""


_spools: WeakSet[Spool] = WeakSet()
_reserving = threading.Lock()


class Spool:
    """A temporary file with appends and random reads.

    Args:
        space: the room of its form.

    Attributes:
        size: bytes on disk, including those about to be written; 0 once closed.
    """

    __slots__ = ("__weakref__", "_closed", "_directory", "_file", "_lock", "_space", "size")

    def __init__(self, space: FormSpace | None = None) -> None:
        self.size = 0
        self._space = space
        self._closed = False
        self._directory = ""
        self._file: BinaryIO | None = None
        # A cancelled caller leaves its job running: closing waits until that job has ended.
        self._lock = threading.Lock()

    async def append_chunks(self, chunks: list[bytes], *, disk_limit: int) -> None:
        """Append chunks.

        Args:
            disk_limit: the most bytes that all spools of the process may take (S-42).

        Raises:
            ServiceUnavailable: when that limit is reached.
            OSError: when the disk write fails.
        """
        more = sum(map(len, chunks))
        if self._space is not None:
            await self._space.reserve_disk(more)
        self._reserve_bytes(more, disk_limit)
        await run_in_disk_thread(self._write_chunks, chunks)

    async def read(self, start: int, size: int) -> bytes:
        """Return up to `size` bytes from `start`; all that follow if `size` is negative."""
        return await run_in_disk_thread(self._read, start, size)

    def copy_to(self, target: BinaryIO) -> None:
        """Write everything into an open file; blocks, so call it in a thread."""
        start = 0
        while chunk := self._read(start, COPY):
            target.write(chunk)
            start += len(chunk)

    def _reserve_bytes(self, more: int, disk_limit: int) -> None:
        # Summed over live objects, so that an unclosed spool cannot hold its share for ever.
        with _reserving:
            if sum(spool.size for spool in _spools) + more > disk_limit:
                message = "Too many uploads at the same time; try again later"
                raise ServiceUnavailable(message, headers={"Retry-After": "10"})
            self.size += more
            _spools.add(self)

    def _write_chunks(self, chunks: list[bytes]) -> None:
        with self._lock:
            # the job of a cancelled caller may begin after the close
            if self._closed:
                return
            if self._file is None:
                self._file, self._directory = _open_private_temp_file()
            self._file.seek(0, os.SEEK_END)
            self._file.writelines(chunks)
            self._file.flush()  # so that a full disk fails the append, not a later read

    def _read(self, start: int, size: int) -> bytes:
        with self._lock:
            if self._file is None or self._closed:
                raise ValueError("The upload is closed; read it before the request ends")
            self._file.seek(start)
            return self._file.read(size)

    def close(self) -> None:
        """Remove the file; called in a worker thread."""
        with self._lock:
            self._closed = True
            if self._file is not None:
                with suppress(OSError):  # a full disk: the unwritten rest is no longer needed
                    self._file.close()
                _remove_directory(self._directory)
            if self._space is not None:
                self._space.release_space(disk=self.size)
            self.size = 0


async def close_spools(spools: Iterable[Spool]) -> None:
    """Remove the files, even if the caller is cancelled meanwhile."""
    await run_in_disk_thread(_close_all, list(spools))


def _close_all(spools: list[Spool]) -> None:
    for spool in spools:
        spool.close()


def _open_private_temp_file() -> tuple[BinaryIO, str]:
    import tempfile  # 4 ms: not imported without uploads

    directory = tempfile.mkdtemp(prefix="treefold-")
    try:
        return tempfile.TemporaryFile(dir=directory), directory
    finally:
        _remove_directory(directory)


def _remove_directory(directory: str) -> None:
    # On systems where an open file keeps its name (Windows), this succeeds after closing.
    with suppress(OSError):
        os.rmdir(directory)
