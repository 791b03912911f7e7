"""From entries to the standard error stream: a bounded buffer and the one thread that empties it.

Adding an entry takes no lock and makes no system call; entries too long to be bounded by their
number alone are counted under a lock. A thread that empties the buffer holds `_write_lock`, so
order is kept. If the stream fails or is not read, entries are dropped and counted, and no request
waits or fails. The content of entries is opaque, except that `[LEVEL]` at their start may be
coloured.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from treefold_logging._stream import colour_level, supports_colour, write_to_stream

if TYPE_CHECKING:
    from treefold_logging._tail import Tail

MAX_LINES = 20_000
"""Most entries in the buffer."""

MAX_CHARS = 8 * 1024 * 1024
"""Most characters in the buffer: half for short entries, half for long ones."""

UNCOUNTED_CHARS = MAX_CHARS // 2 // MAX_LINES
"""Longest entry whose characters are not counted: the number of entries bounds them."""

FAST_PATH_LINES = 500
"""Up to this many waiting entries, those up to `FAST_PATH_CHARS` are not counted."""

FAST_PATH_CHARS = 4096
"""Longest entry of a request line; `FAST_PATH_LINES` of them are 2 MiB."""

WAKE_AT_LINES = MAX_LINES // 4
"""Number of entries from which the thread writes without waiting for more."""

BATCH_SECONDS = 0.02
"""Seconds during which the thread collects one batch."""

URGENT_TIMEOUT = 1.0
"""Seconds that an urgent entry waits for a stream that is not read."""


def find_standard_error() -> TextIO | None:
    """Return the current standard error stream, or None in a process without one."""
    return sys.stderr


def format_text_drop_notice(dropped: int) -> str:
    """Return the entry that reports dropped lines, in text form."""
    return f"[WARNING] Log lines were lost dropped={dropped}\n"


class Writer:
    """Collects entries and hands them to a stream in batches.

    Args:
        stream: returns the stream; called for every batch.
        notice: makes the entry that reports how many were dropped.
    """

    def __init__(
        self,
        stream: Callable[[], TextIO | None] = find_standard_error,
        notice: Callable[[int], str] = format_text_drop_notice,
    ) -> None:
        self.stream = stream
        self.notice = notice
        self.entries: list[str] = []
        self.tail: Tail | None = None
        self.reset_state()

    def reset_state(self) -> None:
        """Reset the writer: a forked child starts empty, with its own locks and thread."""
        self.entries.clear()
        self.dropped = 0
        self._counted_chars = 0
        self._batch: list[str] = []
        self._pending = memoryview(b"")
        self._sent = 0
        self._noticed_drops = 0
        self._taken_chars = 0
        self._is_mid_line = False
        self._is_stalled = False
        self._is_writing = False
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._count_lock = threading.RLock()  # reentrant: signal handlers log too
        self._write_lock = threading.RLock()
        self._gate = threading.Lock()
        self._gate.acquire()
        self._is_parked = True

    @property
    def is_thread_idle(self) -> bool:
        """True if the thread sleeps until the next entry, or has not been started yet."""
        return self._is_parked

    def add_entry(self, entry: str) -> None:
        """Append an entry for the thread to write; a full buffer drops it."""
        entries = self.entries
        size, waiting = len(entry), len(entries)
        if (size <= FAST_PATH_CHARS and waiting < FAST_PATH_LINES) or (
            size <= UNCOUNTED_CHARS and waiting < WAKE_AT_LINES
        ):
            entries.append(entry)
        else:
            self._add_entry_under_lock(entry)
        if self._is_parked:
            self._wake_thread()

    def add_and_write(self, entry: str) -> None:
        """Append an entry, and write it with all earlier ones at once."""
        if len(self.entries) >= MAX_LINES and not self._is_stalled:
            self.write_buffered(URGENT_TIMEOUT)
        self.add_entry(entry)
        if not self._is_stalled:
            self.write_buffered(URGENT_TIMEOUT)

    def write_buffered(self, timeout: float | None = None) -> bool:
        """Write the buffered entries in the calling thread.

        Args:
            timeout: seconds to wait for other writers and for the stream; None is no limit.

        Returns True when the stream accepted every entry that was buffered at the call.
        """
        deadline = None if timeout is None else monotonic() + timeout
        if not self._write_lock.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            self._is_stalled = True
            return False
        try:
            if self._is_writing:  # a signal handler interrupted the drain of its own thread
                return False
            self._is_writing = True
            try:
                # First the rest of an earlier call, then new entries.
                return (
                    self._write_pending_batch(deadline)
                    and self._prepare_next_batch()
                    and self._write_pending_batch(deadline)
                )
            finally:
                self._is_writing = False
        finally:
            self._write_lock.release()

    def close(self) -> None:
        """Write the buffered entries; later entries are written immediately."""
        self._is_closed = self._is_parked = True
        self.write_buffered(5.0)

    def _add_entry_under_lock(self, entry: str) -> None:
        size = len(entry) if len(entry) > UNCOUNTED_CHARS else 0
        with self._count_lock:
            if len(self.entries) >= MAX_LINES or self._counted_chars + size > MAX_CHARS // 2:
                self.dropped += 1
            else:
                self._counted_chars += size
                self.entries.append(entry)
        if len(self.entries) >= WAKE_AT_LINES:
            self._signal_writer_thread()

    def _wake_thread(self) -> None:
        if not self._is_closed:
            self._is_parked = False
            if self._thread is not None:
                self._signal_writer_thread()
                return
            if self._start_thread():
                return
            self._is_parked = True
        if not self._is_stalled:
            self.write_buffered(URGENT_TIMEOUT)

    def _signal_writer_thread(self) -> None:
        try:
            if self._gate.locked():
                self._gate.release()
        except RuntimeError:  # another thread was first
            return

    def _start_thread(self) -> bool:
        with self._count_lock:
            if self._thread is not None:
                return True
            self._thread = threading.Thread(
                target=self._run_writer_thread, name="treefold-log", daemon=True
            )
            try:
                self._thread.start()
            except RuntimeError:  # no more threads, or the interpreter is ending
                self._thread = None
                return False
        return True

    def _run_writer_thread(self) -> None:
        while True:
            self._gate.acquire(timeout=BATCH_SECONDS)
            if self.entries or self._pending:
                with suppress(Exception):  # for instance out of memory; the entries are kept
                    self.write_buffered()
                continue
            self._is_parked = True
            if not self.entries:  # an entry added in between did not wake the thread
                self._gate.acquire()
            self._is_parked = self._is_closed

    def _prepare_next_batch(self) -> bool:
        entries = self.entries
        batch = entries[: len(entries)]
        taken = len(batch)
        with self._count_lock:
            self._noticed_drops = self.dropped
            self._taken_chars = (
                sum([len(entry) for entry in batch if len(entry) > UNCOUNTED_CHARS])
                if self._counted_chars
                else 0
            )
        if self._noticed_drops:
            batch.append(self.notice(self._noticed_drops))
        if not batch:
            return True
        if self.tail is not None:
            self.tail.take(batch)
        if supports_colour(self.stream()):
            batch = [colour_level(entry) for entry in batch]
        text = "".join(batch)
        if self._is_mid_line:  # the stream failed within a line: end that line first
            text = f"\n{text}"
        self._batch = batch
        self._sent = 0
        self._pending = memoryview(text.encode("utf-8", "backslashreplace"))
        del entries[:taken]
        return True

    def _write_pending_batch(self, deadline: float | None) -> bool:
        if not self._pending:
            return True
        sent, failed = write_to_stream(
            self.stream(), self._pending[self._sent :], deadline=deadline
        )
        self._sent += sent
        done = self._sent == len(self._pending)
        if not done and not failed:  # the deadline passed; the thread may wait longer
            self._is_stalled = True
            self._signal_writer_thread()
            return False
        self._is_stalled = False
        if sent:
            self._is_mid_line = self._pending[self._sent - 1] != ord("\n")
        with self._count_lock:
            self.dropped += self._count_lost_entries() if failed else -self._noticed_drops
            self._counted_chars = max(
                0, self._counted_chars - self._taken_chars
            )  # some were not counted
        self._batch = []
        self._pending = memoryview(b"")
        return done

    def _count_lost_entries(self) -> int:
        left = len(self._pending) - self._sent
        lost = -1 if self._noticed_drops else 0  # the notice, always last, does not count as lost
        for entry in reversed(self._batch):
            if left <= 0:
                break
            left -= len(entry.encode("utf-8", "backslashreplace"))
            lost += 1
        return lost


WRITER = Writer()
"""The writer of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WRITER.reset_state)
atexit.register(WRITER.close)
