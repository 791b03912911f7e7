"""`UploadFile`: one file of a form, in memory while it is small, on disk when it is not.

Its name and type come from the client, unchecked. Only `save` writes its bytes to a lasting path:
the author's path, or a safe name inside the author's directory.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from treefold_http._bodies.space import FormSpace
from treefold_http._bodies.spool import Spool, close_spools
from treefold_http._headers.file_names import sanitize_filename
from treefold_http._runtime.threads import run_in_disk_thread
from treefold_http._wire.datastructures import Headers
from treefold_http._wire.limits import Limits

CHUNK = 64 * 1024
"""Bytes of a piece of `async for`: each is one job of a thread if the file is on disk."""


class UploadFile:
    """A file of a form, from `request.files()` or a parameter annotated with this class.

    It lives as long as its request: save it, or read it, before the answer is sent.

    Args:
        content: its bytes.

    Attributes:
        filename: as the client sent it: a label to show, never a path to open.
        content_type: the media type as sent; empty without one.
        headers: the header fields of its part.
        size: how many bytes it has.
    """

    __slots__ = (
        *("_closed", "_held", "_position", "_spool"),
        *("content_type", "filename", "headers", "size"),
    )

    def __init__(
        self,
        filename: str = "",
        content_type: str = "",
        *,
        headers: Headers | None = None,
        content: bytes = b"",
    ) -> None:
        self.filename = filename
        self.content_type = content_type
        self.headers = Headers([]) if headers is None else headers
        self.size = len(content)
        # the bytes are in one of the two: in memory as pieces, or on disk
        self._held = [content] if content else []
        self._spool: Spool | None = None
        self._position = 0  # of the next `read`
        self._closed = False

    async def read(self, n: int = -1) -> bytes:
        """Return the next `n` bytes, or all the rest if `n` is negative; b"" at the end.

        Raises:
            ValueError: when it is closed.
        """
        self._check_open()
        if self._spool is not None:
            data = await self._spool.read(self._position, n)
        else:
            data = self._join_pieces()[self._position : None if n < 0 else self._position + n]
        self._position += len(data)
        return data

    async def seek(self, n: int) -> None:
        """Set the position of the next `read` to byte `n`, counted from the start.

        Raises:
            ValueError: when it is closed or `n` is negative.
        """
        self._check_open()
        if n < 0:
            raise ValueError(f"The position of seek() must be 0 or more, got {n!r}")
        self._position = n

    async def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Store the whole file, independent of the position of `read`.

        It is written beside its final path and renamed when complete, with the permissions of any
        new file. A cancelled caller stops waiting; the file may still appear.

        Args:
            path: an existing directory, where it gets a safe form of the client's name; or the full
                path of the file, taken exactly.
            overwrite: replace a file of that name instead of refusing.

        Returns:
            The path of the stored file.

        Raises:
            FileExistsError: when the name is taken.
            NotADirectoryError: when `path` ends in a separator and is no directory.
            OSError: when the disk write fails.
            ValueError: when it is closed.
        """
        self._check_open()
        # taken here: the request may end and close the upload while the thread writes
        spool, held = self._spool, self._held

        def write(file: BinaryIO) -> None:
            if spool is None:
                file.writelines(held)
            else:
                spool.copy_to(file)

        return await run_in_disk_thread(_save_file, path, self.filename, write, overwrite)

    async def close(self) -> None:
        """Delete its bytes, also from the disk; called at the end of the request."""
        await close_uploads([self])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self.read(CHUNK):
            yield chunk

    def __repr__(self) -> str:
        return f"<UploadFile {self.filename!r} {self.size} bytes>"

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("The upload is closed; read it before the request ends")

    def _join_pieces(self) -> bytes:
        if len(self._held) != 1:
            self._held = [b"".join(self._held)]
        return self._held[0]

    def _close_and_detach_spool(self) -> Spool | None:
        """Forget the bytes in memory; return the spool that is still to be closed."""
        spool, self._spool = self._spool, None
        self._closed, self._held = True, []
        return spool

    def _keep_pieces(self, held: list[bytes], size: int) -> None:
        """Take the pieces in memory, and the size of all pieces."""
        self._held, self.size = held, size

    async def _spill_pieces(
        self, held: list[bytes], reserved_size: int, limits: Limits, space: FormSpace
    ) -> None:
        """Write pieces to disk; `reserved_size` bytes before the last of them were reserved in
        memory.
        """
        if self._spool is None:
            self._spool = Spool(space)
            space.release_space(memory=reserved_size)
        await self._spool.append_chunks(held, disk_limit=limits.disk)


async def close_uploads(uploads: Iterable[UploadFile]) -> None:
    """Close many at once; those in memory need no thread."""
    if spools := list(filter(None, [upload._close_and_detach_spool() for upload in uploads])):  # pyright: ignore[reportPrivateUsage]
        await close_spools(spools)


def _choose_destination(path: str | os.PathLike[str], filename: str) -> Path:
    if os.path.isdir(path):
        return Path(path, sanitize_filename(filename))
    if os.fspath(path).endswith(("/", os.sep)):
        message = f"The folder of an upload must exist, got {os.fspath(path)!r}; create it first"
        raise NotADirectoryError(message)
    return Path(path)


def _save_file(
    path: str | os.PathLike[str], filename: str, write: Callable[[BinaryIO], None], overwrite: bool
) -> Path:
    target = _choose_destination(path, filename)
    # in the same folder, as a rename is atomic within one file system only
    sibling = target.with_name(f".{os.urandom(8).hex()}.part")
    try:
        # `x` does not open a link that another user has put there
        with open(sibling, "xb") as file:
            write(file)
        if not overwrite:
            # Reserve the name: of two concurrent saves, one fails.
            open(target, "xb").close()
        os.replace(sibling, target)
        return target
    except BaseException:
        sibling.unlink(missing_ok=True)
        raise
