"""Text on SQLite as PostgreSQL computes it: letter by letter, cut and filled by characters."""

from __future__ import annotations

import functools
import hashlib
import re
import sqlite3
from collections.abc import Callable
from typing import Any, cast

from treefold_orm._drivers.data_errors import LENGTH, LONG
from treefold_orm._drivers.sqlite_errors import refuse

_LONGEST = 2**28  # characters of a made text; PostgreSQL stops near it too


def register(raw: sqlite3.Connection) -> None:
    """Register the functions the dialect uses."""
    for name, (size, function) in _FUNCTIONS.items():
        raw.create_function(f"treefold_{name}", size, function, deterministic=True)


@functools.lru_cache(maxsize=4096)
def _small(letter: str) -> str:
    # one letter never becomes several, and a sigma does not look where it stands
    return letter.lower()[0]


@functools.lru_cache(maxsize=4096)
def _large(letter: str) -> str:
    for made in (letter.upper(), letter.title()):
        if len(made) == 1:
            return made
    return letter


def _lower(value: Any) -> str | None:
    if value is None:
        return None
    text = str(value)
    return text.lower() if text.isascii() else "".join(map(_small, text))


def _upper(value: Any) -> str | None:
    if value is None:
        return None
    text = str(value)
    return text.upper() if text.isascii() else "".join(map(_large, text))


def _ends(text: Any, ending: Any) -> int | None:
    return None if text is None or ending is None else int(str(text).endswith(str(ending)))


@functools.lru_cache(maxsize=256)
def _pattern(pattern: str, blind: int) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE if blind else 0)


def _matches(text: Any, pattern: Any, blind: int) -> int | None:
    if text is None or pattern is None:
        return None
    return int(_pattern(str(pattern), blind).search(str(text)) is not None)


def _reverse(text: str | None) -> str | None:
    return None if text is None else text[::-1]


def _left(text: str | None, length: int | None) -> str | None:
    return None if text is None or length is None else text[:length]


def _right(text: str | None, length: int | None) -> str | None:
    if text is None or length is None:
        return None
    return text[max(len(text) - length, 0) :] if length > 0 else text[-length:] if length else ""


def _substr(text: str | None, start: int | None, *length: int | None) -> str | None:
    if text is None or start is None or None in length:
        return None
    if not length:
        return text[max(start - 1, 0) :]
    (count,) = cast("tuple[int]", length)
    if count < 0:
        refuse(LENGTH)
    return text[max(start - 1, 0) : max(start - 1 + count, 0)]


def _filling(length: int, text: str, fill: str) -> str:
    missing = length - len(text)
    if missing <= 0 or not fill:
        return ""
    _check_length(length)
    return (fill * (missing // len(fill) + 1))[:missing]


def _lpad(text: str | None, length: int | None, fill: str | None) -> str | None:
    if text is None or length is None or fill is None:
        return None
    return _filling(length, text, fill) + text[: max(length, 0)]


def _rpad(text: str | None, length: int | None, fill: str | None) -> str | None:
    if text is None or length is None or fill is None:
        return None
    return text[: max(length, 0)] + _filling(length, text, fill)


def _repeat(text: str | None, number: int | None) -> str | None:
    if text is None or number is None:
        return None
    _check_length(len(text) * number)
    return text * number


def _check_length(length: int) -> None:
    if length >= _LONGEST:
        refuse(LONG)


def _md5(text: str | None) -> str | None:
    return None if text is None else hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _sha256(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


_FUNCTIONS = cast(
    "dict[str, tuple[int, Callable[..., Any]]]",
    {
        "ends": (2, _ends),
        "fold": (1, _lower),
        "left": (2, _left),
        "lower": (1, _lower),
        "lpad": (3, _lpad),
        "md5": (1, _md5),
        "regex": (3, _matches),
        "repeat": (2, _repeat),
        "reverse": (1, _reverse),
        "right": (2, _right),
        "rpad": (3, _rpad),
        "sha256": (1, _sha256),
        "substr": (-1, _substr),
        "upper": (1, _upper),
    },
)
