"""One report: a query of the ORM, and the SQL that it must agree with.

SQL is written once, in PostgreSQL's names (`invoice_line`) and with a few macros for what the two
databases spell differently (`@year(x)`). `for_sqlite` and `for_postgres` write it out.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Query = Callable[[Any], Any]

_MACROS: dict[str, tuple[str, str]] = {
    "year": ("CAST(strftime('%Y', {}) AS INTEGER)", "EXTRACT(YEAR FROM {})::int"),
    "month": ("CAST(strftime('%m', {}) AS INTEGER)", "EXTRACT(MONTH FROM {})::int"),
    "quarter": (
        "((CAST(strftime('%m', {}) AS INTEGER) + 2) / 3)",
        "EXTRACT(QUARTER FROM {})::int",
    ),
    "month_start": ("strftime('%Y-%m-01', {})", "date_trunc('month', {})::date"),
    "year_start": ("strftime('%Y-01-01', {})", "date_trunc('year', {})::date"),
    "week_start": ("date({}, '-6 days', 'weekday 1')", "date_trunc('week', {})::date"),
    "week_day": ("(CAST(strftime('%w', {}) AS INTEGER) + 1)", "(EXTRACT(DOW FROM {})::int + 1)"),
    "day": ("date({})", "{}::date"),
    "number": ("CAST({} AS REAL)", "({})::double precision"),
    "position": ("instr({})", "strpos({})"),
}
_MACRO = re.compile(r"@(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)")


@dataclass(frozen=True)
class Report:
    """A question about the music store.

    Attributes:
        name: what is asked.
        sql: the answer in SQL; `ordered` says that the order of its rows counts.
        query: the answer by the ORM: called with the models, gives rows.
    """

    name: str
    sql: str
    query: Query
    ordered: bool = False


class Reports(list[Report]):
    """Reports in the order in which they are declared; an instance is used as a decorator."""

    def __call__(self, sql: str, *, ordered: bool = False) -> Callable[[Query], Query]:
        """Declare a report: its docstring is the name, its body the query."""

        def declare(query: Query) -> Query:
            self.append(Report(query.__doc__ or query.__name__, sql, query, ordered))
            return query

        return declare


@dataclass(frozen=True)
class Change:
    """A change of rows, made by the ORM and by SQL, each undone after its rows were compared.

    Attributes:
        name: what is done.
        sql: statements that do it.
        look: SQL that shows the rows afterwards.
        work: does it by the ORM: called with the models.
        rows: the rows afterwards, by the ORM.
    """

    name: str
    sql: tuple[str, ...]
    look: str
    work: Query
    rows: Query


class Changes(list[Change]):
    """Changes in the order in which they are declared; an instance is used as a decorator."""

    def __call__(self, *sql: str, look: str, rows: Query) -> Callable[[Query], Query]:
        """Declare a change: its docstring is the name, its body the work."""

        def declare(work: Query) -> Query:
            self.append(Change(work.__doc__ or work.__name__, sql, look, work, rows))
            return work

        return declare


def for_postgres(sql: str) -> str:
    """Write a report's SQL out for PostgreSQL."""
    return _expanded(sql, 1)


def for_sqlite(sql: str, names: Iterable[str]) -> str:
    """Write a report's SQL out for SQLite, whose tables and columns have no underscores."""
    known = "|".join(sorted(names, key=len, reverse=True))
    if not known:
        return _expanded(sql, 0)
    return re.sub(rf"\b({known})\b", lambda m: m[1].replace("_", ""), _expanded(sql, 0))


def _expanded(sql: str, place: int) -> str:
    while (found := _MACRO.search(sql)) is not None:
        text = _MACROS[found[1]][place].replace("{}", found[2])
        sql = sql[: found.start()] + text + sql[found.end() :]
    return sql


def in_snake_case(name: str) -> str:
    """`UnitPrice` as `unit_price`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def comparable(rows: Iterable[Any], *, ordered: bool) -> list[tuple[Any, ...]]:
    """Rows as tuples that compare across drivers: numbers to six places, dates as text."""
    made = [_cells(row if isinstance(row, (tuple, list)) else (row,)) for row in rows]
    return made if ordered else sorted(made, key=repr)


def _cells(row: Any) -> tuple[Any, ...]:
    return tuple(map(_cell, row))


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (float, decimal.Decimal)):
        rounded = round(float(value), 6)
        return int(rounded) if rounded.is_integer() else rounded
    if isinstance(value, dt.datetime):
        value = value.replace(tzinfo=None).isoformat(" ")
    elif isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, str):
        return value.removesuffix(".000000").removesuffix(" 00:00:00")
    return value
