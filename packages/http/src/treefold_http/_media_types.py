"""The media type of a file, by its name: a fixed table.

The table of the operating system differs between machines, and responses must not. An unlisted
suffix is `application/octet-stream`, which a browser saves and never runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

OTHER = "application/octet-stream"

_TEXT: Mapping[str, str] = {
    "css": "text/css",
    "csv": "text/csv",
    "htm": "text/html",
    "html": "text/html",
    "ics": "text/calendar",
    "js": "text/javascript",
    "log": "text/plain",
    "md": "text/markdown",
    "mjs": "text/javascript",
    "text": "text/plain",
    "txt": "text/plain",
    "vcf": "text/vcard",
    "vtt": "text/vtt",
}

_BINARY: Mapping[str, str] = {
    "7z": "application/x-7z-compressed",
    "aac": "audio/aac",
    "apng": "image/apng",
    "atom": "application/atom+xml",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "bz2": "application/x-bzip2",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "epub": "application/epub+zip",
    "flac": "audio/flac",
    "geojson": "application/geo+json",
    "gif": "image/gif",
    "gz": "application/gzip",
    "ico": "image/vnd.microsoft.icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "jsonld": "application/ld+json",
    "m4a": "audio/mp4",
    "m4v": "video/mp4",
    "map": "application/json",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "mpeg": "video/mpeg",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "oga": "audio/ogg",
    "ogg": "audio/ogg",
    "ogv": "video/ogg",
    "opus": "audio/ogg",
    "otf": "font/otf",
    "parquet": "application/vnd.apache.parquet",
    "pdf": "application/pdf",
    "png": "image/png",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "rss": "application/rss+xml",
    "rtf": "application/rtf",
    "svg": "image/svg+xml",
    "tar": "application/x-tar",
    "tgz": "application/gzip",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "ttf": "font/ttf",
    "wasm": "application/wasm",
    "wav": "audio/wav",
    "weba": "audio/webm",
    "webm": "video/webm",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "xhtml": "application/xhtml+xml",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
    "zst": "application/zstd",
}

MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {suffix: f"{kind}; charset=utf-8" for suffix, kind in _TEXT.items()} | dict(_BINARY)
)
"""Suffix in lower case, without the dot, to media type."""


def media_type_of(name: str) -> str:
    """Return the media type of a file name, with a charset for text, by its last suffix."""
    stem, dot, suffix = name.rpartition(".")
    return MEDIA_TYPES.get(suffix.lower(), OTHER) if stem and dot else OTHER
