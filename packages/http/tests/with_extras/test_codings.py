"""Brotli and zstd of the extra `compress`: whole answers, streams, what is offered."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http.middleware._codings import find_available_compressors

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

brotli: Any = importlib.import_module("brotli")  # it has no type stubs
zstd: Any = importlib.import_module(
    "zstandard" if sys.version_info < (3, 14) else "compression.zstd"
)

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]


def reader_of(coding: str) -> Callable[[bytes], bytes]:
    """Return what decompresses the pieces of one body."""
    if coding == "br":
        return brotli.Decompressor().process
    if sys.version_info < (3, 14):
        return zstd.ZstdDecompressor().decompressobj().decompress
    return zstd.ZstdDecompressor().decompress


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_an_answer_and_a_stream_are_compressed(project: Project, ask: Ask, coding: str) -> None:
    app = project(
        {
            "Api/v1/Text/Get.py": "async def handler(request):\n    return 'words ' * 30_000\n",
            "Api/v1/Stream/Get.py": "import asyncio\n"
            "from treefold_http import StreamingResponse\n"
            "async def chunks():\n    yield 'one '\n    await asyncio.sleep(0)\n    yield 'two'\n"
            "async def handler(request):\n"
            "    return StreamingResponse(chunks(), media_type='text/plain')\n",
            "Middleware/__init__.py": "from treefold_http.middleware import GZip\n"
            "middlewares = [GZip()]\n",
        }
    )
    headers = [("accept-encoding", f"gzip;q=0.5, {coding}")]

    for target, text in (("/v1/text", b"words " * 30_000), ("/v1/stream", b"one two")):
        answer = ask(app, "GET", target, headers=headers)
        assert answer.fields("content-encoding") == [coding]
        assert reader_of(coding)(answer.body) == text


def test_small_codings_come_first() -> None:
    assert list(find_available_compressors(6)) == ["zstd", "br", "gzip"]


@pytest.mark.parametrize("coding", ["zstd", "br"])
def test_nothing_is_held_back_between_pieces(coding: str) -> None:
    compressor = find_available_compressors(6)[coding]()
    reader = reader_of(coding)

    assert [reader(compressor.compress_chunk(b"piece", last=False)) for _ in range(3)] == [
        b"piece"
    ] * 3
    assert reader(compressor.compress_chunk(b"end", last=True)) == b"end"
