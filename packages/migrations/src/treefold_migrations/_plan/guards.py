"""Queries that find the rows a change cannot take, before anything is written.

Each returns one row with the number of rows and the key of one of them, or no row at all. Messages
name the table, the column, the way out and mostly that key, but no value of another column. A key
may be personal, such as an e-mail address.

Example, `build_no_matching_rows_guard` receives the table as it is, the condition of a misfit, and
as `from_clause` a query for the values as they will be:

    >>> AlterField("book", "pages", fields.SmallIntegerField(null=True))
    SQLite: SELECT count(*) OVER () AS "rows", CAST("id" AS TEXT) FROM (SELECT ... FROM "book")
    AS "treefold_rows" WHERE NOT ("pages" BETWEEN -32768 AND 32767) LIMIT 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treefold_migrations._plan.step import Step
from treefold_orm.schema import CheckDef, ForeignKeyDef, TableDef, UniqueDef, quote

_SOURCE = '"treefold_rows"'


def build_count_and_example_query(table: TableDef, condition: str, from_clause: str = "") -> str:
    """Query for the rows of a table that meet a condition; `from_clause` replaces the table."""
    # as text: a driver keeps the statement, whose types must not change with the table
    keys = "".join(f", CAST({quote(key)} AS TEXT)" for key in table.primary_key)
    return (
        # the window counts before LIMIT: one reading of the table gives the number and one example
        f'SELECT count(*) OVER () AS "rows"{keys} FROM {from_clause or quote(table.name)} '
        f"WHERE {condition} LIMIT 1"
    )


def describe_example_row(table: TableDef) -> str:
    """The part of a message that names one row, of `build_count_and_example_query`."""
    keys = ", ".join(f"{key}={{{place}}}" for place, key in enumerate(escape_key_names(table), 1))
    return f"for example {keys}"


def escape_key_names(table: TableDef) -> list[str]:
    """The names of the key's columns, as a format string takes them."""
    return [escape_braces(key) for key in table.primary_key]


def escape_braces(text: str) -> str:
    """Text that stays as it is in a format string."""
    # a table may be named "a{0}b", which format() would fill with a column of the row
    return text.replace("{", "{{").replace("}", "}}")


def build_no_matching_rows_guard(
    table: TableDef, condition: str, problem: str, *, from_clause: str = ""
) -> Step:
    """A step that stops where a row meets a condition; `problem` goes on after the count."""
    message = f"{escape_braces(table.name)}: {{0}} rows {problem} ({describe_example_row(table)})"
    return Step(
        "",
        table=table.name,
        summary=f"check rows of {table.name}",
        verify=build_count_and_example_query(table, condition, from_clause),
        problem=message,
    )


def _describe_fill_command(field_path: str) -> str:
    return (
        "with fill= in the operation, or delete the file and run `treefold makemigrations --fill "
        f"{field_path}:VALUE`"
    )


def build_no_rows_guard(table: TableDef, column: str) -> Step:
    """A step that stops where the table has rows, for a column they have no value for."""
    place = escape_braces(f"{table.name}.{column}")
    return Step(
        "",
        table=table.name,
        summary=f"check that {table.name} has no rows",
        verify=build_count_and_example_query(table, "TRUE"),
        problem=(
            f"{place} allows no NULL and has no default in the database, but "
            f"{escape_braces(table.name)} "
            f"has {{0}} rows; give a value for them, {_describe_fill_command(place)}, or make"
            " the field "
            "nullable"
        ),
    )


def build_no_nulls_guard(table: TableDef, column: str, from_clause: str = "") -> Step:
    """A step that stops where a column that will allow no NULL has some."""
    place = escape_braces(f"{table.name}.{column}")
    return build_no_matching_rows_guard(
        table,
        f"{quote(column)} IS NULL",
        f"have NULL in {escape_braces(column)}, which will allow none; give them a value, "
        f"{_describe_fill_command(place)}",
        from_clause=from_clause,
    )


def build_check_guard(table: TableDef, check: CheckDef, from_clause: str = "") -> Step:
    """A step that stops where a row breaks a new check."""
    problem = f"break the check {escape_braces(check.name)}; change them first"
    return build_no_matching_rows_guard(
        table, f"NOT ({check.sql})", problem, from_clause=from_clause
    )


def build_no_orphans_guard(table: TableDef, key: ForeignKeyDef, from_clause: str = "") -> Step:
    """A step that stops where a reference points to no row."""
    alias = from_clause or quote(table.name)
    # qualified, since inside of the subquery a bare name means the column of the target first
    column = f"{_SOURCE if from_clause else alias}.{quote(key.column)}"
    return build_no_matching_rows_guard(
        table,
        f"{quote(key.column)} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {quote(key.target)} AS "
        f'"treefold_target" WHERE "treefold_target".{quote(key.target_column)} = {column})',
        f"point with {escape_braces(key.column)} to no row of {escape_braces(key.target)}; delete "
        "them or point them elsewhere",
        from_clause=from_clause,
    )


def build_no_duplicates_guard(
    table: TableDef, unique: UniqueDef, from_clause: str = ""
) -> Step | None:
    """A step that stops where rows are equal in the columns of a new unique constraint, or None
    for a constraint over expressions.
    """
    if not unique.columns:
        return None
    columns = ", ".join(map(quote, unique.columns))
    keys = ", ".join(map(quote, table.primary_key))
    # rows with NULL never repeat each other, unless the constraint has NULLS NOT DISTINCT
    conditions = [f"{quote(c)} IS NOT NULL" for c in unique.columns if unique.nulls_distinct]
    conditions += [f"({unique.where})"] if unique.where else []
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    numbered = (
        f"(SELECT {keys}, row_number() OVER (PARTITION BY {columns} ORDER BY {keys}) AS "
        f'"treefold_number" FROM {from_clause or quote(table.name)}{where}) AS "treefold_numbered"'
    )
    listed = escape_braces(", ".join(unique.columns))
    return build_no_matching_rows_guard(
        table,
        '"treefold_number" > 1',
        f"repeat another row in {listed}, which becomes unique; change or delete them",
        from_clause=numbered,
    )


def build_values_subquery(
    table: TableDef, values: Mapping[str, str], columns: Sequence[str]
) -> str:
    """A subquery of a table with its columns as they will be."""
    listed = ", ".join(f"{values[name]} AS {quote(name)}" for name in columns)
    return f"(SELECT {listed} FROM {quote(table.name)}) AS {_SOURCE}"


def build_cast_test_function_sql(type_name: str) -> str:
    """A statement that creates the function which tests whether text is a value of a type."""
    return (
        "CREATE OR REPLACE FUNCTION pg_temp.treefold_casts(given text) RETURNS boolean "
        "LANGUAGE plpgsql IMMUTABLE AS $treefold$ BEGIN "
        f"EXECUTE 'SELECT $1::{type_name}' USING given; RETURN TRUE; "
        # the class 22 of SQLSTATE covers the errors of casts: 22P02 for the form, 22008 for a day
        # that does not exist
        "EXCEPTION WHEN data_exception THEN RETURN FALSE; END $treefold$"
    )


def format_check_error(step: Step, row: Sequence[object]) -> str:
    """The error for the first row that the `verify` of a step returned."""
    if step.problem:
        return step.problem.format(*row)
    shown = ", ".join(str(value) for value in row)
    return f"{step.summary or 'A step'} failed its check: {shown}"
