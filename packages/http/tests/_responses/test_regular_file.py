"""A file in threads: regular or refused, closed for certain, never read after that."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from treefold_http._responses.regular_file import NotRegularFileError, RegularFile

WAIT = 10.0


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_file_is_opened_read_anywhere_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"0123456789")
    file = RegularFile(str(path))

    assert file.open().st_size == 10
    assert file.read(3, 4) == b"3456"
    assert file.read(0, 2) == b"01"
    assert file.read(8, 100) == b"89"
    assert not file.closed

    before = open_files()
    file.close()
    file.close()
    assert file.closed
    assert open_files() == before - 1


def test_a_file_that_became_shorter_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"0123456789")
    file = RegularFile(str(path))
    file.open()
    os.truncate(path, 4)

    with pytest.raises(OSError, match=r"a\.txt' became shorter while it was sent$"):
        file.read(4, 6)
    file.close()


def test_a_closed_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x")
    file = RegularFile(str(path))
    file.open()
    file.close()
    with pytest.raises(OSError, match=r"a\.txt' is closed$"):
        file.read(0, 1)


def test_a_file_that_was_closed_first_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x")
    file = RegularFile(str(path))
    file.close()
    before = open_files()
    with pytest.raises(OSError, match=r"a\.txt' was closed before it was opened$"):
        file.open()
    assert open_files() == before


def test_closing_waits_for_the_call_that_is_under_way(tmp_path: Path) -> None:
    # A FIFO in the place of a slow disk: the read waits until somebody writes.
    path = tmp_path / "slow"
    os.mkfifo(path)
    file = RegularFile(str(path))
    reading, order = threading.Event(), list[str]()
    number = os.open(path, os.O_RDWR)

    def read() -> None:
        with file._lock:
            reading.set()
            os.read(number, 1)
            order.append("read")

    def close() -> None:
        reading.wait(WAIT)
        file.close()
        order.append("closed")

    threads = [threading.Thread(target=read), threading.Thread(target=close)]
    for thread in threads:
        thread.start()
    reading.wait(WAIT)
    os.write(number, b"x")
    for thread in threads:
        thread.join(WAIT)
    os.close(number)
    assert order == ["read", "closed"]


def test_a_fifo_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    file, before = RegularFile(str(path)), open_files()
    with pytest.raises(
        NotRegularFileError, match=r"^A file response needs a regular file, got '.*pipe'$"
    ):
        file.open()
    assert file.closed
    assert open_files() == before


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("folder", "Is a directory"),
        ("socket", "No such device or address"),
        ("device", "^A file response needs a regular file, got '/dev/zero'$"),
        ("missing", "No such file or directory"),
        ("nul", "embedded null byte"),
    ],
)
def test_anything_else_is_refused_and_leaves_nothing_open(
    tmp_path: Path, kind: str, error: str
) -> None:
    place = tmp_path / "x"
    path = str(place)
    listener = socket.socket(socket.AF_UNIX)
    if kind == "folder":
        place.mkdir()
    elif kind == "socket":
        listener.bind(path)
    path = {"device": "/dev/zero", "nul": "a\0b"}.get(kind, path)
    before = open_files()
    with pytest.raises((OSError, ValueError), match=error):
        RegularFile(path).open()
    assert open_files() == before
    listener.close()


def test_a_link_at_the_end_is_followed_only_when_asked_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to("real")
    file = RegularFile(str(link))
    assert file.open().st_size == 1
    file.close()
    with pytest.raises(OSError, match="symbolic links"):
        RegularFile(str(link), follow=False).open()
