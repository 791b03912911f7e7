"""Text on SQLite as PostgreSQL computes it: letter by letter, cut and filled by characters."""

from __future__ import annotations

import functools
import hashlib
import re
from typing import Any, cast

from treefold_orm._base.data_errors import LENGTH, LONG
from treefold_orm._sqlite.refusals import fail_statement

_LONGEST = 2**28  # characters of a made text; PostgreSQL stops near it too


@functools.lru_cache(maxsize=4096)
def _lower_letter(letter: str) -> str:
    # one letter never becomes several, and a sigma does not look where it stands
    return letter.lower()[0]


@functools.lru_cache(maxsize=4096)
def _upper_letter(letter: str) -> str:
    for made in (letter.upper(), letter.title()):
        if len(made) == 1:
            return made
    return letter


def sql_unhex(value: Any) -> bytes | None:
    return None if value is None else bytes.fromhex(value)


def sql_lower(value: Any) -> str | None:
    if value is None:
        return None
    text = str(value)
    # most text is ASCII, where the whole string gives the same at a fraction of the time
    return text.lower() if text.isascii() else "".join(map(_lower_letter, text))


sql_fold = sql_lower


def sql_upper(value: Any) -> str | None:
    if value is None:
        return None
    text = str(value)
    return text.upper() if text.isascii() else "".join(map(_upper_letter, text))


def sql_ends(text: Any, ending: Any) -> int | None:
    return None if text is None or ending is None else int(str(text).endswith(str(ending)))


@functools.lru_cache(maxsize=256)
def _compile_pattern(pattern: str, ignore_case: int) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE if ignore_case else 0)


def sql_regex(text: Any, pattern: Any, ignore_case: int) -> int | None:
    if text is None or pattern is None:
        return None
    return int(_compile_pattern(str(pattern), ignore_case).search(str(text)) is not None)


def sql_reverse(text: str | None) -> str | None:
    return None if text is None else text[::-1]


def sql_left(text: str | None, length: int | None) -> str | None:
    return None if text is None or length is None else text[:length]


def sql_right(text: str | None, length: int | None) -> str | None:
    if text is None or length is None:
        return None
    # right('abc', -1) is 'bc' in PostgreSQL; text[-0:] would be all of it
    return text[max(len(text) - length, 0) :] if length > 0 else text[-length:] if length else ""


def sql_substr(text: str | None, start: int | None, *length: int | None) -> str | None:
    if text is None or start is None or None in length:
        return None
    if not length:
        return text[max(start - 1, 0) :]
    (count,) = cast("tuple[int]", length)
    if count < 0:
        fail_statement(LENGTH)
    # positions before the first letter count: substr('abc', -1, 3) is 'a'
    return text[max(start - 1, 0) : max(start - 1 + count, 0)]


def _build_padding(length: int, text: str, fill: str) -> str:
    missing = length - len(text)
    if missing <= 0 or not fill:
        return ""
    # before the text is made, which could take all memory
    _check_text_length(length)
    return (fill * (missing // len(fill) + 1))[:missing]


def sql_lpad(text: str | None, length: int | None, fill: str | None) -> str | None:
    if text is None or length is None or fill is None:
        return None
    return _build_padding(length, text, fill) + text[: max(length, 0)]


def sql_rpad(text: str | None, length: int | None, fill: str | None) -> str | None:
    if text is None or length is None or fill is None:
        return None
    return text[: max(length, 0)] + _build_padding(length, text, fill)


def sql_repeat(text: str | None, count: int | None) -> str | None:
    if text is None or count is None:
        return None
    _check_text_length(len(text) * count)
    return text * count


def _check_text_length(length: int) -> None:
    if length >= _LONGEST:
        fail_statement(LONG)


def sql_md5(text: str | None) -> str | None:
    return None if text is None else hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def sql_sha256(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()
