"""The files that are served: read once, each with its compressed forms and its type.

All of them share one digest, which is part of every URL: the content of a URL never
changes, so it may be cached without limit. Compressed forms are matched by the content of the file,
so an outdated form of an edited source is never served.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_TYPES = {
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
}
VENDOR = "swagger-ui"
"""The folder of the third-party files, below `assets/` and in the addresses."""


class AssetsMissingError(Exception):
    """The third-party files are not there: the package was copied and not installed."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file: its type, its bytes, and the same compressed by name of the coding."""

    content_type: bytes
    body: bytes
    encoded: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Assets:
    """Every file by name, and the digest of them all."""

    digest: str
    files: Mapping[str, Asset]


@cache
def load_assets() -> Assets:
    """Read the files once per process; later calls return the same object.

    Raises:
        AssetsMissingError: where the build hook has never run.
    """
    built = _HERE / "assets"
    paths = {path.name: path for path in sorted((_HERE / "ui").iterdir()) if path.suffix in _TYPES}
    vendor = built / VENDOR
    if not vendor.is_dir():
        raise AssetsMissingError(
            f"There are no assets in {str(built)!r};"
            " install treefold-docs-ui with pip, which makes them"
        )
    paths |= {
        f"{VENDOR}/{path.name}": path for path in sorted(vendor.iterdir()) if path.suffix in _TYPES
    }
    digest = hashlib.sha256()
    files: dict[str, Asset] = {}
    for name, path in paths.items():
        body = path.read_bytes()
        identity = hashlib.sha256(body).hexdigest()
        digest.update(f"{name} {identity}\n".encode())
        files[name] = Asset(
            _TYPES[path.suffix], body, _load_encoded(built / "packed" / identity, body)
        )
    return Assets(digest.hexdigest()[:20], files)


def _load_encoded(packed: Path, body: bytes) -> Mapping[bytes, bytes]:
    brotli, gzipped = packed.with_suffix(".br"), packed.with_suffix(".gz")
    encoded: dict[bytes, bytes] = {}
    if brotli.is_file():
        encoded[b"br"] = brotli.read_bytes()
    encoded[b"gzip"] = (
        gzipped.read_bytes() if gzipped.is_file() else gzip.compress(body, 9, mtime=0)
    )
    return encoded
