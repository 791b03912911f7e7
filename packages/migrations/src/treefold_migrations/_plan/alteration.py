"""Alteration: one table that stays, on PostgreSQL, and its changes.

Example: the type of a key changes, so the constraint on the key of another table is dropped and
added again (`_must_recreate`), as its column is in `retyped`:

    >>> AlterField("book", "id", fields.AutoField())
    PostgreSQL: ALTER TABLE "chapter" DROP CONSTRAINT "fk_chapter_book_id"
    PostgreSQL: ALTER TABLE "chapter" VALIDATE CONSTRAINT "fk_chapter_book_id"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treefold_migrations._plan import changes
from treefold_orm.schema import ForeignKeyDef, TableDef


@dataclass(frozen=True, slots=True)
class TableAlteration:
    """One table that stays: `current` has its new names, but for constraints and indexes."""

    change: changes.TableChange
    current: TableDef
    after: TableDef
    retyped: frozenset[str]
    dropped: frozenset[str]

    @property
    def is_new(self) -> bool:
        return self.change.fresh

    def compare_parts(
        self, before: Sequence[changes.P], after: Sequence[changes.P]
    ) -> changes.PartChanges[changes.P]:
        """Changes among parts of one kind."""
        return changes.compare_parts(before, after, self._must_recreate)

    def compare_constraints_and_indexes(self) -> list[changes.PartChanges[Any]]:
        """Changes among all parts but the foreign keys, kind by kind."""
        old, new = self.current, self.after
        return [
            self.compare_parts(old.exclusions, new.exclusions),
            self.compare_parts(
                changes.collect_table_and_column_checks(old),
                changes.collect_table_and_column_checks(new),
            ),
            self.compare_parts(old.uniques, new.uniques),
            self.compare_parts(old.indexes, new.indexes),
            self.compare_parts(old.searches, new.searches),
        ]

    def _must_recreate(self, part: changes.Part) -> bool:
        # two types that have no common equality fail while one column has changed and the other
        # not, and the server would test all rows of the reference again under its lock
        if isinstance(part, ForeignKeyDef):
            return part.column in self.retyped
        # an index over plain columns follows a change of their type, its expressions may not
        plain = getattr(part, "columns", ()) and not getattr(part, "where", "")
        return not plain and changes.part_mentions_column(part, self.retyped)

    def is_dropped_with_column(self, part: changes.Part) -> bool:
        """True where dropping a column drops the part too."""
        return changes.part_mentions_column(part, self.dropped)
