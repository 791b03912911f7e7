"""Parts of a live SQLite table that its rebuild would lose, because no migration knows them.

    ALTER TABLE book ADD COLUMN shelf TEXT     -- by hand, or by RunSQL
    AlterField("book", "title", ...)           -- copies the columns that the history knows

SQLite has no ALTER for most changes, so the table is created again as the history describes it.
Indexes and triggers are created again as they were; columns, checks, collations, generated columns
and the like are not, and the rebuild is refused while it can still lose nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from treefold_migrations._base.errors import RunError
from treefold_migrations._inspect.compare import MISSING, Comparison, Difference
from treefold_migrations._inspect.found import InspectedTable
from treefold_migrations._inspect.sql_text import canonicalize_sql
from treefold_migrations._inspect.sqlite import build_expected_tables, parse_catalog
from treefold_orm.schema import Operation, Statement, TableDef, quote

_LOST = frozenset(
    {"check", "column", "default", "foreign key", "primary key", "table", "type", "unique"}
)
_KEPT = frozenset({MISSING, "AUTOINCREMENT"})
_READ = (
    "SELECT type, name, tbl_name, sql FROM sqlite_master "
    "WHERE type IN ('table', 'index') AND sql IS NOT NULL"
)


class UnknownParts(RunError):
    """The live table has parts that the history does not know; `problem` names them."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table as the migrations know it, and how it differs from that with their knowledge.

    With `dropping`, only what goes with that column counts, of a table that is not rebuilt.
    """

    table: TableDef
    findings: frozenset[tuple[str, str, str]] = frozenset()
    dropping: str = ""


def refuse_unknown_table_parts(known: KnownTable) -> Operation[None]:
    """Raise `UnknownParts` where the live table has parts that the history does not know."""
    rows: list[Any] = yield Statement("rows", _READ)
    table = known.table
    # targets are read too: REFERENCES without columns means their key
    near = {table.name.lower(), *(key.target.lower() for key in table.foreign_keys)}
    catalog = parse_catalog([tuple(row) for row in rows if row[2].lower() in near])
    live = next((f for n, f in catalog.tables.items() if n.lower() == table.name.lower()), None)
    if live is None:
        return  # the next statement says that the table is missing
    wanted = build_expected_tables([table])[table.name]
    lost = [d for d in _find_rebuild_losses(wanted, live) if d.key not in known.findings]
    how = f"Table {table.name!r} must be rebuilt for this change, which"
    if known.dropping:
        lost = [d for d in lost if _is_dropped_with_column(d, known.dropping)]
        how = f"Dropping {table.name}.{known.dropping}"
    if lost:
        parts = "; ".join(map(_describe_difference, lost))
        raise UnknownParts(
            f"{how} would lose what no migration made: {parts}",
            "add it to the model and record that migration with `migrate --fake`, drop it with "
            f"RunSQL before, or agree to the loss with SetOptions({table.name!r}, as_found=[]) in "
            "this migration",
        )


def _find_rebuild_losses(wanted: InspectedTable, live: InspectedTable) -> Iterator[Difference]:
    indexes = {unique.name for unique in live.table.uniques if unique.is_index}
    for difference in Comparison(canonicalize_sql, "sqlite").compare_table(wanted, live):
        kind, name, found = difference.key
        # a rebuild would take NOT NULL away; whether NULL gives way to it is tested by a guard
        if kind == "nullability" and found == "NOT NULL":
            yield difference
        elif kind not in _LOST or found in _KEPT or found.startswith("not "):
            continue
        # a unique index by hand is created again as it was
        elif not (kind == "unique" and name in indexes):
            yield difference


def _is_dropped_with_column(difference: Difference, column: str) -> bool:
    words = f"{difference.name} {difference.found}"
    return (
        difference.kind in {"check", "foreign key", "unique"}
        # as a whole word: "rank" is no part of "ranking"
        and re.search(rf"(?<!\w){re.escape(column)}(?!\w)", words) is not None
    )


def _describe_difference(difference: Difference) -> str:
    if difference.kind == "column" and difference.name:
        return f"column {quote(difference.name)} ({difference.found})"
    return f"{difference.kind} {difference.name} ({difference.found})".replace("  ", " ")
