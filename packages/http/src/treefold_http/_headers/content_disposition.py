"""`Content-Disposition` for responses (RFC 6266): one safe value for any file name.

A quote in a name would end it early, and the browser would save what follows: `a".bat` (S-46). Only
writes the field. Reading it from multipart bodies is another matter.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias
from urllib.parse import quote

Disposition: TypeAlias = Literal["attachment", "inline"]

_MAX_NAME = 255
"""Characters of a file name; file systems take about 255 bytes."""
_MAX_SUFFIX = 32
"""Characters from the last dot that count as a suffix, and stay when a name is shortened."""

# Controls, path separators of any system, and the marks that make `gpj.exe` read `exe.jpg`.
_dangerous = re.compile("[\x00-\x1f\x7f-\x9f/\\\\\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# escapes of a quote, a backslash or `%` are read differently by browsers (RFC 6266, appendix D)
_not_plain = re.compile("[^A-Za-z0-9 ._()-]")
_ATTR_CHARS = "!#$&+-.^_`|~"  # attr-char of RFC 8187, 3.2.1


def format_content_disposition(kind: Disposition, filename: str | None = None) -> str:
    """Write the value of the field.

    Args:
        kind: `attachment` to save, `inline` to show.
        filename: the name to save under. Controls, slashes and marks that turn text around become
            `_`; other characters outside letters, digits and ` ._()-` travel in `filename*`, with
            `_` in their place for clients that read only `filename`.

    Raises:
        ValueError: for another kind.
    """
    if kind not in ("attachment", "inline"):
        raise ValueError(f"A disposition must be 'attachment' or 'inline', got {kind!r}")
    if not filename:
        return kind
    # a name from a file system may hold lone surrogates, which `quote` refuses
    name = _shorten_file_name(_dangerous.sub("_", filename).encode("utf-8", "replace").decode())
    plain = _not_plain.sub("_", name)
    value = f'{kind}; filename="{plain}"'
    if plain == name:
        return value
    return f"{value}; filename*=UTF-8''{quote(name, safe=_ATTR_CHARS)}"


def _shorten_file_name(name: str) -> str:
    """Shorten a name that is too long for a file system; keep its start and its suffix."""
    if len(name) <= _MAX_NAME:
        return name
    dot = name.rfind(".", -_MAX_SUFFIX)
    suffix = name[dot:] if dot > 0 else ""
    return name[: _MAX_NAME - len(suffix)] + suffix
