"""The contents of a catalog, as records. Nothing here queries a database.

Tables are the ORM's records with SQL as the database prints it; all checks are checks of the table.
`notes` hold the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field as attribute

from treefold_migrations._base.errors import MigrationError
from treefold_orm.schema import TableDef

Place = tuple[str, str]  # a kind of part ("column", "index", ...) and its name

SERIAL = "filled by a sequence"
NOT_VALID = "NOT VALID"
INVALID = "invalid"


class InspectError(MigrationError):
    """A database cannot be read, or not compared."""


@dataclass(frozen=True, slots=True)
class InspectedTable:
    """One table of a database."""

    table: TableDef
    notes: Mapping[Place, tuple[str, ...]] = attribute(default_factory=dict[Place, tuple[str, ...]])


@dataclass(frozen=True, slots=True)
class UnmanagedObject:
    """Something of a database that migrations leave alone: a view, a partition, a trigger."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} is left alone"


@dataclass(frozen=True, slots=True)
class Catalog:
    """All tables of a database that migrations can manage, and everything else by name."""

    tables: Mapping[str, InspectedTable]
    others: tuple[UnmanagedObject, ...] = ()
