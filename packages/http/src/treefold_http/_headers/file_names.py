"""From a client's file name to one that is safe inside an application's directory (S-40).

Pure text, without access to a file system: a name that one system forbids is changed on all, so
that a directory can move from one system to another.
"""

from __future__ import annotations

import unicodedata

MAX_BYTES = 200
"""File systems take 255; the rest is for a number or a suffix that an application adds."""
FALLBACK = "upload"

_FORBIDDEN = '<>:"|?*'
_SUFFIX_BYTES = 20
"""Bytes behind the last dot that count as a suffix, and stay when a name is shortened."""
_EDGES = " .-"  # hidden files, options of commands, and final characters that Windows drops
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"]
)


def sanitize_filename(filename: str) -> str:
    r"""Reduce a file name to a base name that is harmless on every system.

    Text up to the last `/` or `\` and control or invisible characters are removed, characters that
    Windows forbids become `_`; no dot, dash or blank begins or ends the name; a device name such as
    `CON` gets a `_` in front; 200 bytes of UTF-8 at most, with the suffix kept.

    Returns:
        The name; `upload` if nothing remains.
    """
    base = filename.replace("\\", "/").rpartition("/")[2]
    shown = "".join(
        "_" if char in _FORBIDDEN else char
        for char in base
        # C: control, format (such as text direction), surrogate, private; Z: other blanks.
        if unicodedata.category(char)[0] not in "CZ" or char == " "
    )
    name = _shorten_name(unicodedata.normalize("NFC", shown).strip(_EDGES)) or FALLBACK
    # Windows takes `con.txt` and `con .txt` for the device as well
    if name.partition(".")[0].rstrip(" ").lower() in _DEVICES:
        return f"_{name}"
    return name


def _shorten_name(name: str) -> str:
    room = MAX_BYTES - 1  # one is for the "_" of a device name
    if len(name.encode()) <= room:
        return name
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix.encode()) > _SUFFIX_BYTES:
        stem, dot, suffix = name, "", ""
    room -= len((dot + suffix).encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(_EDGES) + dot + suffix
