"""SQLite's way of saying things (3.38 and later).

Text search uses `instr` and `substr`, which have no wildcards and mind case; the case-blind forms
use a Unicode-aware function that every connection registers. JSON is walked with `json_each`, so
that keys are bound.
"""

from __future__ import annotations

import json
from typing import Any, LiteralString

from treefold_orm._compile._dialect import Dialect
from treefold_orm._compile._sql import SQL, Encoder, join, number
from treefold_orm._errors import FieldError, UnsupportedFeature
from treefold_orm._fields._base import Field
from treefold_orm._fields._numbers import DecimalField

_PARTS: dict[str, LiteralString] = {
    "year": "%Y",
    "month": "%m",
    "day": "%d",
    "hour": "%H",
    "minute": "%M",
    "second": "%S",
}
_TRUNC: dict[str, LiteralString] = {
    "year": "strftime('%Y-01-01', {})",
    "month": "strftime('%Y-%m-01', {})",
    "week": "date({}, '-6 days', 'weekday 1')",
    "day": "date({})",
}
_TRUNC_TIME: dict[str, LiteralString] = {
    "hour": "strftime('%Y-%m-%d %H:00:00.000000+00:00', {})",
    "minute": "strftime('%Y-%m-%d %H:%M:00.000000+00:00', {})",
    "second": "strftime('%Y-%m-%d %H:%M:%S.000000+00:00', {})",
}
_CASTS: dict[str, LiteralString] = {
    "integer": "CAST({} AS INTEGER)",
    "bigint": "CAST({} AS INTEGER)",
    "float": "CAST({} AS REAL)",
    "text": "CAST({} AS TEXT)",
}


class SQLite(Dialect):
    """The dialect of SQLite."""

    name = "sqlite"

    reuses = False

    def placeholder(self, position: int) -> SQL:
        return SQL("?")

    def cast(self, value: SQL, field: Field[Any] | None) -> SQL:
        return value

    def typed(self, value: SQL, field: Field[Any] | None) -> SQL:
        return value

    def convert(self, value: SQL, field: Field[Any]) -> SQL:
        template = _CASTS.get(field.internal)
        if template is None:
            raise UnsupportedFeature(f"Cast to {type(field).__name__} is not available on sqlite")
        return SQL(template, value)

    def in_list(self, left: SQL, param: SQL, field: Field[Any]) -> SQL:
        return SQL("{} IN (SELECT value FROM json_each({}))", left, param)

    def list_encoder(self, field: Field[Any]) -> Encoder:
        encode = field.encoder("sqlite")
        if encode is None:
            return json.dumps
        return lambda values: json.dumps([encode(value) for value in values])

    def text(self, op: str, left: SQL, right: SQL) -> SQL:
        if op in {"regex", "iregex"}:
            return SQL(
                "treefold_regex({}, {}, 1)" if op == "iregex" else "treefold_regex({}, {}, 0)",
                left,
                right,
            )
        if op.startswith("i"):
            op = op[1:]
            left = SQL("treefold_fold({})", left)
            right = SQL("treefold_fold({})", right)
        if op == "exact":
            return SQL("{} = {}", left, right)
        if op == "contains":
            return SQL("instr({}, {}) > 0", left, right)
        if op == "startswith":
            return SQL("instr({}, {}) = 1", left, right)
        # an empty ending would take the whole text: compare the tail only as long as the ending is
        return SQL("treefold_ends({}, {})", left, right)

    def extract(self, part: str, value: SQL, field: Field[Any]) -> SQL:
        if part in _PARTS:
            # substr keeps seconds whole: strftime rounds the fraction
            return SQL("CAST(strftime('" + _PARTS[part] + "', {}) AS INTEGER)", value)
        match part:
            case "length":
                return SQL("length({})", value)
            case "date":
                return SQL("substr({}, 1, 10)", value)
            case "time":
                return SQL("substr({}, 12, 15)", value)
            case "quarter":
                return SQL("(CAST(strftime('%m', {}) AS INTEGER) + 2) / 3", value)
            case "week_day":
                return SQL("(CAST(strftime('%w', {}) AS INTEGER) + 1)", value)
            case "week":
                return SQL(
                    "((CAST(strftime('%j', date({}, '-3 days', 'weekday 4')) AS INTEGER) - 1) / "
                    "7 + 1)",
                    value,
                )
            case _:
                raise FieldError(f"{part!r} is no part of a date, time or text")

    def trunc(self, kind: str, value: SQL, field: Field[Any]) -> SQL:
        if kind in _TRUNC_TIME and field.internal == "datetime":
            return SQL(_TRUNC_TIME[kind], value)
        if kind == "quarter":
            cut = SQL(
                "strftime('%Y-', {}) || printf('%02d-01', ((CAST(strftime('%m', {}) AS INTEGER) "
                "- 1) / 3) * 3 + 1)",
                value,
                value,
            )
        elif kind in _TRUNC:
            cut = SQL(_TRUNC[kind], value)
        else:
            raise FieldError(f"{kind!r} is no unit that a {type(field).__name__} can be cut to")
        return SQL("{} || ' 00:00:00.000000+00:00'", cut) if field.internal == "datetime" else cut

    # -- JSON -------------------------------------------------------------------------------------

    def keys(self, path: tuple[str, ...]) -> list[Any]:
        return list(path)

    def _walk(self, column: SQL, keys: list[SQL], wanted: SQL) -> SQL:
        sources: list[SQL] = []
        tests: list[SQL] = []
        inner = column
        for depth, key in enumerate(keys):
            name = SQL("j{}", number(depth))
            sources.append(SQL("json_each({}) AS {}", inner, name))
            tests.append(SQL("CAST({}.key AS TEXT) = {}", name, key))
            inner = SQL(
                "CASE WHEN {}.type IN ('object', 'array') THEN {}.value ELSE '{{}}' END", name, name
            )
        return SQL(
            "(SELECT {} FROM {} WHERE {})", wanted, join(", ", sources), join(" AND ", tests)
        )

    def json_path(self, column: SQL, keys: list[SQL]) -> SQL:
        last = SQL("j{}", number(len(keys) - 1))
        quoted = SQL(
            "CASE {}.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN "
            "'null' "
            "WHEN 'text' THEN json_quote({}.value) ELSE {}.value || '' END",
            last,
            last,
            last,
        )
        return self._walk(column, keys, quoted)

    def json_test(self, kind: str, column: SQL, keys: list[SQL], right: SQL | None) -> SQL:
        last = SQL("j{}", number(len(keys) - 1))
        if kind == "notnull":
            return SQL("{} IS NOT NULL", self._walk(column, keys, SQL("{}.type", last)))
        if kind == "null":
            return SQL("{} IS NULL", self._walk(column, keys, SQL("{}.type", last)))
        if right is None:
            return SQL(
                "{} = '{}'", self._walk(column, keys, SQL("{}.type", last)), _JSON_TYPES[kind]
            )
        family, _, op = kind.partition(":")
        if family == "structure":
            value = SQL(
                "CASE WHEN {}.type IN ('object', 'array') THEN json({}.value) END", last, last
            )
        elif family == "number":
            value = SQL("CASE WHEN {}.type IN ('integer', 'real') THEN {}.value END", last, last)
        else:
            value = SQL("CASE WHEN {}.type = 'text' THEN {}.value END", last, last)
        return self.comparison(op, self._walk(column, keys, value), right)

    def comparison(self, op: str, left: SQL, right: SQL) -> SQL:
        """A plain or a text comparison, by name."""
        from treefold_orm._compile._dialect import OPERATORS, operator

        return operator(op, left, right) if op in OPERATORS else self.text(op, left, right)

    def has_key(self, column: SQL, keys: list[SQL], right: SQL) -> SQL:
        return SQL(
            "{} IS NOT NULL", self._walk(column, [*keys, right], SQL("j{}.type", number(len(keys))))
        )

    def array_test(self, op: str, left: SQL, right: SQL) -> SQL:
        raise UnsupportedFeature("Arrays need PostgreSQL; use a JSONField")

    # -- numbers, functions, clauses --------------------------------------------------------------

    def arithmetic(self, op: str, left: SQL, right: SQL, fields: tuple[Any, Any, Any]) -> SQL:
        first, second, result = fields
        if isinstance(first, DecimalField) or isinstance(second, DecimalField):
            return _decimal_arithmetic(op, left, right, fields)
        if {getattr(first, "internal", ""), getattr(second, "internal", "")} & {
            "datetime",
            "date",
            "time",
        }:
            raise UnsupportedFeature(
                "Arithmetic on dates is not available on sqlite: compute in Python"
            )
        if op == "/" and result is not None and result.internal == "float":
            return SQL("(CAST({} AS REAL) / {})", left, right)
        return SQL("({} " + _ARITHMETIC[op] + " {})", left, right)

    def function(self, name: str, args: list[SQL]) -> SQL:
        match name:
            case "coalesce":
                return SQL("COALESCE({})", join(", ", args))
            case "concat":
                return SQL("({})", join(" || ", [SQL("COALESCE({}, '')", arg) for arg in args]))
            case "greatest":
                return SQL("MAX({})", join(", ", args))
            case "least":
                return SQL("MIN({})", join(", ", args))
            case "now":
                return SQL("(strftime('%Y-%m-%d %H:%M:%f', 'now') || '000+00:00')")
            case "round":
                return SQL("ROUND({})", join(", ", args))
            case "floor" | "ceil":
                return SQL(
                    "treefold_floor({})" if name == "floor" else "-treefold_floor(-({}))", args[0]
                )
            case "position":
                return SQL("instr({}, {})", args[0], args[1])
            case "lower" | "upper":
                return SQL(
                    "treefold_lower({})" if name == "lower" else "treefold_upper({})", args[0]
                )
            case "lag" | "lead":
                return SQL("LAG({})" if name == "lag" else "LEAD({})", join(", ", args))
            case _:
                return self.plain_function(name, args)

    def average(self, value: SQL, field: Field[Any] | None) -> SQL:
        if isinstance(field, DecimalField):
            return SQL("AVG({}) / 1{}.0", value, _zeros(field.decimal_places))
        return SQL("AVG({})", value)

    def limit(self, limit: SQL | None, offset: SQL | None) -> SQL:
        if limit is None:
            return SQL("") if offset is None else SQL(" LIMIT -1 OFFSET {}", offset)
        return (
            SQL(" LIMIT {}", limit) if offset is None else SQL(" LIMIT {} OFFSET {}", limit, offset)
        )

    def lock(self, *, of: SQL, skip_locked: bool, nowait: bool, share: bool) -> SQL:
        if skip_locked or nowait:
            raise UnsupportedFeature(
                "SQLite has no row locks: skip_locked and nowait need PostgreSQL"
            )
        return SQL("")  # a write transaction on SQLite locks everything already


_ARITHMETIC: dict[str, LiteralString] = {"+": "+", "-": "-", "*": "*", "/": "/", "%": "%"}
_JSON_TYPES: dict[str, SQL] = {
    "jsonnull": SQL("null"),
    "jsontrue": SQL("true"),
    "jsonfalse": SQL("false"),
}


def _zeros(count: int) -> SQL:
    made = SQL("")
    made.text = "0" * count
    return made


def _decimal_arithmetic(op: str, left: SQL, right: SQL, fields: tuple[Any, Any, Any]) -> SQL:
    first, second, _ = fields
    scales = [f.decimal_places if isinstance(f, DecimalField) else 0 for f in (first, second)]
    if any(f is not None and f.internal == "float" for f in (first, second)):
        raise UnsupportedFeature("SQLite cannot mix Decimal and float exactly: use a Decimal")
    if op in {"+", "-", "%"}:
        wide = max(scales)
        sides = [
            SQL("{} * 1{}", s, _zeros(wide - n)) if n < wide else s
            for s, n in zip((left, right), scales, strict=True)
        ]
        return SQL("({} " + _ARITHMETIC[op] + " {})", sides[0], sides[1])
    if op == "*" and min(scales) == 0:
        return SQL("({} * {})", left, right)
    raise UnsupportedFeature(
        "SQLite keeps Decimals as scaled integers: only + - % and * by an integer are exact"
    )


def same_scale(
    left: SQL, right: SQL, first: Field[Any] | None, second: Field[Any] | None
) -> tuple[SQL, SQL]:
    """Bring two scaled integers to one scale before they are compared."""
    if not isinstance(first, DecimalField) and not isinstance(second, DecimalField):
        return left, right
    scales = [f.decimal_places if isinstance(f, DecimalField) else 0 for f in (first, second)]
    wide = max(scales)
    sides = [
        SQL("{} * 1{}", s, _zeros(wide - n)) if n < wide else s
        for s, n in zip((left, right), scales, strict=True)
    ]
    return sides[0], sides[1]


def rescaled(value: SQL, found: Field[Any] | None, wanted: Field[Any]) -> SQL:
    """Bring a scaled integer to the scale of the column it is stored in."""
    if not isinstance(wanted, DecimalField):
        return value
    have = found.decimal_places if isinstance(found, DecimalField) else 0
    if have > wanted.decimal_places:
        raise FieldError(
            f"{wanted.name} keeps {wanted.decimal_places} decimal places, the expression has {have}"
        )
    if have == wanted.decimal_places:
        return value
    return SQL("({}) * 1{}", value, _zeros(wanted.decimal_places - have))
