"""Content codings: the choice for a client, and incremental compressors (RFC 9110, 12.5.3).

Brotli and zstd are offered where a library for them is installed. Nothing here knows a request.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias


class Compressor(Protocol):
    """Compresses one answer."""

    def compress_chunk(self, data: bytes, *, last: bool) -> bytes:
        """Return all that the data so far has become; nothing is held back."""
        ...


NewCompressor: TypeAlias = Callable[[], Compressor]

MAX_FIELD = 512
"""Longer `Accept-Encoding` fields choose nothing."""


class _Gzip:
    def __init__(self, level: int) -> None:
        # 16 asks zlib for the format of gzip (RFC 1952), else it writes its own
        self._compress = zlib.compressobj(level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)

    def compress_chunk(self, data: bytes, *, last: bool) -> bytes:
        mode = zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH
        return self._compress.compress(data) + self._compress.flush(mode)


class _Brotli:
    def __init__(self, brotli: Any, quality: int) -> None:
        self._compress = brotli.Compressor(quality=quality)

    def compress_chunk(self, data: bytes, *, last: bool) -> bytes:
        made: bytes = self._compress.process(data)
        return made + (self._compress.finish() if last else self._compress.flush())


class _Zstandard:
    """The library `zstandard`."""

    def __init__(self, zstandard: Any, level: int) -> None:
        self._library = zstandard
        self._compress = zstandard.ZstdCompressor(level=level).compressobj()

    def compress_chunk(self, data: bytes, *, last: bool) -> bytes:
        kind = "COMPRESSOBJ_FLUSH_FINISH" if last else "COMPRESSOBJ_FLUSH_BLOCK"
        made: bytes = self._compress.compress(data)
        return made + self._compress.flush(getattr(self._library, kind))


class _StandardZstd:
    """The module `compression.zstd` of Python 3.14."""

    def __init__(self, zstd: Any, level: int) -> None:
        self._compress = zstd.ZstdCompressor(level)
        self._modes = zstd.ZstdCompressor.FLUSH_BLOCK, zstd.ZstdCompressor.FLUSH_FRAME

    def compress_chunk(self, data: bytes, *, last: bool) -> bytes:
        made: bytes = self._compress.compress(data, mode=self._modes[last])
        return made


_LIBRARIES: dict[str, tuple[tuple[str, Callable[[Any, int], Compressor], int], ...]] = {
    "zstd": (("compression.zstd", _StandardZstd, 3), ("zstandard", _Zstandard, 3)),
    # 4, since the default of the library (11) is for files that are compressed once
    "br": (("brotli", _Brotli, 4), ("brotlicffi", _Brotli, 4)),
}


def find_available_compressors(level: int) -> dict[str, NewCompressor]:
    """Return the codings that this interpreter can make, the preferred one first.

    Args:
        level: of gzip, 1 to 9.
    """
    found: dict[str, NewCompressor] = {}
    for name, libraries in _LIBRARIES.items():
        for module, kind, own_level in libraries:
            try:
                library = importlib.import_module(module)
            except ImportError:
                continue
            # defaults keep the values of this round; a closure would read those of the last one
            found[name] = lambda kind=kind, library=library, level=own_level: kind(library, level)
            break
    found["gzip"] = lambda: _Gzip(level)
    return found


# bounded, since clients choose the text; browsers send a few different ones
@lru_cache(maxsize=256)
def choose_content_coding(accept_encoding: str, offered: Sequence[str]) -> str | None:
    """Return the coding that a client likes best; None for the plain answer.

    Among equals the first one offered wins. Plain wins over a coding where the client says so.

    Args:
        accept_encoding: the `Accept-Encoding` field, its lines joined.
        offered: a tuple of codings.
    """
    weights = _parse_weights(accept_encoding)
    other = weights.get("*", 0.0)
    best = max(offered, key=lambda name: weights.get(name, other), default="")
    weight = weights.get(best, other)
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else None


def _parse_weights(accept_encoding: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    if len(accept_encoding) > MAX_FIELD:
        return weights
    for member in accept_encoding.split(","):
        name, *parameters = (part.strip().lower() for part in member.split(";"))
        weight = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            weight = _parse_quality(value.strip()) if key.strip() == "q" else 0.0
        weights[name] = weight
    return weights


def _parse_quality(text: str) -> float:
    """A weight (RFC 9110, 12.4.2); 0 for a text that is none."""
    # `"²".isdigit()` is true, and `float` raises for it; "0.123" are the most characters
    digits = text.replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit() and text[:1].isdigit()) or len(text) > 5:
        return 0.0
    value = float(text)
    return value if value <= 1 else 0.0
