"""SQL text in tokens: enough to take apart the definitions that SQLite keeps as they were written.

A token keeps its place in the text, so that a part can be cut out as it stands there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from treefold_migrations._inspect.found import InspectError

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
  | (?P<text>[xX]?'(?:[^']|'')*')
  | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
  | (?P<word>[^\W\d][\w$]*)
  | (?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?))
  | (?P<sign>->>|->|\|\||<=|>=|<>|!=|==|<<|>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL: `value` is the name of an identifier and the lower-case word of a keyword."""

    kind: str
    value: str
    start: int
    end: int


def tokenize_sql(text: str) -> list[Token]:
    """Return the tokens of SQL, without spaces and comments."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(Token(kind, _normalize_token(kind, match[0]), match.start(), match.end()))
    return found


def _normalize_token(kind: str, text: str) -> str:
    if kind == "quoted":
        end = text[-1]
        return text[1:-1] if end == "]" else text[1:-1].replace(end * 2, end)
    # 1E5 and 0XFF are 1e5 and 0xff; a text keeps its case, since 'A' and 'a' are two values
    return text.lower() if kind in {"word", "number"} else text


def canonicalize_sql(text: str) -> str:
    """Return SQL in a form that spaces, letter case, quotes and outer parentheses do not change."""
    tokens = tokenize_sql(text)
    while (
        len(tokens) > 2
        and tokens[0].value == "("
        and find_closing_parenthesis(tokens, 0) == len(tokens) - 1
    ):
        tokens = tokens[1:-1]
    # "Title" and title name one column of SQLite
    return " ".join(t.value.lower() if t.kind == "quoted" else t.value for t in tokens)


def find_closing_parenthesis(tokens: Sequence[Token], start: int) -> int:
    """Return the place of the parenthesis that closes the one at `start`.

    Raises `InspectError` for text that never closes it.
    """
    depth = 0
    for place in range(start, len(tokens)):
        token = tokens[place]
        if token.kind == "sign" and token.value in "()":
            depth += 1 if token.value == "(" else -1
            if not depth:
                return place
    raise InspectError("SQL of the catalog must close its parentheses, and does not")


class TokenReader:
    """Walks over tokens."""

    def __init__(self, text: str, tokens: Sequence[Token] | None = None) -> None:
        self.text = text
        self.tokens = tokenize_sql(text) if tokens is None else list(tokens)
        self.place = 0

    @property
    def is_at_end(self) -> bool:
        """True after the last token."""
        return self.place >= len(self.tokens)

    def is_next(self, *words: str) -> bool:
        """True if these keywords or signs come next."""
        coming = self.tokens[self.place : self.place + len(words)]
        return len(coming) == len(words) and all(
            # a quoted "check" is the name of a column, and no keyword
            t.kind in {"word", "sign"} and t.value == word
            for t, word in zip(coming, words, strict=True)
        )

    def accept_tokens(self, *words: str) -> bool:
        """Pass over these keywords or signs if they come next."""
        if self.is_next(*words):
            self.place += len(words)
            return True
        return False

    def expect_tokens(self, *words: str) -> None:
        """Pass over these keywords or signs.

        Raises `InspectError` where something else stands.
        """
        if not self.accept_tokens(*words):
            raise InspectError(f"{' '.join(words)!r} must follow in {self.text[:80]!r}")

    def read_name(self) -> str:
        """Take an identifier as it is written."""
        # SQLite takes 'name' for an identifier where only one can stand
        if self.is_at_end or self.tokens[self.place].kind not in {"word", "quoted", "text"}:
            raise InspectError(f"A name must follow in {self.text[:80]!r}")
        token = self.tokens[self.place]
        self.place += 1
        if token.kind == "quoted":
            return token.value
        raw = self.text[token.start : token.end]
        return raw[1:-1].replace("''", "'") if token.kind == "text" else raw

    def read_parenthesized_group(self) -> list[Token]:
        """Take the tokens inside the parentheses that come next."""
        if not self.is_next("("):
            raise InspectError(f"'(' must follow in {self.text[:80]!r}")
        end = find_closing_parenthesis(self.tokens, self.place)
        inner = self.tokens[self.place + 1 : end]
        self.place = end + 1
        return inner

    def slice_text(self, tokens: Sequence[Token]) -> str:
        """Return the text of tokens that follow each other."""
        return self.text[tokens[0].start : tokens[-1].end] if tokens else ""


def split_at_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the groups of tokens between commas outside of parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "sign":
            depth += (token.value == "(") - (token.value == ")")
            if token.value == "," and not depth:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts
