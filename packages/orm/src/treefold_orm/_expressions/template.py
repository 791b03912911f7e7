"""Template: SQL that an application declares once, for a function or a lookup of its own.

It is fixed and checked when it is declared; all that enters later are columns and bound values. It
may hold names, operators and quoted words, but nothing that ends or comments out a statement.
"""

from __future__ import annotations

import re
import string

from treefold_orm._base.errors import ModelError, UnsupportedFeature
from treefold_orm._base.names import check_untainted

DIALECTS = ("postgres", "sqlite")
# no quoted identifiers, no placeholders, no semicolons, no control characters
_TEXT = re.compile(r"(?:[A-Za-z0-9_ ,()+*/%<>=|&~!@#^.\[\]-]|::|'[^'\\;{}\x00-\x1f]*')*")


class Template:
    """SQL with `{}` for each argument: `text` where a dialect has none of its own."""

    __slots__ = ("_texts", "arity", "owner")

    def __init__(self, text: str, *, owner: str, **own: str) -> None:
        self.owner = owner
        given = {dialect: own.get(dialect) or text for dialect in DIALECTS}
        by_dialect = {dialect: found for dialect, found in given.items() if found}
        if not by_dialect:
            raise ModelError(f"{owner} needs SQL: template=, postgres= or sqlite=")
        sizes = {_check_and_count_arguments(owner, text) for text in by_dialect.values()}
        if len(sizes) != 1:
            raise ModelError(f"{owner} takes a different number of arguments on each database")
        self.arity = sizes.pop()
        self._texts = by_dialect

    def require_dialect_sql(self, dialect: str) -> str:
        """The SQL for a dialect, with `{}` for each argument."""
        found = self._texts.get(dialect)
        if found is None:
            raise UnsupportedFeature(f"{self.owner} is not available on {dialect}")
        return found


def _check_and_count_arguments(owner: str, text: str) -> int:
    check_untainted(text)
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError:
        raise ModelError(f"{owner} has SQL with single braces: {text!r}") from None
    if any(spec or conversion or name for _, name, spec, conversion in pieces):
        raise ModelError(f"{owner} marks its arguments with plain {{}}, not as in {text!r}")
    plain = "".join(literal for literal, *_ in pieces)
    if (
        _TEXT.fullmatch(plain) is None
        or "--" in plain
        or "/*" in plain
        or not _has_balanced_parentheses(plain)
        or not plain.strip()
    ):
        raise ModelError(
            f"{owner} has SQL that is more than one expression, or holds a quote, a placeholder or "
            f"a comment: {text!r}"
        )
    return sum(name is not None for _, name, *_ in pieces)


def _has_balanced_parentheses(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        # `) OR (1` has as many of each, and would leave the parentheses that it is put in
        if depth < 0:
            return False
    return depth == 0
