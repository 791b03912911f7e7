"""Multipart bodies, and a real Redis, for the tests that need an extra."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import http_redis
import pytest

Encode = Callable[..., bytes]
Chunked = Callable[[bytes, int], AsyncIterator[bytes]]

BOUNDARY = "X-bound"


def _encode(*parts: tuple[str, bytes] | tuple[str, bytes, str], end: bool = True) -> bytes:
    body = b""
    for disposition, data, *lines in parts:
        head = "\r\n".join([f"Content-Disposition: form-data; {disposition}", *lines])
        body += b"--%b\r\n%b\r\n\r\n%b\r\n" % (BOUNDARY.encode(), head.encode(), data)
    return body + (f"--{BOUNDARY}--\r\n".encode() if end else b"")


async def _chunked(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@pytest.fixture(scope="session")
def encode() -> Encode:
    """Encode parts, each a disposition, its data and further header lines, with `X-bound`."""
    return _encode


@pytest.fixture(scope="session")
def chunked() -> Chunked:
    """Give a body in chunks of a size."""
    return _chunked


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where spooled files are made during the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a real server."""
    with http_redis.server() as url:
        yield url
