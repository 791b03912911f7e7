"""SQLite's way of saying things (3.38 and later).

Text search uses `instr` and `substr`, which have no wildcards and mind case; the case-blind forms
use a Unicode-aware function that every connection registers.
"""

from __future__ import annotations

import json
from typing import Any, LiteralString

from treefold_orm._compile import _sqlite_arithmetic, _sqlite_json
from treefold_orm._compile._dialect import UNIT_WORDS, Bind, Dialect
from treefold_orm._compile._sql import SQL, Encoder, join
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

    distinct_on = False

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

    def trunc(self, kind: str, value: SQL, field: Field[Any], zone: SQL | None = None) -> SQL:
        if zone is not None:
            return SQL("treefold_trunc('{}', {}, {})", UNIT_WORDS[kind], value, zone)
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

    def json_path(self, document: SQL, keys: tuple[str, ...], bind: Bind) -> SQL:
        return _sqlite_json.path(document, keys, bind)

    def json_test(
        self, name: str, document: SQL, keys: tuple[str, ...], *, bind: Bind, right: list[SQL]
    ) -> SQL:
        return _sqlite_json.test(name, document, keys, bind=bind, right=right, text=self.text)

    def json_encoder(self, name: str) -> Encoder | None:
        return _sqlite_json.encoder(name)

    def json_equal(self, left: SQL, right: SQL) -> SQL:
        return SQL("treefold_json_plain({}) = treefold_json_plain({})", left, right)

    def array_test(self, op: str, left: SQL, right: SQL) -> SQL:
        raise UnsupportedFeature("Arrays need PostgreSQL; use a JSONField")

    # -- numbers, functions, clauses --------------------------------------------------------------

    def arithmetic(self, op: str, left: SQL, right: SQL, fields: tuple[Any, Any, Any]) -> SQL:
        return _sqlite_arithmetic.arithmetic(op, left, right, fields)

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

    def mean(self, value: SQL, field: Field[Any] | None) -> SQL:
        if isinstance(field, DecimalField):
            return SQL("{} / 1{}.0", value, _sqlite_arithmetic.zeros(field.decimal_places))
        return value

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
