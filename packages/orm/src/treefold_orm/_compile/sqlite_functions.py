"""Functions of the closed list in the words of SQLite.

Those that SQLite lacks, or computes otherwise than PostgreSQL, are Python functions of the
connection (`drivers/sqlite_text`, `sqlite_math`, `sqlite_casts`), named `treefold_...` here.
"""

from __future__ import annotations

from treefold_orm._compile.functions import AGGREGATES as BOTH_AGGREGATES, MANY as BOTH_MANY, SHARED
from treefold_orm._compile.sql import SQL

MANY: dict[str, SQL] = {
    **BOTH_MANY,
    "greatest": SQL("treefold_greatest({})"),
    "json_object": SQL("treefold_json_object({})"),
    "least": SQL("treefold_least({})"),
}
AGGREGATES: dict[str, SQL] = {
    **BOTH_AGGREGATES,
    "avg_integer": SQL("treefold_avg_integer({})"),
    "sum_high": SQL("SUM({} >> 32)"),
    "sum_low": SQL("SUM({} & 4294967295)"),
    "bool_and": SQL("MIN({})"),
    "bool_or": SQL("MAX({})"),
    "stddev_pop": SQL("treefold_stddev_pop({})"),
    "stddev_samp": SQL("treefold_stddev_samp({})"),
    "var_pop": SQL("treefold_var_pop({})"),
    "var_samp": SQL("treefold_var_samp({})"),
}
COLLECT: dict[str, SQL] = {
    "array_agg": SQL("treefold_array_agg('{}', {}, NULL{})"),
    "string_agg": SQL("treefold_string_agg('{}', {}, {}{})"),
}
FUNCTIONS: dict[str, SQL] = {
    **SHARED,
    # text
    "left": SQL("treefold_left({}, {})"),
    "lower": SQL("treefold_lower({})"),
    "lpad": SQL("treefold_lpad({}, {}, {})"),
    "md5": SQL("treefold_md5({})"),
    "position": SQL("instr({}, {})"),
    "repeat": SQL("treefold_repeat({}, {})"),
    "reverse": SQL("treefold_reverse({})"),
    "right": SQL("treefold_right({}, {})"),
    "rpad": SQL("treefold_rpad({}, {}, {})"),
    "sha256": SQL("treefold_sha256({})"),
    "substr": SQL("SUBSTR({}, {}, {})"),
    "substr_any": SQL("treefold_substr({}, {}, {})"),
    "substr_rest": SQL("SUBSTR({}, {})"),
    "substr_rest_any": SQL("treefold_substr({}, {})"),
    "upper": SQL("treefold_upper({})"),
    # numbers
    "abs_integer": SQL("ABS({})"),
    "ceil_decimal": SQL("treefold_ceil_decimal({}, {})"),
    "ceil_float": SQL("treefold_ceil({})"),
    "exp": SQL("treefold_exp({})"),
    "floor_decimal": SQL("treefold_floor_decimal({}, {})"),
    "floor_float": SQL("treefold_floor({})"),
    "ln": SQL("treefold_ln({})"),
    "log": SQL("treefold_log({}, {})"),
    # SQLite knows milliseconds only; a sub-select without outer columns is computed once
    "now": SQL("(SELECT treefold_now())"),
    "power": SQL("treefold_power({}, {})"),
    "random": SQL("((random() & 9007199254740991) / 9007199254740992.0)"),
    "round_decimal": SQL("treefold_round_decimal({}, {}, {})"),
    "round_float": SQL("treefold_round({}, {})"),
    "round_integer": SQL("treefold_round_decimal({}, {}, 0)"),
    "sqrt": SQL("treefold_sqrt({})"),
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
    "boolean_of_text": SQL("treefold_boolean_of_text({})"),
    "date_of_text": SQL("treefold_date_of_text({})"),
    "datetime_of_text": SQL("treefold_datetime_of_text({})"),
    "decimal_of_text": SQL("treefold_decimal_of_text({}, {})"),
    "float_of_text": SQL("treefold_float_of_text({})"),
    "integer_of_boolean": SQL("({})"),
    "integer_of_text": SQL("treefold_integer_of_text({})"),
    "text_of_boolean": SQL("CASE {} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"),
    "text_of_date": SQL("({})"),
    "text_of_datetime": SQL("({})"),
    "text_of_decimal": SQL("treefold_text_of_decimal({}, {})"),
    "text_of_float": SQL("treefold_text_of_float({})"),
    "text_of_integer": SQL("CAST({} AS TEXT)"),
    # a time has six places of a second and always a point
    "text_of_time": SQL("rtrim(rtrim({}, '0'), '.')"),
    "text_of_uuid": SQL("({})"),
    "time_of_text": SQL("treefold_time_of_text({})"),
    "uuid_of_text": SQL("treefold_uuid_of_text({})"),
}
