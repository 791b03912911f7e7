"""The media type of a file, by its name: a fixed table.

The table of the operating system differs between machines, and responses must not. An unlisted
suffix is `application/octet-stream`, which a browser saves and never runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

OTHER = "application/octet-stream"

_NAMED_AFTER_SUFFIX = {
    "application": "json pdf rtf wasm xml yaml zip",
    "audio": "aac flac ogg wav",
    "font": "otf ttf woff woff2",
    "image": "apng avif bmp gif jpeg png tiff webp",
    "text": "css csv html vtt",
    "video": "mp4 mpeg webm",
}
"""Family to the suffixes whose type has their name, such as `image/png`."""

_OTHERS = {
    "7z": "application/x-7z-compressed",
    "atom": "application/atom+xml",
    "bz2": "application/x-bzip2",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "epub": "application/epub+zip",
    "geojson": "application/geo+json",
    "gz": "application/gzip",
    "htm": "text/html",
    "ico": "image/vnd.microsoft.icon",
    "ics": "text/calendar",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "jsonld": "application/ld+json",
    "log": "text/plain",
    "m4a": "audio/mp4",
    "m4v": "video/mp4",
    "map": "application/json",
    "md": "text/markdown",
    "mjs": "text/javascript",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "oga": "audio/ogg",
    "ogv": "video/ogg",
    "opus": "audio/ogg",
    "parquet": "application/vnd.apache.parquet",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "rss": "application/rss+xml",
    "svg": "image/svg+xml",
    "tar": "application/x-tar",
    "text": "text/plain",
    "tgz": "application/gzip",
    "tif": "image/tiff",
    "txt": "text/plain",
    "vcf": "text/vcard",
    "weba": "audio/webm",
    "webmanifest": "application/manifest+json",
    "xhtml": "application/xhtml+xml",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "yml": "application/yaml",
    "zst": "application/zstd",
}

_KINDS = {s: f"{kind}/{s}" for kind, names in _NAMED_AFTER_SUFFIX.items() for s in names.split()}

MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        suffix: f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
        for suffix, kind in (_KINDS | _OTHERS).items()
    }
)
"""Suffix in lower case, without the dot, to media type."""


def guess_media_type(name: str) -> str:
    """Return the media type of a file name, with a charset for text, by its last suffix."""
    stem, dot, suffix = name.rpartition(".")
    # `.html` is a hidden file without a suffix
    return MEDIA_TYPES.get(suffix.lower(), OTHER) if stem and dot else OTHER


def is_json(content_type: str) -> bool:
    """Return True for the media types of body models: JSON, `+json`, or an empty type."""
    return content_type in ("", "application/json") or content_type.endswith("+json")
