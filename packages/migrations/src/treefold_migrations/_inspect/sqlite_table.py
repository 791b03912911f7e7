"""Definitions of SQLite's tables and indexes, read from the SQL that SQLite keeps.

No pragma tells the names of constraints, the conditions of checks or expressions, so the text is
read; `sqlite.py` holds the result against the pragmas.

Example, a table and what is read of it:

    CREATE TABLE book (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL COLLATE NOCASE,
        CONSTRAINT short CHECK (length(title) < 20)
    )

    ColumnDef("id", "INTEGER", identity=True), ColumnDef("title", "TEXT")
    CheckDef("short", "length(title) < 20")

No record has a place for AUTOINCREMENT and the collation: they become notes,
`{("column", "id"): ("AUTOINCREMENT",), ("column", "title"): ("COLLATE NOCASE",)}`.
"""

from __future__ import annotations

from collections.abc import Sequence

from treefold_migrations._inspect.found import InspectedTable, Place
from treefold_migrations._inspect.sql_text import Token, TokenReader, split_at_commas
from treefold_orm.schema import CheckDef, ColumnDef, ForeignKeyDef, IndexDef, TableDef, UniqueDef

# each ends the type of a column, which may have several words
_CONSTRAINT_WORDS = (
    *("constraint", "primary", "not", "null", "unique", "check", "default", "collate"),
    *("references", "generated", "as"),
)


class CreateTableParser:
    """Reads one CREATE TABLE."""

    def __init__(self, sql: str) -> None:
        self._reader = TokenReader(sql)
        self._columns: list[ColumnDef] = []
        self._primary_key: list[str] = []
        self._foreign_keys: list[ForeignKeyDef] = []
        self._uniques: list[UniqueDef] = []
        self._checks: list[CheckDef] = []
        self._notes: dict[Place, tuple[str, ...]] = {}

    def parse_table(self) -> InspectedTable:
        """Return the table; `InspectError` for text that is not a CREATE TABLE."""
        reader = self._reader
        reader.expect_tokens("create")
        _ = reader.accept_tokens("temp") or reader.accept_tokens("temporary")
        reader.expect_tokens("table")
        reader.accept_tokens("if", "not", "exists")
        name = reader.read_name()
        if reader.accept_tokens("."):
            name = reader.read_name()
        for item in split_at_commas(reader.read_parenthesized_group()):
            inner = TokenReader(reader.text, item)
            if any(
                inner.is_next(w) for w in ("constraint", "primary", "unique", "check", "foreign")
            ):
                self._read_table_constraint(inner)
            else:
                self._read_column(inner)
        options = " ".join(token.value for token in reader.tokens[reader.place :])
        for option in ("strict", "without rowid"):
            if option in options:
                self._add_note("table", name, option.upper())
        table = TableDef(
            name,
            tuple(self._mark_rowid_alias(column) for column in self._columns),
            primary_key=tuple(self._primary_key),
            foreign_keys=tuple(self._foreign_keys),
            uniques=tuple(self._uniques),
            checks=tuple(self._checks),
        )
        return InspectedTable(table, self._notes)

    def _add_note(self, kind: str, name: str, text: str) -> None:
        self._notes[kind, name] = (*self._notes.get((kind, name), ()), text)

    def _mark_rowid_alias(self, column: ColumnDef) -> ColumnDef:
        alone = [name.lower() for name in self._primary_key] == [column.name.lower()]
        # INTEGER and nothing else makes the key the rowid: INT PRIMARY KEY is an ordinary column
        if alone and column.type.upper() == "INTEGER" and column.null:
            return ColumnDef(column.name, column.type, identity=True, default=column.default)
        return column

    def _read_column(self, reader: TokenReader) -> None:
        name = reader.read_name()
        words: list[Token] = []
        while not reader.is_at_end and not any(reader.is_next(word) for word in _CONSTRAINT_WORDS):
            words.append(reader.tokens[reader.place])
            reader.place += 1
        kind = " ".join(reader.slice_text(words).split())
        null, default, constraint = True, "", ""
        while not reader.is_at_end:
            # the name belongs to the constraint that follows, of which a column may have several
            if reader.accept_tokens("constraint"):
                constraint = reader.read_name()
                continue
            if reader.accept_tokens("not", "null"):
                null = False
                self._read_conflict_clause(reader, "column", name)
            elif reader.accept_tokens("default"):
                default = self._read_default(reader)
            else:
                self._read_column_constraint(reader, name, constraint)
            constraint = ""
        self._columns.append(ColumnDef(name, kind, null=null, default=default))

    def _read_column_constraint(self, reader: TokenReader, name: str, constraint: str) -> None:
        if reader.accept_tokens("primary", "key"):
            self._primary_key = [name]
            if reader.accept_tokens("desc"):
                self._add_note("column", name, "PRIMARY KEY DESC")
            reader.accept_tokens("asc")
            self._read_conflict_clause(reader, "column", name)
            if reader.accept_tokens("autoincrement"):
                self._add_note("column", name, "AUTOINCREMENT")
        elif reader.accept_tokens("unique"):
            self._uniques.append(UniqueDef(constraint, (name,)))
            self._read_conflict_clause(reader, "column", name)
        elif reader.accept_tokens("check"):
            self._checks.append(
                CheckDef(constraint, reader.slice_text(reader.read_parenthesized_group()))
            )
        elif reader.accept_tokens("collate"):
            self._add_note("column", name, f"COLLATE {reader.read_name()}")
        elif reader.is_next("references"):
            self._read_references_clause(reader, [name], constraint)
        elif reader.accept_tokens("null"):
            self._read_conflict_clause(reader, "column", name)
        else:
            reader.accept_tokens("generated", "always")
            reader.expect_tokens("as")
            text = reader.slice_text(reader.read_parenthesized_group())
            self._add_note("column", name, f"generated as {text}")
            _ = reader.accept_tokens("stored") or reader.accept_tokens("virtual")

    def _read_default(self, reader: TokenReader) -> str:
        if reader.is_next("("):
            return reader.slice_text(reader.read_parenthesized_group())
        start = reader.place
        # SQLite takes a signed number as it is, and any expression within parentheses
        _ = reader.accept_tokens("+") or reader.accept_tokens("-")
        reader.place += 1
        return reader.slice_text(reader.tokens[start : reader.place])

    def _read_conflict_clause(self, reader: TokenReader, kind: str, name: str) -> None:
        if reader.accept_tokens("on", "conflict"):
            self._add_note(kind, name, f"ON CONFLICT {reader.read_name().upper()}")

    def _read_table_constraint(self, reader: TokenReader) -> None:
        name = reader.read_name() if reader.accept_tokens("constraint") else ""
        if reader.accept_tokens("primary", "key"):
            group = reader.read_parenthesized_group()
            self._primary_key = _read_names(reader, group)
            if (group[-1].kind, group[-1].value) == ("word", "autoincrement"):
                self._add_note("column", self._primary_key[0], "AUTOINCREMENT")
        elif reader.accept_tokens("unique"):
            columns = _read_names(reader, reader.read_parenthesized_group())
            self._uniques.append(UniqueDef(name, tuple(columns)))
            self._read_conflict_clause(reader, "unique", name or ", ".join(columns))
        elif reader.accept_tokens("check"):
            self._checks.append(
                CheckDef(name, reader.slice_text(reader.read_parenthesized_group()))
            )
        elif reader.accept_tokens("foreign", "key"):
            self._read_references_clause(
                reader, _read_names(reader, reader.read_parenthesized_group()), name
            )
        else:
            reader.expect_tokens("constraint")

    def _read_references_clause(
        self, reader: TokenReader, columns: Sequence[str], name: str
    ) -> None:
        reader.expect_tokens("references")
        target = reader.read_name()
        others = (
            _read_names(reader, reader.read_parenthesized_group()) if reader.is_next("(") else []
        )
        on_delete, column = "NO_ACTION", ", ".join(columns)
        while not reader.is_at_end:
            if reader.accept_tokens("on", "delete"):
                on_delete = _read_foreign_key_action(reader)
            elif reader.accept_tokens("on", "update"):
                action = _read_foreign_key_action(reader)
                if action != "NO_ACTION":
                    self._add_note("foreign key", column, f"ON UPDATE {action.replace('_', ' ')}")
            elif reader.accept_tokens("match"):
                reader.read_name()
            elif reader.accept_tokens("deferrable", "initially", "deferred"):
                self._add_note("foreign key", column, "DEFERRABLE INITIALLY DEFERRED")
            elif reader.accept_tokens("not", "deferrable") or reader.accept_tokens("deferrable"):
                if reader.accept_tokens("initially"):
                    reader.read_name()
            else:
                break
        self._foreign_keys.append(ForeignKeyDef(name, column, target, ", ".join(others), on_delete))


def _read_foreign_key_action(reader: TokenReader) -> str:
    first = reader.read_name().upper()
    # the others have two words: SET NULL, SET DEFAULT, NO ACTION
    return first if first in {"CASCADE", "RESTRICT"} else f"{first}_{reader.read_name().upper()}"


def _read_names(reader: TokenReader, tokens: Sequence[Token]) -> list[str]:
    return [TokenReader(reader.text, item).read_name() for item in split_at_commas(tokens)]


def parse_create_index(sql: str) -> tuple[str, IndexDef | UniqueDef]:
    """Return the table and the definition of a CREATE INDEX."""
    reader = TokenReader(sql)
    reader.expect_tokens("create")
    unique = reader.accept_tokens("unique")
    reader.expect_tokens("index")
    reader.accept_tokens("if", "not", "exists")
    name = reader.read_name()
    if reader.accept_tokens("."):
        name = reader.read_name()
    reader.expect_tokens("on")
    table = reader.read_name()
    terms = tuple(
        reader.slice_text(item) for item in split_at_commas(reader.read_parenthesized_group())
    )
    where = reader.slice_text(reader.tokens[reader.place + 1 :]) if reader.is_next("where") else ""
    if unique:
        return table, UniqueDef(name, (), where, terms)
    return table, IndexDef(name, terms, where)
