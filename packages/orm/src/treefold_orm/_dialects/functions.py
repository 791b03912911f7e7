"""Functions of the closed list that both databases say in one way, and how templates are filled.

Each dialect has a table of its own beside this one (`postgres_functions`, `sqlite_functions`). A
template holds `{}` for each argument, or `{0}` where one is used twice or not at all.
"""

from __future__ import annotations

from typing import LiteralString

from treefold_orm._base.errors import FieldError
from treefold_orm._dialects.sql import SQL, join_sql
from treefold_orm._expressions.nodes import OrderNode
from treefold_orm._expressions.operands import FUNCTION_RULES

SHARED: dict[str, SQL] = {
    "abs_decimal": SQL("ABS({})"),
    "abs_float": SQL("ABS({})"),
    "cume_dist": SQL("CUME_DIST()"),
    "dense_rank": SQL("DENSE_RANK()"),
    "first_value": SQL("FIRST_VALUE({})"),
    "last_value": SQL("LAST_VALUE({})"),
    "length": SQL("LENGTH({})"),
    "ltrim": SQL("LTRIM({})"),
    "nullif": SQL("NULLIF({}, {})"),
    "percent_rank": SQL("PERCENT_RANK()"),
    "rank": SQL("RANK()"),
    "replace": SQL("REPLACE({}, {}, {})"),
    "row_number": SQL("ROW_NUMBER()"),
    "rtrim": SQL("RTRIM({})"),
    "sign": SQL("SIGN({})"),
    "trim": SQL("TRIM({})"),
}
MANY: dict[str, SQL] = {"coalesce": SQL("COALESCE({})")}

AGGREGATES: dict[str, SQL] = {
    "count": SQL("COUNT({})"),
    "sum": SQL("SUM({})"),
    "avg": SQL("AVG({})"),
    "min": SQL("MIN({})"),
    "max": SQL("MAX({})"),
}


def add_distinct(name: str, value: SQL, *, distinct: bool) -> SQL:
    """The argument of an aggregate: with `distinct`, each value once."""
    return SQL("DISTINCT {}", value) if distinct and name not in {"min", "max"} else value


def build_order_term(value: SQL, node: OrderNode, *, explicit_nulls: bool = False) -> SQL:
    """One term of an ORDER BY clause. NULLs come last ascending and first descending;
    `explicit_nulls` where the database needs to be told.
    """
    nulls = node.nulls or ("first" if node.descending else "last")
    template: LiteralString = "{} DESC" if node.descending else "{} ASC"
    if node.nulls or explicit_nulls:
        template += " NULLS FIRST" if nulls == "first" else " NULLS LAST"
    return SQL(template, value)


def fill_function_template(
    name: str, args: list[SQL], templates: dict[str, SQL], variadic_templates: dict[str, SQL]
) -> SQL:
    """A function by name: from `templates`, or from `variadic_templates` where it takes any number
    of arguments.
    """
    listed = variadic_templates.get(name)
    if listed is not None:
        return listed.fill_template([join_sql(", ", args)])
    template = templates.get(name)
    if template is None:
        if name in FUNCTION_RULES:
            raise FieldError(
                f"{name.capitalize()} must be given an expression whose type is known; give a Func "
                "its output_field"
            )
        raise FieldError(f"{name!r} is not a known function")
    return template.fill_template(args)
