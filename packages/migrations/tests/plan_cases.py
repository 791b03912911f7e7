"""Changes of tables as data, which tests of plans apply to real databases."""

from __future__ import annotations

from typing import Any

from plan_engines import Bench, Row

from treefold_migrations._plan.between import PlannerHints, compute_table_changes
from treefold_migrations._plan.changes import TableChange
from treefold_migrations._plan.step import Step
from treefold_orm import fields
from treefold_orm.schema import Dialect, TableShape

Fields = dict[str, Any]


def shape(name: str, columns: Fields, **options: Any) -> TableShape:
    """A table with a key of its own."""
    key: Fields = {"id": fields.BigAutoField(primary_key=True)}
    return TableShape(name, name.title(), key | columns, **options)


class Case:
    """One change, with rows as SQL literals before and the values expected after."""

    def __init__(
        self,
        before: list[TableShape],
        after: list[TableShape],
        rows: dict[str, list[dict[str, str]]] | None = None,
        expected: dict[str, tuple[str, list[Row]]] | None = None,
        *,
        only: str = "",
        answers: PlannerHints | None = None,
    ) -> None:
        self.before = before
        self.after = after
        self.rows = rows or {}
        self.expected = expected or {}
        self.only = only
        self.answers = answers or PlannerHints()

    def changes(self, dialect: Dialect) -> list[TableChange]:
        """The changes for the planner."""
        old = {s.name: s for s in self.before}
        new = {s.name: s for s in self.after}
        return compute_table_changes(old, new, dialect=dialect, answers=self.answers)

    def apply(self, bench: Bench, **options: Any) -> list[Step]:
        """Plan and apply the change."""
        return bench.change(self.changes(bench.dialect), **options)

    def fill(self, bench: Bench) -> None:
        """Create the tables before, with their rows."""
        bench.create(self.before)
        for table, rows in self.rows.items():
            for row in rows:
                bench.insert(table, row)

    def key_of(self, table: str) -> str:
        """The column that rows after are ordered by."""
        found = next(s for s in self.after if s.name == table)
        return found.primary_key[0] if found.primary_key else next(iter(found.fields))


def one(before: Any, after: Any, rows: list[str], expected: list[Any], **more: Any) -> Case:
    """A change of one field of a table."""
    return Case(
        [shape("item", {"v": before})],
        [shape("item", {"v": after})],
        {"item": [{"v": row} for row in rows]},
        {"item": ("v", [(value,) for value in expected])},
        **more,
    )
