"""One stream: descriptor or text, failures, deadlines, colours."""

import io
import os
import pty
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, TextIO

import pytest

from treefold_logging._stream import colour_level, supports_colour, write_to_stream

DATA = memoryview("a line é\n".encode())


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0), os.fdopen(write, "w") as stream:
        yield read, stream


def test_bytes_go_to_the_descriptor_of_the_moment(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w") as stream, (tmp_path / "b").open("w") as other:
        assert write_to_stream(stream, DATA, deadline=None) == (len(DATA), False)
        os.dup2(other.fileno(), stream.fileno())
        assert write_to_stream(stream, DATA, deadline=None) == (len(DATA), False)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == DATA


def test_a_stream_without_a_descriptor_gets_text() -> None:
    stream = io.StringIO()
    assert write_to_stream(stream, DATA, deadline=None) == (len(DATA), False)
    assert stream.getvalue() == "a line é\n"


def test_what_a_text_stream_cannot_encode_is_escaped() -> None:
    class Ascii(io.StringIO):
        def write(self, text: str, /) -> int:
            text.encode("ascii")
            return super().write(text)

    stream = Ascii()
    assert write_to_stream(stream, DATA, deadline=None) == (len(DATA), False)
    assert stream.getvalue() == "a line \\xe9\n"


def test_a_process_without_standard_error_loses_the_lines() -> None:
    assert write_to_stream(None, DATA, deadline=None) == (0, True)


def test_a_closed_stream_fails() -> None:
    stream = io.StringIO()
    stream.close()
    assert write_to_stream(stream, DATA, deadline=None) == (0, True)


def test_a_pipe_closed_by_its_reader_fails() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stream:
        assert write_to_stream(stream, DATA, deadline=None) == (0, True)


def test_a_full_disk_fails() -> None:
    with open("/dev/full", "w") as stream:
        assert write_to_stream(stream, DATA, deadline=None) == (0, True)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_pipe_that_nobody_reads_takes_what_fits_until_the_deadline(
    pipe: tuple[int, TextIO], blocking: bool
) -> None:
    read, stream = pipe
    os.set_blocking(stream.fileno(), blocking)
    data = memoryview((b"x" * 99 + b"\n") * 5000)
    sent, failed = write_to_stream(stream, data, deadline=monotonic() + 0.01)
    assert not failed
    assert 0 < sent < len(data)
    assert os.read(read, sent) == data[:sent]


def test_pieces_end_with_a_line_so_that_processes_can_share_a_pipe(
    pipe: tuple[int, TextIO],
) -> None:
    _, stream = pipe
    sent, _ = write_to_stream(
        stream, memoryview((b"x" * 99 + b"\n") * 5000), deadline=monotonic() + 0.01
    )
    assert sent % 100 == 0


def test_a_line_longer_than_a_piece_goes_through(pipe: tuple[int, TextIO]) -> None:
    read, stream = pipe
    data = memoryview(b"x" * 10_000 + b"\n")
    assert write_to_stream(stream, data, deadline=monotonic() + 1) == (len(data), False)
    assert os.read(read, 20_000) == data


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ("[INFO] GET /\n", "\x1b[32m[INFO]\x1b[0m GET /\n"),
        ("[ERROR] x\n    | y\n", "\x1b[31m[ERROR]\x1b[0m x\n    | y\n"),
        ("[AUDIT] x\n", "[AUDIT] x\n"),
        ('{"level":"INFO"}\n', '{"level":"INFO"}\n'),
    ],
)
def test_only_the_level_is_coloured(entry: str, shown: str) -> None:
    assert colour_level(entry) == shown


def test_a_terminal_is_coloured_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    main, terminal = pty.openpty()
    with os.fdopen(main, "rb", buffering=0), os.fdopen(terminal, "w") as stream:
        assert supports_colour(stream)
        monkeypatch.setenv("NO_COLOR", "1")
        assert not supports_colour(stream)


@pytest.mark.parametrize("stream", [None, io.StringIO(), object()])
def test_anything_else_is_plain(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert not supports_colour(stream)
