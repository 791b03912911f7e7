"""Full text search in the schema, as data and as SQL.

On PostgreSQL a GIN index; on SQLite an FTS5 table without a copy of the text, which triggers keep
up to date with the table it searches.
"""

from __future__ import annotations

from dataclasses import dataclass

from treefold_orm._base.errors import ModelError, UnsupportedFeature
from treefold_orm._base.names import constraint_name
from treefold_orm._base.records import Record, frozen_record
from treefold_orm._compile.search import build_tsvector
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import SQL, join_sql, quote_identifier, quote_name_as_string
from treefold_orm._fields.meta import Meta
from treefold_orm._search.search_index import build_search_index_name, list_indexed_fields
from treefold_orm._terms.search_index import SearchIndex

_EVENTS = ("insert", "delete", "update")
_TABLE = (
    "CREATE VIRTUAL TABLE{} {} USING fts5({}, content={}, content_rowid={}, "
    # 0, as the dictionaries of PostgreSQL: the default of FTS5 finds "cafe" in "café"
    "tokenize='{}unicode61 remove_diacritics 0')"
)
_REBUILD = (  # rows that are older than the triggers are taken in, once
    "INSERT INTO {} ({}) SELECT 'rebuild' WHERE NOT EXISTS "
    "(SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name = {})"
)
_TRIGGER = "CREATE TRIGGER{} {} AFTER {} ON {} BEGIN {} END"


@dataclass(frozen=True, slots=True)
class SearchDef:
    """One full text search: `key` and `columns` are of `table`; `name` is the index's, and on
    SQLite its table's.
    """

    name: str
    table: str
    key: str
    columns: tuple[str, ...]
    config: str
    weights: str = ""


@frozen_record
class CreateSearchIndex(Record):
    """Create a full text search over a table, and take in the rows that are there."""

    search: SearchDef
    if_missing: bool = False


@frozen_record
class DropSearchIndex(Record):
    """Drop a full text search; on SQLite, to be done before its table is dropped."""

    search: SearchDef
    if_present: bool = False


def describe_search_index(meta: Meta, index: SearchIndex, dialect: Dialect) -> SearchDef:
    """Describe a search index in a dialect."""
    columns = tuple(field.column_name for field in list_indexed_fields(index, meta))
    name, key = build_search_index_name(index, meta), meta.pk.column_name
    made = SearchDef(name, meta.table_name, key, columns, index.config, index.weights)
    if dialect.name == "sqlite":
        _require_fts5_compatible(meta, made)
    return made


def _require_fts5_compatible(meta: Meta, search: SearchDef) -> None:
    if meta.pk.column_type("sqlite") != "INTEGER":
        raise UnsupportedFeature(
            f"{meta.name}: a SearchIndex on sqlite needs a key that is an integer: FTS5 finds rows "
            "by number"
        )
    if search.name.lower() == search.table.lower():
        raise ModelError(
            f"{meta.name}: SearchIndex(name={search.name!r}) is a table of its own on sqlite: give "
            "it another name"
        )
    for column in search.columns:
        if column.lower() in {"rank", "rowid", search.name.lower()}:
            raise ModelError(
                f"{meta.name}: FTS5 cannot search a column named {column!r}: give the field "
                "another db_column"
            )


def build_create_search_sql(operation: CreateSearchIndex, dialect: Dialect) -> list[str]:
    """Write the creation as SQL statements."""
    search = operation.search
    missing = SQL(" IF NOT EXISTS" if operation.if_missing else "")
    if dialect.name == "sqlite":
        return [made.text for made in _build_create_fts5_sql(search, missing)]
    text = build_tsvector(
        [quote_identifier(c) for c in search.columns], search.config, search.weights
    )
    name, table = quote_identifier(search.name), quote_identifier(search.table)
    return [SQL("CREATE INDEX{} {} ON {} USING gin (({}))", missing, name, table, text).text]


def build_drop_search_sql(operation: DropSearchIndex, dialect: Dialect) -> list[str]:
    """Write the removal as SQL statements."""
    search = operation.search
    present = SQL(" IF EXISTS" if operation.if_present else "")
    name = quote_identifier(search.name)
    if dialect.name == "postgres":
        return [SQL("DROP INDEX{} {}", present, name).text]
    triggers = [quote_identifier(_trigger_name(search, event)) for event in _EVENTS]
    dropped = [SQL("DROP TRIGGER IF EXISTS {}", trigger) for trigger in triggers]
    return [made.text for made in (*dropped, SQL("DROP TABLE{} {}", present, name))]


def _trigger_name(search: SearchDef, event: str) -> str:
    return constraint_name(event, search.name)


def _build_create_fts5_sql(search: SearchDef, missing: SQL) -> list[SQL]:
    names = (search.name, search.table, search.key)
    name, table, key = map(quote_identifier, names)
    named = [quote_identifier(column) for column in search.columns]
    columns = join_sql(", ", named)
    new = join_sql(", ", [SQL("new.{}", column) for column in (key, *named)])
    old = join_sql(", ", [SQL("old.{}", column) for column in (key, *named)])
    add = SQL("INSERT INTO {} (rowid, {}) VALUES ({});", name, columns, new)
    # FTS5 keeps no copy of the text here: it needs the old one to take its words out
    remove = SQL("INSERT INTO {} ({}, rowid, {}) VALUES ('delete', {});", name, name, columns, old)
    stems = SQL("porter " if search.config == "english" else "")
    triggers = (
        ("insert", SQL("INSERT"), add),
        ("delete", SQL("DELETE"), remove),
        ("update", SQL("UPDATE OF {}, {}", key, columns), SQL("{} {}", remove, add)),
    )
    return [
        SQL(_TABLE, missing, name, columns, table, key, stems),
        SQL(_REBUILD, name, name, quote_name_as_string(_trigger_name(search, "insert"))),
        *(
            SQL(
                _TRIGGER, missing, quote_identifier(_trigger_name(search, event)), when, table, body
            )
            for event, when, body in triggers
        ),
    ]
