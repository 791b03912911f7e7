"""The schema of a database as plain records: tables and their parts, and operations.

Records are comparable and hold names and SQL of this package; two equal records make the same
table. Nothing here reads a model or writes a statement.

Parts are dataclasses, of which tools make changed copies; operations are not, which are only read:
a dataclass takes half a millisecond of each import to make.

Example, a model `Book` with `title = CharField(max_length=20, unique=True)` and `writer =
ForeignKey(Writer, null=True)`, on SQLite:

    TableDef(
        "book",
        (
            ColumnDef("id", "INTEGER", identity=True),
            ColumnDef(
                "title", "TEXT", checks=('length("title") <= 20',), check_name="ck_book_title"
            ),
            ColumnDef("writer_id", "INTEGER", null=True),
        ),
        primary_key=("id",),
        foreign_keys=(ForeignKeyDef("fk_book_writer_id", "writer_id", "writer", "id", "RESTRICT"),),
        uniques=(UniqueDef("uq_book_title", ("title",)),),
        indexes=(IndexDef("ix_book_writer_id", ('"writer_id"',)),),
    )
"""

from __future__ import annotations

from dataclasses import dataclass

from treefold_orm._base.records import Record, frozen_record
from treefold_orm._schema.schema_search import CreateSearchIndex, DropSearchIndex, SearchDef


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """One column in one dialect: `type`, `checks` and `default` are SQL, `identity` is a generated
    key; `check_name` is what an error shows where a check fails.
    """

    name: str
    type: str
    null: bool = False
    identity: bool = False
    checks: tuple[str, ...] = ()
    default: str = ""
    check_name: str = ""


@dataclass(frozen=True, slots=True)
class ForeignKeyDef:
    """A reference to another table; `on_delete` is a rule such as "SET_NULL"."""

    name: str
    column: str
    target: str
    target_column: str
    on_delete: str


@dataclass(frozen=True, slots=True)
class UniqueDef:
    """Rows that may exist once, over `columns` or over `terms`, which are SQL.

    `where` is SQL, for a partial one; `deferrable` is "deferred", "immediate" or empty; `include`
    are columns that the index carries along. `nulls_distinct` is False where NULL equals NULL.
    """

    name: str
    columns: tuple[str, ...] = ()
    where: str = ""
    terms: tuple[str, ...] = ()
    deferrable: str = ""
    nulls_distinct: bool = True
    include: tuple[str, ...] = ()

    @property
    def is_index(self) -> bool:
        """True where the database knows it as a unique index, not as a constraint."""
        return bool(self.terms or self.where)


@dataclass(frozen=True, slots=True)
class CheckDef:
    """A condition every row meets, as SQL."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class ExclusionDef:
    """Rows that may not exist together: each of `terms` is SQL with its operator (PostgreSQL)."""

    name: str
    terms: tuple[str, ...]
    where: str = ""
    deferrable: str = ""
    # it compares other types than ranges too, which takes the extension btree_gist
    scalars: bool = False


@dataclass(frozen=True, slots=True)
class IndexDef:
    """An index: `terms` are SQL (quoted columns with their direction, or expressions), `include`
    columns that it carries along.
    """

    name: str
    terms: tuple[str, ...]
    where: str = ""
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableDef:
    """One table in one dialect."""

    name: str
    columns: tuple[ColumnDef, ...]
    primary_key: tuple[str, ...]
    foreign_keys: tuple[ForeignKeyDef, ...] = ()
    uniques: tuple[UniqueDef, ...] = ()
    checks: tuple[CheckDef, ...] = ()
    indexes: tuple[IndexDef, ...] = ()
    searches: tuple[SearchDef, ...] = ()
    exclusions: tuple[ExclusionDef, ...] = ()


@frozen_record
class CreateTable(Record):
    """Create a table with everything that belongs to it."""

    table: TableDef
    if_missing: bool = False


@frozen_record
class DropTable(Record):
    """Drop a table."""

    name: str
    if_present: bool = False


@frozen_record
class CreateIndex(Record):
    """Create an index, or a unique one; `nulls_distinct` is False where NULL equals NULL."""

    table: str
    index: IndexDef
    unique: bool = False
    if_missing: bool = False
    nulls_distinct: bool = True


@frozen_record
class AddForeignKey(Record):
    """Add a reference to an existing table (PostgreSQL, where tables point to each other)."""

    table: str
    key: ForeignKeyDef


@frozen_record
class CreateExtension(Record):
    """Load an extension of PostgreSQL where it is not loaded yet."""

    name: str


SchemaOperation = (
    CreateTable
    | DropTable
    | CreateIndex
    | AddForeignKey
    | CreateExtension
    | CreateSearchIndex
    | DropSearchIndex
)
