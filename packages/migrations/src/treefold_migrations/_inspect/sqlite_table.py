"""Definitions of SQLite's tables and indexes, read from the SQL that SQLite keeps.

No pragma tells the names of constraints, the conditions of checks or expressions, so the text is
read; `sqlite.py` holds the result against the pragmas.
"""

from __future__ import annotations

from collections.abc import Sequence

from treefold_migrations._inspect.found import Found, Place
from treefold_migrations._inspect.sql_text import Reader, Token, split
from treefold_orm.schema import CheckDef, ColumnDef, ForeignKeyDef, IndexDef, TableDef, UniqueDef

_CONSTRAINTS = (
    *("constraint", "primary", "not", "null", "unique", "check", "default", "collate"),
    *("references", "generated", "as"),
)


class TableReader:
    """Reads one CREATE TABLE."""

    def __init__(self, sql: str) -> None:
        self._reader = Reader(sql)
        self._columns: list[ColumnDef] = []
        self._key: list[str] = []
        self._inline_key = False
        self._keys: list[ForeignKeyDef] = []
        self._uniques: list[UniqueDef] = []
        self._checks: list[CheckDef] = []
        self._notes: dict[Place, tuple[str, ...]] = {}

    def read(self) -> Found:
        """Return the table; `InspectError` for text that is not a CREATE TABLE."""
        reader = self._reader
        reader.need("create")
        _ = reader.take("temp") or reader.take("temporary")
        reader.need("table")
        reader.take("if", "not", "exists")
        name = reader.name()
        if reader.take("."):
            name = reader.name()
        for item in split(reader.group()):
            inner = Reader(reader.text, item)
            if any(inner.at(w) for w in ("constraint", "primary", "unique", "check", "foreign")):
                self._table_constraint(inner)
            else:
                self._column(inner)
        options = " ".join(token.value for token in reader.tokens[reader.place :])
        for option in ("strict", "without rowid"):
            if option in options:
                self._note("table", name, option.upper())
        columns = tuple(self._keyed(column) for column in self._columns)
        table = TableDef(
            name,
            columns,
            tuple(self._key),
            tuple(self._keys),
            tuple(self._uniques),
            tuple(self._checks),
        )
        return Found(table, self._notes)

    def _note(self, kind: str, name: str, text: str) -> None:
        self._notes[kind, name] = (*self._notes.get((kind, name), ()), text)

    def _keyed(self, column: ColumnDef) -> ColumnDef:
        alone = [name.lower() for name in self._key] == [column.name.lower()]
        if alone and column.type.upper() == "INTEGER" and column.null:
            return ColumnDef(column.name, column.type, False, True, (), column.default)
        return column

    def _column(self, reader: Reader) -> None:
        name = reader.name()
        words: list[Token] = []
        while not reader.done and not any(reader.at(word) for word in _CONSTRAINTS):
            words.append(reader.tokens[reader.place])
            reader.place += 1
        kind = " ".join(reader.cut(words).split())
        null, default, constraint = True, "", ""
        while not reader.done:
            if reader.take("constraint"):
                constraint = reader.name()
                continue
            if reader.take("not", "null"):
                null = False
                self._conflict(reader, "column", name)
            elif reader.take("default"):
                default = self._default(reader)
            else:
                self._column_constraint(reader, name, constraint)
            constraint = ""
        self._columns.append(ColumnDef(name, kind, null, False, (), default))

    def _column_constraint(self, reader: Reader, name: str, constraint: str) -> None:
        if reader.take("primary", "key"):
            self._key = [name]
            self._inline_key = True
            if reader.take("desc"):
                self._note("column", name, "PRIMARY KEY DESC")
            reader.take("asc")
            self._conflict(reader, "column", name)
            if reader.take("autoincrement"):
                self._note("column", name, "AUTOINCREMENT")
        elif reader.take("unique"):
            self._uniques.append(UniqueDef(constraint, (name,)))
            self._conflict(reader, "column", name)
        elif reader.take("check"):
            self._checks.append(CheckDef(constraint, reader.cut(reader.group())))
        elif reader.take("collate"):
            self._note("column", name, f"COLLATE {reader.name()}")
        elif reader.at("references"):
            self._reference(reader, [name], constraint)
        elif reader.take("null"):
            self._conflict(reader, "column", name)
        else:
            reader.take("generated", "always")
            reader.need("as")
            self._note("column", name, f"generated as {reader.cut(reader.group())}")
            _ = reader.take("stored") or reader.take("virtual")

    def _default(self, reader: Reader) -> str:
        if reader.at("("):
            return reader.cut(reader.group())
        start = reader.place
        _ = reader.take("+") or reader.take("-")
        reader.place += 1
        return reader.cut(reader.tokens[start : reader.place])

    def _conflict(self, reader: Reader, kind: str, name: str) -> None:
        if reader.take("on", "conflict"):
            self._note(kind, name, f"ON CONFLICT {reader.name().upper()}")

    def _table_constraint(self, reader: Reader) -> None:
        name = reader.name() if reader.take("constraint") else ""
        if reader.take("primary", "key"):
            self._key = _names(reader, reader.group())
        elif reader.take("unique"):
            columns = _names(reader, reader.group())
            self._uniques.append(UniqueDef(name, tuple(columns)))
            self._conflict(reader, "unique", name or ", ".join(columns))
        elif reader.take("check"):
            self._checks.append(CheckDef(name, reader.cut(reader.group())))
        elif reader.take("foreign", "key"):
            self._reference(reader, _names(reader, reader.group()), name)
        else:
            reader.need("constraint")

    def _reference(self, reader: Reader, columns: Sequence[str], name: str) -> None:
        reader.need("references")
        target = reader.name()
        others = _names(reader, reader.group()) if reader.at("(") else []
        on_delete, column = "NO_ACTION", ", ".join(columns)
        while not reader.done:
            if reader.take("on", "delete"):
                on_delete = _action(reader)
            elif reader.take("on", "update"):
                action = _action(reader)
                if action != "NO_ACTION":
                    self._note("foreign key", column, f"ON UPDATE {action.replace('_', ' ')}")
            elif reader.take("match"):
                reader.name()
            elif reader.take("deferrable", "initially", "deferred"):
                self._note("foreign key", column, "DEFERRABLE INITIALLY DEFERRED")
            elif reader.take("not", "deferrable") or reader.take("deferrable"):
                if reader.take("initially"):
                    reader.name()
            else:
                break
        self._keys.append(ForeignKeyDef(name, column, target, ", ".join(others), on_delete))


def _action(reader: Reader) -> str:
    first = reader.name().upper()
    return first if first in {"CASCADE", "RESTRICT"} else f"{first}_{reader.name().upper()}"


def _names(reader: Reader, tokens: Sequence[Token]) -> list[str]:
    return [Reader(reader.text, item).name() for item in split(tokens)]


def read_index(sql: str) -> tuple[str, IndexDef | UniqueDef]:
    """Return the table and the definition of a CREATE INDEX."""
    reader = Reader(sql)
    reader.need("create")
    unique = reader.take("unique")
    reader.need("index")
    reader.take("if", "not", "exists")
    name = reader.name()
    if reader.take("."):
        name = reader.name()
    reader.need("on")
    table = reader.name()
    terms = tuple(reader.cut(item) for item in split(reader.group()))
    where = reader.cut(reader.tokens[reader.place + 1 :]) if reader.at("where") else ""
    if unique:
        return table, UniqueDef(name, (), where, terms)
    return table, IndexDef(name, terms, where)
