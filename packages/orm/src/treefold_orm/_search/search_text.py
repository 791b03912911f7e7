"""SearchQuery: the text that is searched for, and how it reads in SQLite's FTS5.

No text is ever an error: FTS5 gets words in quotes only, joined by this module's own operators;
PostgreSQL has functions that take any text. No SQL.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Literal

from treefold_orm._base.errors import FieldError, FieldValueError

Kind = Literal["plain", "phrase", "websearch"]
KINDS: tuple[Kind, ...] = ("plain", "phrase", "websearch")
MAX_LENGTH = 1000
"""Characters of a search, which may come from a request: each word is one more condition."""

_NOTHING = '""'  # a phrase without words, which no row has
_PARTS = re.compile(r'(-?)"([^"]*)"|([^\s"]+)')


class SearchQuery:
    """The text of a search: `plain` text has all its words, a `phrase` has them in a row, and
    `websearch` knows `"a phrase"`, `or` and `-without`.

    Any text is fine, also one of a request. Raises `FieldError` for another kind, `FieldValueError`
    for more than 1,000 characters and what no text column keeps.
    """

    __slots__ = ("kind", "text")

    def __init__(self, text: str, *, kind: Kind = "plain") -> None:
        if kind not in KINDS:
            raise FieldError(
                f"kind={kind!r} is not a kind of search: use one of {', '.join(KINDS)}"
            )
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise _build_search_error(f"takes a str, not {type(text).__name__}")
        text = str.__str__(text)
        if len(text) > MAX_LENGTH:
            raise _build_search_error(f"longer than {MAX_LENGTH} characters ({len(text)})")
        if "\0" in text:
            raise _build_search_error("contains a NUL character")
        if not text.isascii() and any(unicodedata.category(letter) == "Cs" for letter in text):
            raise _build_search_error("contains a lone surrogate")
        self.text = text
        self.kind: Kind = kind

    def __repr__(self) -> str:
        return f"SearchQuery(..., kind={self.kind!r})"


def _build_search_error(reason: str) -> FieldValueError:
    return FieldValueError("value", "search", reason=reason)


def as_query(value: SearchQuery | str) -> SearchQuery:
    """A query of any form; bare text is `plain`."""
    return value if isinstance(value, SearchQuery) else SearchQuery(value)


def make_fts5_encoder(kind: str, columns: Sequence[str]) -> Callable[[str], str]:
    """The encoder from a query's text to FTS5's language; no `columns` means all."""
    write = {
        "plain": _build_fts5_plain,
        "phrase": _build_fts5_phrase,
        "websearch": _build_fts5_websearch,
    }[kind]
    return lambda text: _limit_to_columns(write(text) or _NOTHING, columns)


def make_fts5_exclusion_encoder(columns: Sequence[str]) -> Callable[[str], str | None]:
    """The encoder from the text of a websearch to what its rows lack, in FTS5's language: the rows
    that it does not match are found, too. None where there are no such rows.
    """

    def encode_text(text: str) -> str | None:
        found = _build_fts5_exclusion(text)
        return _limit_to_columns(found, columns) if found else None

    return encode_text


def _limit_to_columns(fts5_query: str, columns: Sequence[str]) -> str:
    if not columns:
        return fts5_query
    inside = " ".join(_quote_text(column) for column in columns)
    # in parentheses: the columns would hold for the first word alone otherwise
    return f"{{{inside}}} : ({fts5_query})"


def split_words(text: str) -> list[str]:
    """The words of a text, as FTS5's tokenizer finds them: letters, digits and their marks."""
    found: list[str] = []
    for letter in text:
        kind = unicodedata.category(letter)
        if kind[0] in "LN" or kind == "Co" or (kind[0] == "M" and found and found[-1]):
            if not found:
                found.append("")
            found[-1] += letter
        elif found and found[-1]:
            found.append("")
    return [word for word in found if word]


def _quote_text(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _build_fts5_plain(text: str) -> str:
    return " AND ".join(_quote_text(word) for word in split_words(text))


def _build_fts5_phrase(text: str) -> str:
    found = split_words(text)
    return _quote_text(" ".join(found)) if found else ""


def _build_fts5_websearch(text: str) -> str:
    # NOT of FTS5 stands between two sides: a branch that only excludes has no left one
    branches = _parse_websearch(text)
    return " OR ".join(_build_fts5_branch(*branch) for branch in branches if branch[0])


def _build_fts5_exclusion(text: str) -> str:
    # `-a -b or -c` is NOT (a OR b) OR NOT c, and so NOT ((a OR b) AND c)
    excluding = [unwanted for wanted, unwanted in _parse_websearch(text) if not wanted and unwanted]
    return " AND ".join(f"({' OR '.join(unwanted)})" for unwanted in excluding)


def _parse_websearch(text: str) -> list[tuple[list[str], list[str]]]:
    """The branches that `or` separates: the phrases that each one wants, and those it excludes."""
    branches: list[tuple[list[str], list[str]]] = [([], [])]
    for match in _PARTS.finditer(text):
        minus, quoted, bare = match[1], match[2], match[3]
        if bare is not None and bare.lower() == "or":
            branches.append(([], []))
            continue
        without = bool(minus) if bare is None else bare.startswith("-")
        phrase = _build_fts5_phrase(quoted if bare is None else bare)
        if phrase:
            branches[-1][without].append(phrase)
    return branches


def _build_fts5_branch(wanted: list[str], unwanted: list[str]) -> str:
    found = f"({' AND '.join(wanted)})"
    return f"({found} NOT ({' OR '.join(unwanted)}))" if unwanted else found
