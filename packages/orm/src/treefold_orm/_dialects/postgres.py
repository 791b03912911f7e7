"""PostgreSQL's way of saying things (13 and later).

Parameters get a cast wherever the server would have to guess their type. LIKE patterns are escaped
inside the statement, so that a wildcard in a value stays an ordinary character.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import LiteralString

from treefold_orm._base.errors import FieldError
from treefold_orm._dialects import postgres_arithmetic, postgres_conversion, postgres_json
from treefold_orm._dialects.dialect import UNIT_WORDS, Dialect
from treefold_orm._dialects.functions import add_distinct, build_order_term, fill_function_template
from treefold_orm._dialects.postgres_functions import AGGREGATES, COLLECT, FUNCTIONS, MANY
from treefold_orm._dialects.sql import SQL, Encoder, join_sql, render_integer, render_query_type
from treefold_orm._expressions.nodes import OrderNode
from treefold_orm._fields.base import AnyField, Fields

_TYPED: dict[str, LiteralString] = {
    "bigint": "({})::bigint",
    "integer": "({})::integer",
    "float": "({})::double precision",
    "text": "({})::text",
}
_PARAM: dict[str, LiteralString] = {
    **_TYPED,
    # without places: numeric(10, 2) would round the value that a column is compared with
    "decimal": "({})::numeric",
    "boolean": "({})::boolean",
}
_EXTRACT: dict[str, LiteralString] = {
    "year": "EXTRACT(YEAR FROM {})::integer",
    "iso_year": "EXTRACT(ISOYEAR FROM {})::integer",
    "quarter": "EXTRACT(QUARTER FROM {})::integer",
    "month": "EXTRACT(MONTH FROM {})::integer",
    "day": "EXTRACT(DAY FROM {})::integer",
    "week": "EXTRACT(WEEK FROM {})::integer",
    "week_day": "(EXTRACT(DOW FROM {})::integer + 1)",
    "iso_week_day": "EXTRACT(ISODOW FROM {})::integer",
    "hour": "EXTRACT(HOUR FROM {})::integer",
    "minute": "EXTRACT(MINUTE FROM {})::integer",
    # the seconds have a fraction, and a cast of 59.6 would round it up to 60
    "second": "FLOOR(EXTRACT(SECOND FROM {}))::integer",
    "date": "({})::date",
    "time": "({})::time",
}
_ARRAY: dict[str, LiteralString] = {
    "contains": "{} @> {}",
    "contained_by": "{} <@ {}",
    "overlap": "{} && {}",
}


def _choose_array_element_type(field: AnyField) -> SQL:
    # a cast to varchar(n) would cut longer text, and match rows that the caller did not ask for
    return SQL("text") if field.internal == "text" else render_query_type(field, "postgres")


def _escape_like_pattern(value: SQL) -> SQL:
    # the backslash first (innermost): later it would double those that escape the wildcards
    return SQL(r"REPLACE(REPLACE(REPLACE({}, '\', '\\'), '%', '\%'), '_', '\_')", value)


class Postgres(Dialect):
    """The dialect of PostgreSQL."""

    name = "postgres"

    json = postgres_json

    numbers = postgres_arithmetic

    reuses = True

    distinct_on = True

    def format_placeholder(self, position: int) -> SQL:
        return SQL("${}", render_integer(position))

    def cast(self, value: SQL, field: AnyField | None) -> SQL:
        if field is None:
            return value
        template = _PARAM.get(field.internal)
        if template is None:
            return SQL("{}::{}", value, render_query_type(field, "postgres"))
        return SQL(template, value)

    def cast_function_result(self, value: SQL, field: AnyField | None) -> SQL:
        template = None if field is None else _TYPED.get(field.internal)
        return value if template is None else SQL(template, value)

    def build_cast(self, value: SQL, source: AnyField | None, field: AnyField) -> SQL:
        if source is not None:
            value = postgres_conversion.build_conversion(value, source, field)
        return SQL("CAST({} AS {})", value, render_query_type(field, "postgres"))

    def build_conversion(self, value: SQL, source: AnyField, target: AnyField, mode: str) -> SQL:
        return postgres_conversion.build_conversion(value, source, target)

    def build_in_list(self, left: SQL, param: SQL, field: AnyField) -> SQL:
        return SQL("{} = ANY({}::{}[])", left, param, _choose_array_element_type(field))

    def list_encoder(self, field: AnyField) -> Encoder:
        encode = field.encoder("postgres")
        return list if encode is None else lambda values: [encode(value) for value in values]

    def build_key_rows_query(self, parts: Fields, bind: Callable[[Encoder], SQL]) -> SQL:
        def make_column_encoder(place: int, encode: Encoder | None) -> Encoder:
            if encode is None:
                return lambda rows: [row[place] for row in rows]
            return lambda rows: [encode(row[place]) for row in rows]

        marks = [
            SQL(
                "{}::{}[]",
                bind(make_column_encoder(i, part.encoder("postgres"))),
                _choose_array_element_type(part),
            )
            for i, part in enumerate(parts)
        ]
        return SQL("SELECT * FROM unnest({})", join_sql(", ", marks))

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
                pattern = SQL(_PATTERNS[plain], _escape_like_pattern(right))
                return SQL(
                    r"{} ILIKE {} ESCAPE '\'" if op != plain else r"{} LIKE {} ESCAPE '\'",
                    left,
                    pattern,
                )

    def extract(self, part: str, value: SQL, field: AnyField) -> SQL:
        if part == "length":
            return SQL("LENGTH({})" if field.internal == "text" else "CARDINALITY({})", value)
        if part not in _EXTRACT:
            raise FieldError(f"{part!r} is not a part of a date, time or text")
        return SQL(
            _EXTRACT[part],
            # parts of a timestamptz are those of the session's time zone otherwise
            SQL("{} AT TIME ZONE 'UTC'", value) if field.internal == "datetime" else value,
        )

    def trunc(self, kind: str, value: SQL, field: AnyField, zone: SQL | None = None) -> SQL:
        if kind not in UNIT_WORDS or (
            field.internal == "date" and kind in {"hour", "minute", "second"}
        ):
            raise FieldError(f"{kind!r} is not a unit that a {type(field).__name__} can be cut to")
        unit = SQL("'{}'", UNIT_WORDS[kind])
        if zone is not None:
            return SQL("DATE_TRUNC({}, {}, {})", unit, value, zone)
        if field.internal == "datetime":
            return SQL("DATE_TRUNC({}, {} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'", unit, value)
        return SQL("DATE_TRUNC({}, {})::date", unit, value)

    def build_null_safe_equality(self, left: SQL, right: SQL) -> SQL:
        return SQL("{} IS NOT DISTINCT FROM {}", left, right)

    # -- JSON -------------------------------------------------------------------------------------

    def build_json_equality(self, left: SQL, right: SQL) -> SQL:
        return SQL("{} = {}", left, right)

    def build_array_comparison(self, op: str, left: SQL, right: SQL) -> SQL:
        return SQL(_ARRAY[op], left, right)

    # -- numbers, functions, clauses --------------------------------------------------------------

    def build_function_call(self, name: str, args: list[SQL]) -> SQL:
        return fill_function_template(name, args, FUNCTIONS, MANY)

    def aggregate(self, name: str, value: SQL, *, distinct: bool) -> SQL:
        return AGGREGATES[name].fill_template([add_distinct(name, value, distinct=distinct)])

    def build_ordered_aggregate(
        self, name: str, args: list[SQL], terms: list[tuple[SQL, OrderNode]], *, distinct: bool
    ) -> SQL:
        value = add_distinct(name, args[0], distinct=distinct)
        order = join_sql(", ", [build_order_term(text, term) for text, term in terms])
        tail = SQL(" ORDER BY {}", order) if terms else order
        return COLLECT[name].fill_template([value, *args[1:], tail])

    def build_range_frame_key(self, value: SQL, field: AnyField) -> SQL:
        # a day is 24 hours, whatever the clocks of the session's time zone do meanwhile
        return SQL("({} AT TIME ZONE 'UTC')", value) if field.internal == "datetime" else value

    def build_limit_clause(self, limit: SQL | None, offset: SQL | None) -> SQL:
        first = SQL("") if limit is None else SQL(" LIMIT {}", limit)
        return first if offset is None else SQL("{} OFFSET {}", first, offset)

    def build_lock_clause(self, *, of: SQL, skip_locked: bool, nowait: bool, strength: str) -> SQL:
        if skip_locked and nowait:
            raise FieldError("select_for_update takes skip_locked or nowait, not both")
        clause = SQL(_LOCKS[strength], of)
        return SQL("{} SKIP LOCKED" if skip_locked else "{} NOWAIT" if nowait else "{}", clause)


_LOCKS: dict[str, LiteralString] = {
    "": " FOR UPDATE OF {}",
    "share": " FOR SHARE OF {}",
    "no_key": " FOR NO KEY UPDATE OF {}",
}
_PATTERNS: dict[str, LiteralString] = {
    "contains": "('%' || {} || '%')",
    "startswith": "({} || '%')",
    "endswith": "('%' || {})",
}
