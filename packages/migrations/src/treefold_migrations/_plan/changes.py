"""Changes of tables as data: columns and other parts that stay, go or come.

Names follow the renames first, so that only real differences are left. No statement is written
here; both databases read the same comparison.

Example: after the rename, the columns differ by `price` alone; without following it, `pages` would
be dropped and `length` added, empty:

    >>> RenameField("book", "pages", "length"), DropField("book", "price")
    SQLite: ALTER TABLE "book" RENAME COLUMN "pages" TO "length"
    SQLite: ALTER TABLE "book" DROP COLUMN "price"
    PostgreSQL: ALTER TABLE "book" RENAME COLUMN "pages" TO "length"
    PostgreSQL: ALTER TABLE "book" DROP COLUMN "price"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar, cast

from treefold_migrations._conversions.conversion import Conversion
from treefold_orm.schema import (
    CheckDef,
    ColumnDef,
    ExclusionDef,
    ForeignKeyDef,
    IndexDef,
    SearchDef,
    TableDef,
    UniqueDef,
    quote,
)

Part = ForeignKeyDef | UniqueDef | CheckDef | IndexDef | SearchDef | ExclusionDef
D = TypeVar("D")
P = TypeVar("P", ForeignKeyDef, UniqueDef, CheckDef, IndexDef, SearchDef, ExclusionDef)

# literals match first: in 'say "title"' the quotes belong to the text, and no column is renamed
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_LITERAL = re.compile(
    r"(-?\d+(\.\d+)?([eE][+-]?\d+)?|[xX]?'(?:[^']|'')*'|TRUE|FALSE|NULL)"
    r"(::[a-z ]+(\(\d+(, ?\d+)?\))?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TableChange:
    """One table before and after.

    `sources` maps the columns after to the columns before whose values they keep. `fills` is SQL
    for the values of existing rows, `conversions` tells how stored values change, both by the
    column's name after. A `fresh` table was created in the same migration. `unknown` names what
    its database has and no migration knows, which a rebuild of the table would lose; `findings`
    are all such differences that the history has noted. With `agreed` the migration says that what
    it does not know may be lost.
    """

    before: TableDef | None
    after: TableDef | None
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    fills: Mapping[str, str] = field(default_factory=dict[str, str])
    conversions: Mapping[str, Conversion] = field(default_factory=dict[str, Conversion])
    fresh: bool = False
    unknown: tuple[str, ...] = ()
    findings: frozenset[tuple[str, str, str]] = frozenset()
    agreed: bool = False


def is_sql_literal(sql: str) -> bool:
    """True for SQL that is one literal, the same for each row."""
    return _LITERAL.fullmatch(sql.strip()) is not None


def rename_columns_in_sql(sql: str, names: Mapping[str, str]) -> str:
    """Return SQL with its quoted columns renamed."""
    # all names change in one pass: a swap of a and b by two replacements would end with one name
    quoted = {quote(old): quote(new) for old, new in names.items() if old != new}
    return _TOKEN.sub(lambda found: quoted.get(found[0], found[0]), sql) if quoted else sql


def sql_mentions_column(sql: str, columns: frozenset[str]) -> bool:
    """True if SQL names one of the columns."""
    quoted = {quote(column) for column in columns}
    return any(found[0] in quoted for found in _TOKEN.finditer(sql))


def part_mentions_column(part: Part, columns: frozenset[str]) -> bool:
    """True if a constraint or index is over one of the columns."""
    match part:
        case ForeignKeyDef():
            return part.column in columns
        case CheckDef():
            return sql_mentions_column(part.sql, columns)
        case SearchDef():
            return bool(columns & {part.key, *part.columns})
        case UniqueDef():
            if columns & {*part.columns, *part.include}:
                return True
        case IndexDef():
            if columns & {*part.include}:
                return True
        case ExclusionDef():
            pass
    return any(sql_mentions_column(text, columns) for text in (*part.terms, part.where))


def collect_table_and_column_checks(table: TableDef) -> tuple[CheckDef, ...]:
    """The checks of a table, those of its columns among them."""
    checked = (column for column in table.columns if column.checks)
    own = tuple(CheckDef(c.check_name, join_checks(c.checks)) for c in checked)
    return own + table.checks


def join_checks(checks: Sequence[str]) -> str:
    """Join the conditions of one column, as its definition does."""
    return checks[0] if len(checks) == 1 else " AND ".join(f"({check})" for check in checks)


def apply_renames(
    table: TableDef,
    table_renames: Mapping[str, str],
    column_renames: Mapping[str, Mapping[str, str]],
) -> TableDef:
    """Return a table as it is once tables and columns are renamed (old name to new; columns by
    their table's old name). Constraints and indexes keep their own names.
    """
    own = column_renames.get(table.name, {})

    def rename_in_sql(sql: str) -> str:
        return rename_columns_in_sql(sql, own)

    def rename_column(column: str) -> str:
        return own.get(column, column)

    # what holds SQL or names of columns, by the attributes of all kinds of parts
    one = {
        "column": rename_column,
        "key": rename_column,
        "sql": rename_in_sql,
        "where": rename_in_sql,
    }
    several = {
        "checks": rename_in_sql,
        "columns": rename_column,
        "include": rename_column,
        "terms": rename_in_sql,
    }

    def rename_in_part(part: D) -> D:
        held = {f.name: getattr(part, f.name) for f in fields(cast("Any", part))}
        new: dict[str, Any] = {key: one[key](held[key]) for key in one.keys() & held}
        new |= {key: tuple(map(several[key], held[key])) for key in several.keys() & held}
        return replace(cast("Any", part), **new)

    return replace(
        table,
        name=table_renames.get(table.name, table.name),
        columns=tuple(
            replace(rename_in_part(column), name=rename_column(column.name))
            for column in table.columns
        ),
        primary_key=tuple(map(rename_column, table.primary_key)),
        foreign_keys=tuple(
            rename_in_part(_rename_reference_target(key, table_renames, column_renames))
            for key in table.foreign_keys
        ),
        uniques=tuple(map(rename_in_part, table.uniques)),
        checks=tuple(map(rename_in_part, table.checks)),
        indexes=tuple(map(rename_in_part, table.indexes)),
        searches=tuple(
            replace(rename_in_part(search), table=table_renames.get(search.table, search.table))
            for search in table.searches
        ),
        exclusions=tuple(map(rename_in_part, table.exclusions)),
    )


def _rename_reference_target(
    key: ForeignKeyDef, tables: Mapping[str, str], columns: Mapping[str, Mapping[str, str]]
) -> ForeignKeyDef:
    renamed = columns.get(key.target, {})
    column = renamed.get(key.target_column, key.target_column)
    return replace(key, target=tables.get(key.target, key.target), target_column=column)


@dataclass(frozen=True, slots=True)
class PartChanges(Generic[P]):
    """Changes of the constraints or indexes of one kind; `renamed` pairs old and new."""

    dropped: tuple[P, ...]
    added: tuple[P, ...]
    renamed: tuple[tuple[P, P], ...]

    def __bool__(self) -> bool:
        return bool(self.dropped or self.added or self.renamed)


def compare_parts(
    before: Sequence[P], after: Sequence[P], must_recreate: Callable[[P], bool] = lambda _: False
) -> PartChanges[P]:
    """Compare parts of one kind; those for which `must_recreate` is true are dropped and added
    again.
    """
    new = {part.name: part for part in after}
    # a name is enough to pair parts: names of constraints and indexes are unique in a table
    old = [part for part in before if new.get(part.name) != part or must_recreate(part)]
    kept = {part.name for part in before} - {part.name for part in old}
    coming = [part for part in after if part.name not in kept]
    renamed: list[tuple[P, P]] = []
    for part in list(old):
        # a part that differs in its name alone is renamed: to build an index again reads every row
        same = [other for other in coming if replace(other, name=part.name) == part]
        if same and not must_recreate(part):
            renamed.append((part, same[0]))
            old.remove(part)
            coming.remove(same[0])
    return PartChanges(tuple(old), tuple(coming), tuple(renamed))


def order_renames(pairs: Sequence[tuple[str, str]], temporary_prefix: str) -> list[tuple[str, str]]:
    """Order renames so that no name is taken when it is given; cycles go through names that begin
    with `temporary_prefix`.
    """
    waiting = [(old, new) for old, new in pairs if old != new]
    made: list[tuple[str, str]] = []
    while waiting:
        held = {old for old, _ in waiting}
        ready = [pair for pair in waiting if pair[1] not in held]
        if ready:
            made += ready
            waiting = [pair for pair in waiting if pair not in ready]
        else:
            # a and b that swap names: one steps aside, which frees the name that the other waits
            # for
            old, new = waiting.pop(0)
            step = f"{temporary_prefix}{len(made)}"
            made.append((old, step))
            waiting.append((step, new))
    return made


def index_columns_by_name(table: TableDef) -> dict[str, ColumnDef]:
    """The columns of a table by their name."""
    return {column.name: column for column in table.columns}
