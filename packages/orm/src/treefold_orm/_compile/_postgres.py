"""PostgreSQL's way of saying things (13 and later).

Parameters get a cast wherever the server would have to guess their type. LIKE patterns are escaped
inside the statement, so that a wildcard in a value stays an ordinary character.
"""

from __future__ import annotations

from typing import Any, LiteralString

from treefold_orm._arithmetic import POINTS
from treefold_orm._compile import _postgres_json
from treefold_orm._compile._dialect import UNIT_WORDS, Bind, Dialect
from treefold_orm._compile._sql import SQL, Encoder, column_type, join, number
from treefold_orm._errors import FieldError
from treefold_orm._fields._base import Field

_TYPED: dict[str, LiteralString] = {
    "bigint": "({})::bigint",
    "integer": "({})::integer",
    "float": "({})::double precision",
    "text": "({})::text",
}
_PARAM: dict[str, LiteralString] = {
    **_TYPED,
    "decimal": "({})::numeric",
    "boolean": "({})::boolean",
}
_EXTRACT: dict[str, LiteralString] = {
    "year": "EXTRACT(YEAR FROM {})::integer",
    "quarter": "EXTRACT(QUARTER FROM {})::integer",
    "month": "EXTRACT(MONTH FROM {})::integer",
    "day": "EXTRACT(DAY FROM {})::integer",
    "week": "EXTRACT(WEEK FROM {})::integer",
    "week_day": "(EXTRACT(DOW FROM {})::integer + 1)",
    "hour": "EXTRACT(HOUR FROM {})::integer",
    "minute": "EXTRACT(MINUTE FROM {})::integer",
    "second": "FLOOR(EXTRACT(SECOND FROM {}))::integer",
    "date": "({})::date",
    "time": "({})::time",
}
_ARITHMETIC: dict[str, LiteralString] = {"+": "+", "-": "-", "*": "*", "/": "/", "%": "%"}
_ARRAY: dict[str, LiteralString] = {
    "contains": "{} @> {}",
    "contained_by": "{} <@ {}",
    "overlap": "{} && {}",
}


def _escaped(value: SQL) -> SQL:
    return SQL(r"REPLACE(REPLACE(REPLACE({}, '\', '\\'), '%', '\%'), '_', '\_')", value)


def _moved(op: str, left: SQL, right: SQL, kinds: tuple[str, str, str]) -> SQL:
    plain: LiteralString = "({} " + _ARITHMETIC[op] + " {})"
    if kinds == ("date", "date", "duration"):
        return SQL("(" + plain + " * INTERVAL '1 day')", left, right)
    if kinds[2] == "date":
        return SQL("(" + plain + ")::date", left, right)
    if kinds[2] != "datetime":
        return SQL(plain, left, right)
    # a day is 24 hours, whatever the clocks of the session's time zone do meanwhile
    utc = [
        SQL("({} AT TIME ZONE 'UTC')", side) if kind == "datetime" else side
        for side, kind in zip((left, right), kinds[:2], strict=True)
    ]
    return SQL("(" + plain + " AT TIME ZONE 'UTC')", *utc)


class Postgres(Dialect):
    """The dialect of PostgreSQL."""

    name = "postgres"

    reuses = True

    distinct_on = True

    def placeholder(self, position: int) -> SQL:
        return SQL("${}", number(position))

    def cast(self, value: SQL, field: Field[Any] | None) -> SQL:
        if field is None:
            return value
        template = _PARAM.get(field.internal)
        return (
            SQL("{}::{}", value, column_type(field, "postgres"))
            if template is None
            else SQL(template, value)
        )

    def typed(self, value: SQL, field: Field[Any] | None) -> SQL:
        template = None if field is None else _TYPED.get(field.internal)
        return value if template is None else SQL(template, value)

    def convert(self, value: SQL, field: Field[Any]) -> SQL:
        return SQL("CAST({} AS {})", value, column_type(field, "postgres"))

    def in_list(self, left: SQL, param: SQL, field: Field[Any]) -> SQL:
        return SQL("{} = ANY({}::{}[])", left, param, column_type(field, "postgres"))

    def list_encoder(self, field: Field[Any]) -> Encoder:
        encode = field.encoder("postgres")
        return list if encode is None else lambda values: [encode(value) for value in values]

    def text(self, op: str, left: SQL, right: SQL) -> SQL:
        right = SQL("({})::text", right)
        match op:
            case "iexact":
                return SQL("LOWER({}) = LOWER({})", left, right)
            case "regex":
                return SQL("{} ~ {}", left, right)
            case "iregex":
                return SQL("{} ~* {}", left, right)
            case "exact":
                return SQL("{} = {}", left, right)
            case _:
                plain = op.removeprefix("i")
                pattern = SQL(_PATTERNS[plain], _escaped(right))
                return SQL(
                    r"{} ILIKE {} ESCAPE '\'" if op != plain else r"{} LIKE {} ESCAPE '\'",
                    left,
                    pattern,
                )

    def extract(self, part: str, value: SQL, field: Field[Any]) -> SQL:
        if part == "length":
            return SQL("LENGTH({})" if field.internal == "text" else "CARDINALITY({})", value)
        if part not in _EXTRACT:
            raise FieldError(f"{part!r} is no part of a date, time or text")
        return SQL(
            _EXTRACT[part],
            SQL("{} AT TIME ZONE 'UTC'", value) if field.internal == "datetime" else value,
        )

    def trunc(self, kind: str, value: SQL, field: Field[Any], zone: SQL | None = None) -> SQL:
        if kind not in UNIT_WORDS or (
            field.internal == "date" and kind in {"hour", "minute", "second"}
        ):
            raise FieldError(f"{kind!r} is no unit that a {type(field).__name__} can be cut to")
        unit = SQL("'{}'", UNIT_WORDS[kind])
        if zone is not None:
            return SQL("DATE_TRUNC({}, {}, {})", unit, value, zone)
        if field.internal == "datetime":
            return SQL("DATE_TRUNC({}, {} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'", unit, value)
        return SQL("DATE_TRUNC({}, {})::date", unit, value)

    # -- JSON -------------------------------------------------------------------------------------

    def json_path(self, document: SQL, keys: tuple[str, ...], bind: Bind) -> SQL:
        return _postgres_json.path(document, keys, bind)

    def json_test(
        self, name: str, document: SQL, keys: tuple[str, ...], *, bind: Bind, right: list[SQL]
    ) -> SQL:
        return _postgres_json.test(name, document, keys, bind=bind, right=right, text=self.text)

    def json_encoder(self, name: str) -> Encoder | None:
        return _postgres_json.encoder(name)

    def json_equal(self, left: SQL, right: SQL) -> SQL:
        return SQL("{} = {}", left, right)

    def array_test(self, op: str, left: SQL, right: SQL) -> SQL:
        return SQL(_ARRAY[op], left, right)

    # -- numbers, functions, clauses --------------------------------------------------------------

    def arithmetic(self, op: str, left: SQL, right: SQL, fields: tuple[Any, Any, Any]) -> SQL:
        first, second, result = ("" if f is None else f.internal for f in fields)
        if result in POINTS or {first, second} & set(POINTS):
            return _moved(op, left, right, (first, second, result))
        if op == "/" and result == "float":
            return SQL("({}::double precision / {})", left, right)
        if result == "decimal" and "float" in {first, second}:
            return SQL("({}::numeric " + _ARITHMETIC[op] + " {}::numeric)", left, right)
        return SQL("({} " + _ARITHMETIC[op] + " {})", left, right)

    def function(self, name: str, args: list[SQL]) -> SQL:
        match name:
            case "coalesce":
                return SQL("COALESCE({})", join(", ", args))
            case "concat":
                return SQL("CONCAT({})", join(", ", args))
            case "greatest":
                return SQL("GREATEST({})", join(", ", args))
            case "least":
                return SQL("LEAST({})", join(", ", args))
            case "now":
                return SQL("STATEMENT_TIMESTAMP()")
            case "round":
                return (
                    SQL("ROUND({})", args[0])
                    if len(args) == 1
                    else SQL("ROUND(({})::numeric, ({})::integer)", *args)
                )
            case "floor":
                return SQL("FLOOR({})", args[0])
            case "ceil":
                return SQL("CEIL({})", args[0])
            case "position":
                return SQL("STRPOS({}, {})", args[0], args[1])
            case "substr":
                return SQL("SUBSTR({}, ({})::integer, ({})::integer)", *args)
            case "ntile":
                return SQL("NTILE(({})::integer)", args[0])
            case "lag" | "lead":
                rest = [args[0], *(SQL("({})::integer", a) for a in args[1:2]), *args[2:]]
                return SQL("LAG({})" if name == "lag" else "LEAD({})", join(", ", rest))
            case _:
                return self.plain_function(name, args)

    def mean(self, value: SQL, field: Field[Any] | None) -> SQL:
        if field is not None and field.internal == "duration":
            return value
        return SQL("({})::double precision", value)

    def limit(self, limit: SQL | None, offset: SQL | None) -> SQL:
        first = SQL("") if limit is None else SQL(" LIMIT {}", limit)
        return first if offset is None else SQL("{} OFFSET {}", first, offset)

    def lock(self, *, of: SQL, skip_locked: bool, nowait: bool, share: bool) -> SQL:
        if skip_locked and nowait:
            raise FieldError("select_for_update takes skip_locked or nowait, not both")
        strength = SQL(" FOR SHARE OF {}" if share else " FOR UPDATE OF {}", of)
        return SQL("{} SKIP LOCKED" if skip_locked else "{} NOWAIT" if nowait else "{}", strength)


_PATTERNS: dict[str, LiteralString] = {
    "contains": "('%' || {} || '%')",
    "startswith": "({} || '%')",
    "endswith": "('%' || {})",
}
