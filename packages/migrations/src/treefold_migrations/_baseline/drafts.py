"""Drafts: a table as a model may say it, with several proposals for what has several spellings.

A proposal is tried by rendering it and comparing; `settling.py` moves on to the next one until the
database says the same. The last proposal leaves the part out: it stays as the database has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from treefold_migrations._baseline.columns import AnyField, FieldKind
from treefold_migrations._inspect.found import InspectedTable
from treefold_migrations._state.schema_state import AsFound, TableOptions, TableState
from treefold_orm.schema import DEFAULT, ColumnDef

DraftKind = Literal["constraint", "index", "default"]

LEFT_OUT: Any = None
"""The proposal that leaves a part to the database."""


@dataclass(slots=True)
class Draft:
    """A part with its proposals.

    Example, the unique index `by_title` over one column, on PostgreSQL:

        Draft(
            "constraint",
            "by_title",
            [
                UniqueConstraint(F("title"), name="by_title"),
                UniqueConstraint("title", name="by_title"),
                LEFT_OUT,
            ],
            chosen=0,
            first_verbatim=1,
        )

    Where the database prints the first proposal otherwise, `chosen` becomes 1. That one stays,
    since it says nothing in SQL but what the catalog says.

    Attributes:
        kind: the option of the model that the part belongs to; "default" for that of a column.
        name: the name of the part in the database; of a default, the column.
        proposals: what the model may say; the last one is LEFT_OUT, or no options for a default.
        chosen: the place of the proposal that is tried, or has turned out right.
        first_verbatim: the place from which on proposals are in the words of the catalog, so that
            they mean the same however they are printed; -1 where none is.
    """

    kind: DraftKind
    name: str
    proposals: list[Any]
    chosen: int = 0
    first_verbatim: int = -1

    @property
    def chosen_proposal(self) -> Any:
        """The proposal that is tried, or has turned out right."""
        return self.proposals[self.chosen]

    @property
    def uses_catalog_sql(self) -> bool:
        """True for a proposal that repeats the catalog."""
        # the last proposal leaves the part out, and repeats nothing
        return 0 <= self.first_verbatim <= self.chosen < len(self.proposals) - 1

    def advance_to_next_proposal(self) -> bool:
        """Move on to the next proposal; False after the last."""
        if self.chosen + 1 >= len(self.proposals):
            return False
        self.chosen += 1
        return True


@dataclass(slots=True)
class FieldDraft:
    """One field.

    Attributes:
        name: the name of the field.
        column: the column that it stands for.
        kind: the class of the field with its arguments.
        plain: the class for the values alone, which differs from `kind` for a reference.
        options: the options of the field, such as `null`.
        default: proposals for the options of its default.
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
    """One table, or view.

    Attributes:
        name, model: the name of the table and of the class.
        found: the table in the catalog; None for what migrations leave alone.
        fields: the fields by column.
        primary_key: the fields of a key of several columns.
        parts: constraints and indexes.
        notes: words for what is left to the database because no field holds it.
        managed: False for what migrations leave alone.
        kind: a word for it, such as "table" or "view".
        as_found: the differences that remain once the proposals are chosen.
        stand_in: the field that stands for a key where there is none; empty where there is one.
        database: the alias of the database.
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
