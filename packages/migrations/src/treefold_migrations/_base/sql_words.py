"""The statements of SQL that the author of a migration wrote, and the words of each.

ALTER TABLE "a" ADD c text DEFAULT 'DROP'; -- x   ->   ALTER TABLE quoted_name ADD c text ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# both databases take every letter above ASCII in a name
_LETTER = r"A-Za-z_\u0080-\U0010ffff"
_PIECE = re.compile(
    rf"(?P<comment>--[^\n]*|/\*)"
    # in front of words, whose last letter may be an E: only an E alone makes the text of PostgreSQL
    # with backslashes
    rf"|(?P<string>(?P<dollar>\$(?:[{_LETTER}][{_LETTER}0-9]*)?\$).*?(?P=dollar)"
    rf"|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*')"
    # a bracket behind a word is the subscript of an array, and one around a text an array
    rf"|(?P<name>\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|(?<![{_LETTER}0-9\])])\[[^]['\"]+\])"
    # a $ inside of a word begins no text
    rf"|(?P<end>;)|(?P<text>[{_LETTER}0-9][{_LETTER}0-9$]*|.)",
    re.DOTALL,
)
_ROWS = re.compile(r"(INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_BODY = re.compile(r"\s*CREATE\b.*?\b(?:TRIGGER\b.*?\bBEGIN|BEGIN\s+ATOMIC)\b", re.I | re.DOTALL)
_BLOCK = re.compile(r"(?<![.\w])(?:(?P<begin>CASE)|END)\b", re.IGNORECASE)


def split_and_mask_statements(sql: str) -> list[tuple[str, str]]:
    """Split SQL into statements, each as written and as words without strings and comments."""
    made: list[tuple[str, str]] = []
    written, words = "", ""
    for piece, text in _scan_sql_tokens(sql):
        if piece["end"] and not _is_inside_trigger_or_function(words):
            made.append((written, words))
            written = words = ""
            continue
        written += text
        if piece["text"] or piece["end"]:
            words += text
        elif piece["name"]:
            words += "quoted_name"
        elif piece["string"]:
            words += "'text'"
        else:
            words += " "
    made.append((written, words))
    return [(" ".join(a.split()), " ".join(b.split())) for a, b in made if b.strip()]


def contains_only_row_changes(sql: str) -> bool:
    """True for SQL that leaves tables and their parts as they are."""
    return all(_ROWS.match(words) for _, words in split_and_mask_statements(sql))


def _scan_sql_tokens(sql: str) -> Iterator[tuple[re.Match[str], str]]:
    place = 0
    while piece := _PIECE.match(sql, place):
        end = _find_comment_end(sql, place) if piece["comment"] == "/*" else piece.end()
        yield piece, sql[place:end]
        place = end


def _find_comment_end(sql: str, start: int) -> int:
    depth = 0
    for mark in _COMMENT_MARK.finditer(sql, start):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    # comments nest on PostgreSQL alone; SQLite ends one at the first mark, or with the text
    end = sql.find("*/", start + 2)
    return len(sql) if end < 0 else end + 2


def _is_inside_trigger_or_function(masked_sql: str) -> bool:
    """True inside of the body of a trigger of SQLite, or of a function of SQL on PostgreSQL."""
    body = _BODY.match(masked_sql)
    if body is None:
        return False
    blocks = _BLOCK.finditer(masked_sql, body.end())
    return 1 + sum(1 if block["begin"] else -1 for block in blocks) > 0
