"""SQL of a catalog for models: a default that is a constant as its value, all else as `SchemaSQL`.

| Catalog | Model |
|---|---|
| `'it''s'::text`, of a `CharField` | `db_default="it's"` |
| `now()` | `db_default=Now()` |
| `(price > 0)` | `SchemaSQL("({} > 0)", "price")` |

The result is a proposal: the caller has the database print it, and compares.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Mapping
from typing import Any

from treefold_migrations._inspect.found import InspectError
from treefold_migrations._inspect.sql_text import Token, TokenReader, tokenize_sql
from treefold_orm import Now, ORMError, SchemaSQL
from treefold_orm.schema import Field

AnyField = Field[Any]
Columns = Mapping[str, tuple[str, AnyField]]
"""Fields and their names by column; SQLite's columns in lower case."""

_NOW = {("now", "(", ")"), ("statement_timestamp", "(", ")"), ("current_timestamp",)}

# above the exponents of a float
_MAX_NUMBER = 400


class Unreadable(Exception):
    """SQL that this module does not understand."""


def find_field_by_token(
    token: Token, columns: Columns, *, fold_case: bool
) -> tuple[str, AnyField] | None:
    """Return the field of the column that a token names."""
    if token.kind not in {"word", "quoted"}:
        return None
    return columns.get(token.value.lower() if fold_case else token.value)


def parse_schema_sql(
    text: str, columns: Columns, *, fold_case: bool, keep_column_names: bool = False
) -> Any:
    """Return SQL as `SchemaSQL`, its columns as fields unless `keep_column_names`; None for what it
    refuses.
    """
    tokens = tokenize_sql(text)
    written: list[str] = []
    names: list[str] = []
    for place, token in enumerate(tokens):
        found = (
            None if keep_column_names else find_field_by_token(token, columns, fold_case=fold_case)
        )
        before = tokens[place - 1].value if place else ""
        after = tokens[place + 1].value if place + 1 < len(tokens) else ""
        # the name of a type, of a function, or of a table with the column behind it
        if before in {"::", ":", "."} or after in {"(", "."}:
            found = None
        # no space where there was none: it could split an operator of several signs
        gap = " " if place and token.start > tokens[place - 1].end else ""
        if found is None:
            # braces are places of SchemaSQL, as in the text of an array: '{1,2}'
            raw = text[token.start : token.end].replace("{", "{{").replace("}", "}}")
        else:
            raw = "{}"
            names.append(found[0])
        written.append(gap + raw)
    try:
        return SchemaSQL("".join(written), *names)
    except ORMError:
        return None


class _LiteralReader(TokenReader):
    """Reads a constant: `0`, `'new'::text`, `(-1)`."""

    def read_literal(self) -> list[Token]:
        """Parse a constant; return its tokens."""
        if self.is_next("("):
            inner = _LiteralReader(self.text)
            inner.tokens = self.read_parenthesized_group()
            found = inner.read_literal()
            if not inner.is_at_end:
                raise Unreadable
        else:
            start = self.place
            _ = self.accept_tokens("-") or self.accept_tokens("+")
            self.place += 1
            found = self.tokens[start : self.place]
        self.skip_cast()
        return found

    def skip_cast(self) -> None:
        """Pass over `::type` if it comes next."""
        while self.accept_tokens(":", ":"):
            self.place += 1
            while not self.is_at_end and self.tokens[self.place].kind == "word":
                self.place += 1  # character varying, timestamp without time zone
            if self.is_next("("):
                self.read_parenthesized_group()
            self.accept_tokens("[", "]")


def evaluate_literal(tokens: list[Token], field: AnyField) -> Any:
    """Return the value of a literal for a field; None for one that it does not take."""
    sign = -1 if tokens[0].value == "-" else 1
    token = tokens[-1]
    found: Any = None
    if token.kind == "number":
        number = _read_number(token.value.replace("_", ""))
        found = None if number is None else sign * number
    elif token.kind == "text" and token.value[:1] == "'" and len(tokens) == 1:
        found = token.value[1:-1].replace("''", "'")
    elif token.value in {"true", "false"}:
        found = token.value == "true"
    return None if found is None else _convert_literal(found, field)


def _read_number(text: str) -> int | decimal.Decimal | None:
    # 0x10 and a number that no field can hold stay as they are written
    if len(text) > _MAX_NUMBER or text.startswith("0x"):
        return None
    number = decimal.Decimal(text)
    # as an integer, 1e1000000000 would fill the memory
    if abs(number.adjusted()) > _MAX_NUMBER:
        return None
    return int(text) if text.isdigit() else number


def _convert_literal(literal: Any, field: AnyField) -> Any:
    try:
        match field.internal:
            case "boolean":
                # other tools write 0 and 1 as the default of a boolean on SQLite
                return {"1": True, "0": False, "true": True, "false": False}.get(
                    str(literal).lower()
                )
            case "float":
                return float(literal)
            case "integer" | "bigint":
                return int(literal)
            case "decimal":
                return decimal.Decimal(str(literal))
            case "json":
                return json.loads(literal)
            case "text":
                return literal if isinstance(literal, str) else None
            case "date":
                return dt.date.fromisoformat(literal)
            case _:
                return None
    except (ValueError, TypeError, ArithmeticError):
        return None


def parse_constant(text: str, field: AnyField) -> Any:
    """Return a default as a value; None for one that is not a constant of the field."""
    parser = _LiteralReader(text)
    try:
        tokens = parser.read_literal()
    except (Unreadable, InspectError, IndexError):
        return None
    return evaluate_literal(tokens, field) if parser.is_at_end and tokens else None


def is_now_expression(text: str) -> bool:
    """True for a default that is the time of the insert."""
    return tuple(token.value for token in tokenize_sql(text)) in _NOW


def build_now_expression() -> Any:
    """Return the expression for the time of the insert."""
    return Now()
