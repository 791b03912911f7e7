"""One stream and the writing of bytes to it: by file descriptor, or as text without one.

Reports the number of written bytes and a failure of the stream, which are handled elsewhere. The
descriptor is looked up at every write, so that lines reach a replaced descriptor 2 (a supervisor, a
test with `capfd`) and a replaced `sys.stderr` (`capsys`, `redirect_stderr`).
"""

import os
import select
import stat
from time import monotonic
from typing import TextIO

ATOMIC = 4096
"""Bytes that a writable pipe accepts without blocking, in one piece."""

_COLOURS = {
    f"[{level}]": f"\x1b[{code}m[{level}]\x1b[0m"
    for level, code in (
        *(("DEBUG", 36), ("INFO", 32), ("WARNING", 33), ("ERROR", 31), ("CRITICAL", 35)),
    )
}


def supports_colour(stream: TextIO | None) -> bool:
    """Return True if level prefixes are coloured: on a terminal, unless NO_COLOR is set."""
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    try:
        return stream.isatty()
    except Exception:  # a stand-in for the stream may raise anything
        return False


def colour_level(entry: str) -> str:
    """Return the entry with its `[LEVEL]` coloured; an unknown level stays plain."""
    level, space, rest = entry.partition(" ")
    return f"{_COLOURS.get(level, level)}{space}{rest}"


def write_to_stream(
    stream: TextIO | None, data: memoryview, *, deadline: float | None
) -> tuple[int, bool]:
    """Write bytes to the stream.

    Args:
        stream: the stream, or None in a process without standard error.
        data: whole lines in UTF-8.
        deadline: the monotonic time of the last attempt, or None to wait without limit.

    Returns the number of written bytes, and True if the stream failed. Fewer bytes without a
    failure mean that the deadline passed.
    """
    if (descriptor := _find_descriptor(stream)) is None:
        return _write_text(stream, data)
    sent = 0
    try:
        whole = deadline is None or stat.S_ISREG(os.fstat(descriptor).st_mode)
        while sent < len(data):
            if not whole and not _wait_until_writable(descriptor, deadline):
                break
            piece = data[sent:] if whole else _slice_first_whole_lines(data[sent:])
            try:
                sent += os.write(descriptor, piece)
            except BlockingIOError:  # another owner of the descriptor made it non-blocking
                if not _wait_until_writable(descriptor, deadline):
                    break
    except OSError:
        return sent, True
    return sent, False


def _find_descriptor(stream: TextIO | None) -> int | None:
    try:
        return None if stream is None else stream.fileno()
    except Exception:  # captured by a test, closed, or a replacement without a descriptor
        return None


def _write_text(stream: TextIO | None, data: memoryview) -> tuple[int, bool]:
    if stream is None:
        return 0, True
    text = str(data, "utf-8", "replace")
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            stream.write(text.encode("ascii", "backslashreplace").decode("ascii"))
        stream.flush()
    except Exception:  # a stand-in for the stream may raise anything
        return 0, True
    return len(data), False


def _slice_first_whole_lines(data: memoryview) -> memoryview:
    if len(data) <= ATOMIC:
        return data
    # Several processes may share the pipe: end each piece at the end of a line if possible.
    end = bytes(data[:ATOMIC]).rfind(b"\n") + 1
    return data[: end or ATOMIC]


def _wait_until_writable(descriptor: int, deadline: float | None) -> bool:
    if not hasattr(select, "poll"):  # Windows: writing is the only way to know
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    patience = None if deadline is None else max(0.0, deadline - monotonic()) * 1000
    return bool(poll.poll(patience))
