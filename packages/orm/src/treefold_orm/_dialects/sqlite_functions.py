"""Functions of the closed list in the words of SQLite.

Those that SQLite lacks, or computes otherwise than PostgreSQL, are Python functions of the
connection (in the room `_sqlite`), named `treefold_...` here.
"""

from __future__ import annotations

from typing import LiteralString

from treefold_orm._dialects.functions import (
    AGGREGATES as BOTH_AGGREGATES,
    MANY as BOTH_MANY,
    SHARED,
)
from treefold_orm._dialects.sql import SQL

MANY: dict[str, SQL] = {
    **BOTH_MANY,
    "greatest": SQL("treefold_greatest({})"),
    "json_object": SQL("treefold_json_object({})"),
    "least": SQL("treefold_least({})"),
}


def _make_python_function_templates(args: LiteralString, names: LiteralString) -> dict[str, SQL]:
    """Functions in Python that the connection registers under the names which they have here."""
    return {name: SQL("treefold_" + name + args) for name in names.split()}


AGGREGATES: dict[str, SQL] = {
    **BOTH_AGGREGATES,
    **_make_python_function_templates(
        "({})", "avg_integer stddev_pop stddev_samp var_pop var_samp"
    ),
    # halves of 64 bits: their sums stay below 64 bits for 2**31 rows
    "sum_high": SQL("SUM({} >> 32)"),
    "sum_low": SQL("SUM({} & 4294967295)"),
    "bool_and": SQL("MIN({})"),
    "bool_or": SQL("MAX({})"),
}
COLLECT: dict[str, SQL] = {
    "array_agg": SQL("treefold_array_agg('{}', {}, NULL{})"),
    "string_agg": SQL("treefold_string_agg('{}', {}, {}{})"),
}
FUNCTIONS: dict[str, SQL] = {
    **SHARED,
    **_make_python_function_templates(
        "({})",
        "boolean_of_text date_of_text datetime_of_text exp float_of_text "
        "integer_of_text ln lower md5 reverse sha256 sqrt text_of_float time_of_text "
        "upper uuid_of_text",
    ),
    **_make_python_function_templates(
        "({}, {})",
        "ceil_decimal decimal_of_text floor_decimal left log power repeat right text_of_decimal",
    ),
    **_make_python_function_templates("({}, {}, {})", "lpad round_decimal rpad"),
    # text
    "position": SQL("instr({}, {})"),
    "substr": SQL("SUBSTR({}, {}, {})"),
    "substr_any": SQL("treefold_substr({}, {}, {})"),
    "substr_rest": SQL("SUBSTR({}, {})"),
    "substr_rest_any": SQL("treefold_substr({}, {})"),
    # numbers
    "abs_integer": SQL("ABS({})"),
    "ceil_float": SQL("treefold_ceil({})"),
    "floor_float": SQL("treefold_floor({})"),
    "clock_in_zone": SQL("treefold_clock_in_zone({}, {})"),
    # SQLite knows milliseconds only; a sub-select without outer columns is computed once
    "now": SQL("(SELECT treefold_now())"),
    # 53 bits, as a double has: more could be rounded up to 1.0
    "random": SQL("((random() & 9007199254740991) / 9007199254740992.0)"),
    "round_float": SQL("treefold_round({}, {})"),
    "round_integer": SQL("treefold_round_decimal({}, {}, 0)"),
    # windows
    "lag": SQL("LAG({}, {})"),
    "lag_default": SQL("LAG({}, {}, {})"),
    "lead": SQL("LEAD({}, {})"),
    "lead_default": SQL("LEAD({}, {}, {})"),
    "nth_value": SQL("NTH_VALUE({}, {})"),
    "ntile": SQL("NTILE({})"),
    # JSON: each value as a text of its own
    "json_of_boolean": SQL("CASE {} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"),
    "json_of_decimal": SQL("treefold_text_of_decimal({}, {})"),
    "json_of_float": SQL("treefold_json_of({})"),
    "json_of_integer": SQL("treefold_json_of({})"),
    "json_of_json": SQL("{}"),
    "json_of_number": SQL("treefold_json_of({})"),
    "json_of_text": SQL("treefold_json_of({})"),
    # casts
    "boolean_of_integer": SQL("(({}) <> 0)"),
    "integer_of_boolean": SQL("({})"),
    "text_of_boolean": SQL("CASE {} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"),
    "text_of_date": SQL("({})"),
    "text_of_datetime": SQL("({})"),
    "text_of_integer": SQL("CAST({} AS TEXT)"),
    # a time has six places of a second and always a point
    "text_of_time": SQL("rtrim(rtrim({}, '0'), '.')"),
    "text_of_uuid": SQL("({})"),
}
