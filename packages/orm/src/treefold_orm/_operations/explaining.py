"""The database's own plan for a query, as text or as a tree of `PlanStep`.

SQLite's `EXPLAIN QUERY PLAN` and PostgreSQL's JSON form are read into the same shape; table aliases
of the statement are turned back into table names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from treefold_orm._base.errors import FieldError, UnsupportedFeature
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._runtime.connections import database_for

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery

_ALIAS = re.compile(r'"((?:[^"]|"")+)" AS (t[0-9]+)')
_CTE = re.compile(r"\b(w[0-9]+)(?: AS (t[0-9]+))?")
_SQLITE = re.compile(
    r"(?P<kind>SCAN|SEARCH) (?P<table>\S+)"
    r"(?: USING (?:AUTOMATIC )?(?:PARTIAL )?(?:COVERING )?(?:INDEX (?P<index>\S+)"
    r"|(?P<key>INTEGER PRIMARY KEY)))?"
)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan and the steps it takes rows from.

    `table` and `index` are set where it reads them; `rows` and `cost` are PostgreSQL's estimates;
    `actual_rows` and `milliseconds` are measured with `analyze`.
    """

    kind: str
    detail: str
    table: str | None = None
    index: str | None = None
    rows: int | None = None
    cost: float | None = None
    actual_rows: float | None = None
    milliseconds: float | None = None
    steps: tuple[PlanStep, ...] = ()

    def walk(self) -> Iterator[PlanStep]:
        """This step and all below it."""
        yield self
        for step in self.steps:
            yield from step.walk()

    @property
    def indexes(self) -> list[str]:
        """The indexes the whole plan uses."""
        return [step.index for step in self.walk() if step.index is not None]

    @property
    def full_scans(self) -> list[str]:
        """The tables the whole plan reads from end to end."""
        found = [step for step in self.walk() if step.kind in {"SCAN", "Seq Scan"}]
        return [step.table for step in found if step.table is not None and step.index is None]


def explain_query(query: AnyQuery, *, as_tree: bool, analyze: bool) -> Operation[Any]:
    """The plan as text, or with `as_tree` as a tree; `analyze` runs the query to measure it."""
    for name, given in (("plan", as_tree), ("analyze", analyze)):
        if not isinstance(cast("Any", given), bool):
            raise FieldError(f"explain({name}=) must be True or False, got {given!r}")
    compiled, args = query._compile_plan("rows")
    sqlite = database_for(query._alias).dialect.name == "sqlite"
    if sqlite and analyze:
        raise UnsupportedFeature("explain(analyze=True) needs PostgreSQL: SQLite measures nothing")
    if sqlite:
        found = yield Statement("rows", f"EXPLAIN QUERY PLAN {compiled.sql}", args)
        if as_tree:
            return _parse_sqlite_plan(found, _map_aliases_to_tables(compiled.sql))
        return "\n".join(str(row[3]) for row in found)
    options = [word for word, wanted in (("ANALYZE", analyze), ("FORMAT JSON", as_tree)) if wanted]
    words = f"EXPLAIN ({', '.join(options)})" if options else "EXPLAIN"
    found = yield Statement("rows", f"{words} {compiled.sql}", args)
    if as_tree:
        return _parse_postgres_plan(json.loads(found[0][0])[0]["Plan"])
    return "\n".join(str(row[0]) for row in found)


def _map_aliases_to_tables(sql: str) -> dict[str, str | None]:
    known: dict[str, str | None] = {name: None for names in _CTE.findall(sql) for name in names}
    known.update((alias, name.replace('""', '"')) for name, alias in _ALIAS.findall(sql))
    return known


def _parse_sqlite_plan(rows: Sequence[Any], tables: dict[str, str | None]) -> PlanStep:
    below: dict[int, list[Any]] = {}
    for row in rows:
        # the columns of EXPLAIN QUERY PLAN: id, parent, one without a use, text
        below.setdefault(row[1], []).append(row)

    def build_step(row: Any) -> PlanStep:
        detail = str(row[3])
        inner = tuple(build_step(child) for child in below.get(row[0], ()))
        found = _SQLITE.match(detail)
        if found is None:
            return PlanStep(detail, detail, steps=inner)
        table = tables.get(found["table"], found["table"])
        index = found["index"] or ("primary key" if found["key"] else None)
        return PlanStep(found["kind"], detail, table=table, index=index, steps=inner)

    return PlanStep("QUERY", "QUERY PLAN", steps=tuple(build_step(row) for row in below.get(0, ())))


def _parse_postgres_plan(node: dict[str, Any]) -> PlanStep:
    return PlanStep(
        node["Node Type"],
        str(node.get("Index Cond") or node.get("Filter") or node["Node Type"]),
        table=node.get("Relation Name"),
        index=node.get("Index Name"),
        rows=node.get("Plan Rows"),
        cost=node.get("Total Cost"),
        actual_rows=node.get("Actual Rows"),
        milliseconds=node.get("Actual Total Time"),
        steps=tuple(_parse_postgres_plan(child) for child in node.get("Plans", ())),
    )
