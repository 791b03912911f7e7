"""A regular file that is read from worker threads, and can be closed while one of them reads.

Blocking calls, each short, each under one lock: a read in progress when its request is cancelled
ends before the file is closed, and never reads from another file that reuses the descriptor number.
Other kinds of files are refused without blocking on them (S-47, S-122).
"""

from __future__ import annotations

import os
import stat
import threading
from io import FileIO

# A FIFO without a writer opens immediately, and no device becomes the controlling terminal.
_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class NotRegularFileError(OSError):
    """The path names something other than a regular file: a folder, a FIFO, a device."""


class RegularFile:
    """Open, read and close one file, from any thread.

    Args:
        path: the path of the file.
        follow: False to refuse a symbolic link at the end of the path, if the system supports it.
    """

    __slots__ = ("_file", "_follow", "_lock", "closed", "path")

    def __init__(self, path: str, *, follow: bool = True) -> None:
        self.path = path
        self.closed = False
        self._file: FileIO | None = None
        self._follow = follow
        self._lock = threading.Lock()

    def open(self) -> os.stat_result:
        """Open the file and return its `stat` result.

        Raises:
            OSError: when it cannot be opened, or was closed before.
            NotRegularFileError: when it is no regular file.
            ValueError: for an invalid path, such as one with a NUL.
        """
        with self._lock:
            if self.closed:
                raise OSError(f"{self.path!r} was closed before it was opened")
            self._file = file = FileIO(self.path, opener=self._open_descriptor)
            # of the open file: the path may name another one by now
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                self._close()
                message = f"A file response needs a regular file, got {self.path!r}"
                raise NotRegularFileError(message)
            return facts

    def read(self, start: int, length: int) -> bytes:
        """Return at least one and at most `length` bytes from `start`.

        Raises:
            OSError: when the disk fails, when the file is closed, or when it was truncated and ends
                before `start`.
        """
        with self._lock:
            if self._file is None:
                raise OSError(f"{self.path!r} is closed")
            self._file.seek(start)
            data = self._file.read(length)
        if not data:
            raise OSError(f"{self.path!r} became shorter while it was sent")
        return data

    def close(self) -> None:
        """Close the file after a call in progress; a second call does nothing."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        self.closed = True
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _open_descriptor(self, path: str, flags: int) -> int:
        return os.open(path, flags | _FLAGS | (0 if self._follow else _NO_LINK))
