"""Drafts: a table as a model may say it, with several proposals for what has several spellings.

A proposal is tried by rendering it and comparing; `settling.py` moves on to the next one until the
database says the same. The last proposal leaves the part out: it stays as the database has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from treefold_migrations._baseline.columns import AnyField, FieldKind
from treefold_migrations._inspect.found import InspectedTable
from treefold_migrations._state.schema_state import AsFound, TableOptions, TableState
from treefold_orm.schema import DEFAULT, ColumnDef

LEFT_OUT: Any = None
"""The proposal that leaves a part to the database."""


@dataclass(slots=True)
class Draft:
    """A part with its proposals; `name` is the one in the database. From the place `verbatim` on
    they are in the words of the catalog, so that they mean the same however they are printed.
    """

    kind: str
    name: str
    proposals: list[Any]
    place: int = 0
    verbatim: int = -1

    @property
    def chosen_proposal(self) -> Any:
        """The proposal that is tried, or has turned out right."""
        return self.proposals[self.place]

    @property
    def uses_catalog_sql(self) -> bool:
        """True for a proposal that repeats the catalog."""
        # the last proposal leaves the part out, and repeats nothing
        return 0 <= self.verbatim <= self.place < len(self.proposals) - 1

    def advance_to_next_proposal(self) -> bool:
        """Move on to the next proposal; False after the last."""
        if self.place + 1 >= len(self.proposals):
            return False
        self.place += 1
        return True


@dataclass(slots=True)
class FieldDraft:
    """One field: `default` proposes options, and `plain` is the field of its values, which differs
    from `kind` for a reference.
    """

    name: str
    column: ColumnDef
    kind: FieldKind
    plain: FieldKind
    options: dict[str, Any]
    default: Draft

    def make_field(self) -> AnyField:
        """Return the field."""
        return self.kind.make_field(**self.options, **(self.default.chosen_proposal or {}))


@dataclass(slots=True)
class TableDraft:
    """One table: `fields` by column, `parts` are constraints and indexes, `notes` name what is
    left to the database, `managed` is False for what migrations leave alone, `stand_in` names the
    field that stands for a key where there is none, `database` is the alias of the database.
    """

    name: str
    model: str
    found: InspectedTable | None
    fields: dict[str, FieldDraft] = field(default_factory=dict[str, FieldDraft])
    primary_key: tuple[str, ...] = ()
    parts: list[Draft] = field(default_factory=list[Draft])
    notes: list[str] = field(default_factory=list[str])
    managed: bool = True
    kind: str = "table"
    as_found: tuple[AsFound, ...] = ()
    stand_in: str = ""
    database: str = DEFAULT

    def to_table_state(self) -> TableState:
        """Return the table as a migration holds it."""
        chosen = [part for part in self.parts if part.chosen_proposal is not LEFT_OUT]
        return TableState(
            self.name,
            self.model,
            {draft.name: draft.make_field() for draft in self.fields.values()},
            TableOptions(
                self.primary_key,
                tuple(part.chosen_proposal for part in chosen if part.kind == "constraint"),
                tuple(part.chosen_proposal for part in chosen if part.kind == "index"),
                self.managed,
                self.as_found,
                self.database,
            ),
        )

    def list_part_and_default_drafts(self) -> Sequence[Draft]:
        """Return everything that has proposals."""
        return [*self.parts, *(draft.default for draft in self.fields.values())]
