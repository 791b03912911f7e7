"""SQL of a catalog as expressions of the ORM: conditions in its own words where they mean the same,
`SchemaSQL` otherwise.

The result is a proposal: the caller has the database print it, and compares.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from treefold_migrations._inspect.found import InspectError
from treefold_migrations._inspect.sql_text import Reader, Token, tokens_of
from treefold_orm import F, Now, ORMError, Q, SchemaSQL
from treefold_orm.schema import Field

T = TypeVar("T")
AnyField = Field[Any]
Columns = Mapping[str, tuple[str, AnyField]]
"""Fields and their names by column; SQLite's columns in lower case."""

_SIGNS = {"=": "exact", "==": "exact", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_NOW = {("now", "(", ")"), ("statement_timestamp", "(", ")"), ("current_timestamp",)}


class Unreadable(Exception):
    """SQL that this module does not understand."""


def column_of_token(token: Token, columns: Columns, *, folds: bool) -> tuple[str, AnyField] | None:
    """Return the field of the column that a token names."""
    if token.kind not in {"word", "quoted"}:
        return None
    return columns.get(token.value.lower() if folds else token.value)


def schema_sql(text: str, columns: Columns, *, folds: bool, bare: bool = False) -> Any:
    """Return SQL as `SchemaSQL`, its columns as fields unless `bare`; None for what it refuses."""
    tokens = tokens_of(text)
    written: list[str] = []
    names: list[str] = []
    for place, token in enumerate(tokens):
        found = None if bare else column_of_token(token, columns, folds=folds)
        before = tokens[place - 1].value if place else ""
        after = tokens[place + 1].value if place + 1 < len(tokens) else ""
        if before in {"::", ":", "."} or after in {"(", "."}:
            found = None
        gap = " " if place and token.start > tokens[place - 1].end else ""
        if found is None:
            raw = text[token.start : token.end].replace("{", "{{").replace("}", "}}")
        else:
            raw = "{}"
            names.append(found[0])
        written.append(gap + raw)
    try:
        return SchemaSQL("".join(written), *names)
    except ORMError:
        return None


def condition(text: str, columns: Columns, *, folds: bool) -> Any:
    """Return a condition as a `Q`; None for one that takes more than comparisons of columns."""
    parser = _Conditions(text, columns, folds=folds)
    try:
        made = parser.alternatives()
        return made if parser.done else None
    except (Unreadable, InspectError, ORMError, IndexError):
        return None


class _Conditions(Reader):
    """Reads comparisons of columns with constants or columns, joined by AND, OR and NOT."""

    def __init__(self, text: str, columns: Columns, *, folds: bool) -> None:
        super().__init__(text)
        self._columns = columns
        self._folds = folds

    def alternatives(self) -> Any:
        made = self._all()
        while self.take("or"):
            made = made | self._all()
        return made

    def _all(self) -> Any:
        made = self._one()
        while self.take("and"):
            made = made & self._one()
        return made

    def _one(self) -> Any:
        if self.take("not"):
            return ~self._one()
        if self.at("(") and not self._is_operand():
            return self._within(_Conditions.alternatives)
        return self._comparison()

    def _inside(self, tokens: list[Token]) -> _Conditions:
        inner = _Conditions(self.text, self._columns, folds=self._folds)
        inner.tokens = tokens
        return inner

    def _within(self, read: Callable[[_Conditions], T]) -> T:
        """Read all that the parentheses hold which come next."""
        inner = self._inside(self.group())
        made = read(inner)
        if not inner.done:
            raise Unreadable
        return made

    def _is_operand(self) -> bool:
        place, kept = self.place, self.tokens
        try:
            self._column()
        except (Unreadable, InspectError, IndexError):
            return False
        finally:
            self.place, self.tokens = place, kept
        return True

    def _column(self) -> tuple[str, AnyField]:
        if self.at("("):
            found = self._within(_Conditions._column)
        else:
            named = column_of_token(self.tokens[self.place], self._columns, folds=self._folds)
            if named is None:
                raise Unreadable
            found = named
            self.place += 1
        self.cast()
        return found

    def cast(self) -> None:
        """Pass over `::type` if it comes next."""
        while self.take(":", ":"):
            self.place += 1
            while (
                not self.done
                and self.tokens[self.place].kind == "word"
                and not (self.at("and") or self.at("or"))
            ):
                self.place += 1  # character varying, timestamp without time zone
            if self.at("("):
                self.group()
            self.take("[", "]")

    def _comparison(self) -> Any:
        name, field = self._column()
        if self.take("is", "not", "null"):
            return Q(**{f"{name}__isnull": False})
        if self.take("is", "null"):
            return Q(**{f"{name}__isnull": True})
        if self.take("between"):
            low = self._constant(field)
            if not self.take("and"):
                raise Unreadable
            return Q(**{f"{name}__range": (low, self._constant(field))})
        if self.take("not", "in"):
            return ~Q(**{f"{name}__in": self._list(field)})
        if self.take("in"):
            return Q(**{f"{name}__in": self._list(field)})
        if self.take("<>") or self.take("!="):
            return ~Q(**{name: self._right(field)})
        sign = _SIGNS.get(self.tokens[self.place].value)
        if sign is None:
            raise Unreadable
        self.place += 1
        if sign == "exact" and self.take("any"):
            return Q(**{f"{name}__in": self._array(field)})
        path = name if sign == "exact" else f"{name}__{sign}"
        return Q(**{path: self._right(field)})

    def _right(self, field: AnyField) -> Any:
        if self._is_operand():
            return F(self._column()[0])
        return self._constant(field)

    def _constant(self, field: AnyField) -> Any:
        found = value_of(self.literal(), field)
        if found is None:
            raise Unreadable
        return found

    def literal(self) -> list[Token]:
        """Parse a constant; return its tokens."""
        if self.at("("):
            found = self._within(_Conditions.literal)
        else:
            start = self.place
            _ = self.take("-") or self.take("+")
            self.place += 1
            found = self.tokens[start : self.place]
        self.cast()
        return found

    def _list(self, field: AnyField) -> list[Any]:
        return self._inside(self.group())._items(field)

    def _items(self, field: AnyField) -> list[Any]:
        found = [self._constant(field)]
        while self.take(","):
            found.append(self._constant(field))
        if not self.done:
            raise Unreadable
        return found

    def _array(self, field: AnyField) -> list[Any]:
        inner = self._inside(self.group())
        while inner.at("("):
            inner = self._inside(inner.group())
        inner.need("array", "[")
        end = next(n for n, t in enumerate(inner.tokens) if t.value == "]" and n >= inner.place)
        return self._inside(inner.tokens[inner.place : end])._items(field)


def value_of(tokens: list[Token], field: AnyField) -> Any:
    """Return the value of a literal for a field; None for one that it does not take."""
    sign = -1 if tokens[0].value == "-" else 1
    token = tokens[-1]
    found: Any = None
    if token.kind == "number":
        number = token.value.replace("_", "")
        found = sign * (int(number, 0) if number.isdigit() else decimal.Decimal(number))
    elif token.kind == "text" and token.value[:1] == "'" and len(tokens) == 1:
        found = token.value[1:-1].replace("''", "'")
    elif token.value in {"true", "false"}:
        found = token.value == "true"
    return None if found is None else _fitted(found, field)


def _fitted(found: Any, field: AnyField) -> Any:
    try:
        match field.internal:
            case "boolean":
                return {"1": True, "0": False, "true": True, "false": False}.get(str(found).lower())
            case "float":
                return float(found)
            case "integer" | "bigint":
                return int(found)
            case "decimal":
                return decimal.Decimal(str(found))
            case "json":
                return json.loads(found)
            case "text":
                return found if isinstance(found, str) else None
            case "date":
                return dt.date.fromisoformat(found)
            case _:
                return None
    except (ValueError, TypeError, ArithmeticError):
        return None


def constant(text: str, field: AnyField) -> Any:
    """Return a default as a value; None for one that is not a constant of the field."""
    parser = _Conditions(text, {}, folds=False)
    try:
        tokens = parser.literal()
    except (Unreadable, InspectError, IndexError):
        return None
    return value_of(tokens, field) if parser.done and tokens else None


def is_now(text: str) -> bool:
    """True for a default that is the time of the insert."""
    return tuple(token.value for token in tokens_of(text)) in _NOW


def now() -> Any:
    """Return the expression for the time of the insert."""
    return Now()
