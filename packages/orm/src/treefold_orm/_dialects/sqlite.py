"""SQLite's way of saying things (3.38 and later).

Text search uses `instr` and `substr`, which have no wildcards and mind case; the case-blind forms
use a Unicode-aware function that every connection registers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from treefold_orm._base.errors import FieldError, UnsupportedFeature
from treefold_orm._dialects import (
    sqlite_arithmetic,
    sqlite_conversion,
    sqlite_dates,
    sqlite_json,
    sqlite_windows,
)
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.functions import add_distinct, fill_function_template
from treefold_orm._dialects.sql import SQL, Encoder, join_sql, render_integer, require_plain_word
from treefold_orm._dialects.sqlite_functions import AGGREGATES, COLLECT, FUNCTIONS, MANY
from treefold_orm._expressions.nodes import OrderNode
from treefold_orm._fields.base import AnyField, Fields


class SQLite(Dialect):
    """The dialect of SQLite."""

    name = "sqlite"

    json = sqlite_json

    numbers = sqlite_arithmetic

    reuses = False

    distinct_on = False

    def format_placeholder(self, position: int) -> SQL:
        return SQL("?")

    def cast(self, value: SQL, field: AnyField | None) -> SQL:
        return value

    def cast_function_result(self, value: SQL, field: AnyField | None) -> SQL:
        return value

    def build_cast(self, value: SQL, source: AnyField | None, field: AnyField) -> SQL:
        if source is None:
            raise FieldError("Cast must be given an expression whose type is known")
        return sqlite_conversion.build_conversion(value, source, field, "assign")

    def build_conversion(self, value: SQL, source: AnyField, target: AnyField, mode: str) -> SQL:
        return sqlite_conversion.build_conversion(value, source, target, mode)

    def build_in_list(self, left: SQL, param: SQL, field: AnyField) -> SQL:
        if field.internal == "binary":  # JSON holds no bytes
            return SQL("{} IN (SELECT treefold_unhex(value) FROM json_each({}))", left, param)
        # one parameter for the whole list: SQLite counts each `?` against its limit
        return SQL("{} IN (SELECT value FROM json_each({}))", left, param)

    def list_encoder(self, field: AnyField) -> Encoder:
        encode = field.encoder("sqlite")
        if field.internal == "binary":
            return lambda values: json.dumps([value.hex() for value in values])
        if encode is None:
            return json.dumps
        return lambda values: json.dumps([encode(value) for value in values])

    def build_key_rows_query(self, parts: Fields, bind: Callable[[Encoder], SQL]) -> SQL:
        encoders = [part.encoder("sqlite") for part in parts]

        def encode_rows(rows: Any) -> str:
            pairs = [zip(row, encoders, strict=True) for row in rows]
            return json.dumps([[v if e is None else e(v) for v, e in row] for row in pairs])

        cells = [SQL("json_extract(value, '$[{}]')", render_integer(i)) for i in range(len(parts))]
        return SQL("SELECT {} FROM json_each({})", join_sql(", ", cells), bind(encode_rows))

    def text(self, op: str, left: SQL, right: SQL) -> SQL:
        if op in {"regex", "iregex"}:
            ignores_case = SQL("1" if op == "iregex" else "0")
            return SQL("treefold_regex({}, {}, {})", left, right, ignores_case)
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

    def extract(self, part: str, value: SQL, field: AnyField) -> SQL:
        if part == "length":
            return SQL("length({})", value)
        return sqlite_dates.extract_date_part(part, value, field.internal)

    def trunc(self, kind: str, value: SQL, field: AnyField, zone: SQL | None = None) -> SQL:
        return sqlite_dates.truncate_to_unit(kind, value, field.internal, zone)

    def build_null_safe_equality(self, left: SQL, right: SQL) -> SQL:
        # the same as IS NOT DISTINCT FROM, which SQLite knows from 3.39 on only
        return SQL("{} IS {}", left, right)

    # -- JSON -------------------------------------------------------------------------------------

    def build_json_equality(self, left: SQL, right: SQL) -> SQL:
        return SQL("treefold_json_plain({}) = treefold_json_plain({})", left, right)

    def build_array_comparison(self, op: str, left: SQL, right: SQL) -> SQL:
        raise UnsupportedFeature("Arrays need PostgreSQL; use a JSONField")

    # -- numbers, functions, clauses --------------------------------------------------------------

    def build_function_call(self, name: str, args: list[SQL]) -> SQL:
        if name == "concat":
            return SQL("({})", join_sql(" || ", [SQL("COALESCE({}, '')", arg) for arg in args]))
        if name == "key_text":
            return SQL("({})", join_sql(" || ',' || ", [SQL("quote({})", arg) for arg in args]))
        return fill_function_template(name, args, FUNCTIONS, MANY)

    def aggregate(self, name: str, value: SQL, *, distinct: bool) -> SQL:
        return AGGREGATES[name].fill_template([add_distinct(name, value, distinct=distinct)])

    def build_ordered_aggregate(
        self, name: str, args: list[SQL], terms: list[tuple[SQL, OrderNode]], *, distinct: bool
    ) -> SQL:
        # this SQLite may know no ORDER BY in aggregates: the function sorts by keys it is given
        plan = "d" if distinct else "a"
        for _, term in terms:
            first = (term.nulls or ("first" if term.descending else "last")) == "first"
            plan += ("d" if term.descending else "a") + ("f" if first else "l")
        keys = [SQL(", {}", text) for text, _ in terms]
        return COLLECT[name].fill_template([require_plain_word(plan), *args, join_sql("", keys)])

    def build_window_aggregate(
        self, name: str, args: list[SQL], *, where: SQL | None, over: SQL, empty: bool
    ) -> SQL | None:
        return sqlite_windows.build_window_aggregate(
            name, args, where=where, over=over, may_be_empty=empty
        )

    def build_range_frame_key(self, value: SQL, field: AnyField) -> SQL:
        return sqlite_arithmetic.convert_temporal_to_microseconds(value, field)

    def build_limit_clause(self, limit: SQL | None, offset: SQL | None) -> SQL:
        if limit is None:
            return SQL("") if offset is None else SQL(" LIMIT -1 OFFSET {}", offset)
        return (
            SQL(" LIMIT {}", limit) if offset is None else SQL(" LIMIT {} OFFSET {}", limit, offset)
        )

    def build_lock_clause(self, *, of: SQL, skip_locked: bool, nowait: bool, strength: str) -> SQL:
        if skip_locked or nowait:
            raise UnsupportedFeature(
                "SQLite has no row locks: skip_locked and nowait need PostgreSQL"
            )
        return SQL("")  # a write transaction on SQLite locks everything already
