"""Limits of forms, so that no body costs more than its size in time, memory or disk.

They bound the parts of a multipart form (S-36), the fields of an urlencoded one (S-39), the size
from which an upload is on disk (S-41), and the disk of all uploads (S-42).

Numbers only. `_bodies.forms`, `_bodies.multipart`, `_bodies.parts` and `_bodies.spool` enforce
them; the `max_body` of a route replaces `urlencoded` and `total`.
"""

from __future__ import annotations

from dataclasses import dataclass

_KIB = 1024
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a form; sizes are in bytes.

    Attributes:
        urlencoded: an `application/x-www-form-urlencoded` body.
        total: a `multipart/form-data` body.
        parts: fields and files together.
        files: files among them.
        headers: header fields of one part.
        header_size: the header of one part.
        boundary: characters of the boundary (RFC 2046, 5.1.1).
        field: the value of one field.
        margin: text before the first and after the last boundary.
        spool: a file that stays in memory; a larger one goes to disk.
        disk: all files on disk that the process holds at one time.
        memory: all forms in memory that the process holds at one time.
    """

    urlencoded: int = _MIB
    total: int = 32 * _MIB
    parts: int = 1000
    files: int = 100
    headers: int = 16
    header_size: int = 8 * _KIB
    boundary: int = 70
    field: int = 512 * _KIB
    margin: int = 4 * _KIB
    spool: int = _MIB
    disk: int = 256 * _MIB
    memory: int = 64 * _MIB


DEFAULT_LIMITS = Limits()
