"""From entries to the standard error stream: a bounded buffer and the one thread that empties it.

Adding an entry takes no lock and makes no system call; entries too long to be bounded by their
number alone are counted under a lock. A thread that empties the buffer holds `_turn`, so order is
kept. If the stream fails or is not read, entries are dropped and counted, and no request waits or
fails. The content of entries is opaque, except that `[LEVEL]` at their start may be coloured.
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

from treefold_logging._stream import colour, deliver, is_coloured

if TYPE_CHECKING:
    from treefold_logging._tail import Tail

MAX_LINES = 20_000
"""Most entries in the buffer."""

MAX_CHARACTERS = 8 * 1024 * 1024
"""Most characters in the buffer: half for short entries, half for long ones."""

SHORT = MAX_CHARACTERS // 2 // MAX_LINES
"""Up to this length entries are bounded by their number alone."""

FEW = 500
"""As long as no more entries wait, those of a request are bounded by their number alone."""

MODEST = 4096
"""Up to this length an entry is one of a request; `FEW` of them are 2 MiB."""

CROWDED = MAX_LINES // 4
"""Number of entries from which the thread writes without waiting for more."""

INTERVAL = 0.02
"""Seconds during which the thread collects one batch."""

PATIENCE = 1.0
"""Seconds that an urgent entry waits for a stream that is not read."""


def standard_error() -> TextIO | None:
    """Return the current standard error stream, or None in a process without one."""
    return sys.stderr


def text_notice(dropped: int) -> str:
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
        stream: Callable[[], TextIO | None] = standard_error,
        notice: Callable[[int], str] = text_notice,
    ) -> None:
        self.stream = stream
        self.notice = notice
        self.entries: list[str] = []
        self.tail: Tail | None = None
        self.begin()

    def begin(self) -> None:
        """Reset the writer: a forked child starts empty, with its own locks and thread."""
        self.entries.clear()
        self.dropped = 0
        self._long = 0
        self._batch: list[str] = []
        self._data = memoryview(b"")
        self._sent = 0
        self._noticed = 0
        self._taken = 0
        self._torn = False
        self._stalled = False
        self._busy = False
        self._direct = False
        self._thread: threading.Thread | None = None
        self._count = threading.RLock()  # reentrant: signal handlers log too
        self._turn = threading.RLock()
        self._gate = threading.Lock()
        self._gate.acquire()
        self._parked = True

    @property
    def is_resting(self) -> bool:
        """True if the thread sleeps until the next entry, or has not been started yet."""
        return self._parked

    def add(self, entry: str) -> None:
        """Append an entry for the thread to write; a full buffer drops it."""
        entries = self.entries
        size, waiting = len(entry), len(entries)
        if (size <= MODEST and waiting < FEW) or (size <= SHORT and waiting < CROWDED):
            entries.append(entry)
        else:
            self._add_counted(entry)
        if self._parked:
            self._wake()

    def add_now(self, entry: str) -> None:
        """Append an entry, and write it with all earlier ones at once."""
        if len(self.entries) >= MAX_LINES and not self._stalled:
            self.drain(PATIENCE)
        self.add(entry)
        if not self._stalled:
            self.drain(PATIENCE)

    def drain(self, patience: float | None = None) -> bool:
        """Write the buffered entries in the calling thread.

        Args:
            patience: seconds to wait for other writers and for the stream; None is no limit.

        Returns True when the stream accepted every entry that was buffered at the call.
        """
        deadline = None if patience is None else monotonic() + patience
        if not self._turn.acquire(timeout=-1 if patience is None else max(patience, 0)):
            self._stalled = True
            return False
        try:
            if self._busy:  # a signal handler interrupted the drain of its own thread
                return False
            self._busy = True
            try:
                # First the rest of an earlier call, then new entries.
                return self._write(deadline) and self._take() and self._write(deadline)
            finally:
                self._busy = False
        finally:
            self._turn.release()

    def close(self) -> None:
        """Write the buffered entries; later entries are written immediately."""
        self._direct = self._parked = True
        self.drain(5.0)

    def _add_counted(self, entry: str) -> None:
        size = len(entry) if len(entry) > SHORT else 0
        with self._count:
            if len(self.entries) >= MAX_LINES or self._long + size > MAX_CHARACTERS // 2:
                self.dropped += 1
            else:
                self._long += size
                self.entries.append(entry)
        if len(self.entries) >= CROWDED:
            self._open_gate()

    def _wake(self) -> None:
        if not self._direct:
            self._parked = False
            if self._thread is not None:
                self._open_gate()
                return
            if self._start():
                return
            self._parked = True
        if not self._stalled:
            self.drain(PATIENCE)

    def _open_gate(self) -> None:
        try:
            if self._gate.locked():
                self._gate.release()
        except RuntimeError:  # another thread was first
            return

    def _start(self) -> bool:
        with self._count:
            if self._thread is not None:
                return True
            self._thread = threading.Thread(target=self._run, name="treefold-log", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # no more threads, or the interpreter is ending
                self._thread = None
                return False
        return True

    def _run(self) -> None:
        while True:
            self._gate.acquire(timeout=INTERVAL)
            if self.entries or self._data:
                with suppress(Exception):  # for instance out of memory; the entries are kept
                    self.drain()
                continue
            self._parked = True
            if not self.entries:  # an entry added in between did not wake the thread
                self._gate.acquire()
            self._parked = self._direct

    def _take(self) -> bool:
        entries = self.entries
        batch = entries[: len(entries)]
        taken = len(batch)
        with self._count:
            self._noticed = self.dropped
            self._taken = (
                sum([len(entry) for entry in batch if len(entry) > SHORT]) if self._long else 0
            )
        if self._noticed:
            batch.append(self.notice(self._noticed))
        if not batch:
            return True
        if self.tail is not None:
            self.tail.take(batch)
        if is_coloured(self.stream()):
            batch = [colour(entry) for entry in batch]
        text = "".join(batch)
        if self._torn:  # the stream failed within a line: end that line first
            text = f"\n{text}"
        self._batch = batch
        self._sent = 0
        self._data = memoryview(text.encode("utf-8", "backslashreplace"))
        del entries[:taken]
        return True

    def _write(self, deadline: float | None) -> bool:
        if not self._data:
            return True
        sent, failed = deliver(self.stream(), self._data[self._sent :], deadline=deadline)
        self._sent += sent
        done = self._sent == len(self._data)
        if not done and not failed:  # the deadline passed; the thread may wait longer
            self._stalled = True
            self._open_gate()
            return False
        self._stalled = False
        if sent:
            self._torn = self._data[self._sent - 1] != ord("\n")
        with self._count:
            self.dropped += self._lost() if failed else -self._noticed
            self._long = max(0, self._long - self._taken)  # some were not counted
        self._batch = []
        self._data = memoryview(b"")
        return done

    def _lost(self) -> int:
        left = len(self._data) - self._sent
        lost = -1 if self._noticed else 0  # the notice, always last, does not count as lost
        for entry in reversed(self._batch):
            if left <= 0:
                break
            left -= len(entry.encode("utf-8", "backslashreplace"))
            lost += 1
        return lost


WRITER = Writer()
"""The writer of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WRITER.begin)
atexit.register(WRITER.close)
