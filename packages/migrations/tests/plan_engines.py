"""Real databases for tests of plans: run steps as a runner would, read catalogs, keep rows.

A `Bench` holds one connection of the ORM. Each test has tables of its own: on PostgreSQL in a
schema, on SQLite in a database of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from treefold_migrations._plan.changes import TableChange
from treefold_migrations._plan.operations import plan_changes
from treefold_migrations._plan.perform import perform_step
from treefold_migrations._plan.step import Step
from treefold_orm import configure
from treefold_orm.schema import (
    Dialect,
    Meta,
    Operation,
    Postgres,
    SQLite,
    Statement,
    TableShape,
    database_for,
    meta_of,
    plan_tables,
    quote,
    statements,
)

_numbers = itertools.count()
Row = tuple[Any, ...]


def metas_of(shapes: Iterable[TableShape]) -> list[Meta]:
    """Descriptions of tables, as `create_all` has them of models."""
    known = {shape.name: shape for shape in shapes}
    return [meta_of(name, known) for name in known]


class Bench:
    """One connection, and what tests do with it."""

    engine: str
    dialect: Dialect

    def __init__(self, alias: str) -> None:
        self.session: Any = database_for(alias).checkout(write=True)

    def ask(self, sql: str, *args: Any) -> list[Row]:
        """Rows of a query."""

        def asked() -> Operation[list[Row]]:
            rows = yield Statement("rows", sql, args)
            return [tuple(row) for row in rows]

        return self.session.run(asked())

    def do(self, sql: str) -> None:
        """Run a statement."""

        def done() -> Operation[None]:
            yield Statement("script", sql)

        self.session.run(done())

    def perform(self, step: Step) -> None:
        """Run one step."""
        self.session.run(perform_step(step))

    def apply(self, steps: Sequence[Step]) -> None:
        """Run steps as a runner would: those outside of a transaction each by itself."""
        for together, group in itertools.groupby(steps, lambda step: step.transactional):
            if together:
                self.transaction(list(group))
            else:
                for step in group:
                    self.perform(step)

    def transaction(self, steps: Sequence[Step]) -> None:
        """Run steps in one transaction."""
        self.do("BEGIN")
        try:
            for step in steps:
                self.perform(step)
        except BaseException:
            self.do("ROLLBACK")
            raise
        self.do("COMMIT")

    def create(self, shapes: Iterable[TableShape]) -> None:
        """Create tables as `create_all` does."""
        for operation in plan_tables(metas_of(shapes), self.dialect):
            for sql in statements(operation, self.dialect):
                self.do(sql)

    def change(self, changes: Sequence[TableChange], **options: Any) -> list[Step]:
        """Plan changes, apply them, and return the steps."""
        steps = plan_changes(changes, dialect=self.dialect, **options)
        self.apply(steps)
        return steps

    def catalog(self) -> dict[str, Any]:
        """Everything the catalogs know of the current place."""
        raise NotImplementedError

    def expected(self, shapes: Iterable[TableShape]) -> dict[str, Any]:
        """The catalog of tables that were created as they are."""
        with self.place():
            self.create(shapes)
            return self.catalog()

    @contextmanager
    def place(self) -> Generator[None]:
        """An empty place for tables, left again at the end."""
        raise NotImplementedError
        yield

    def rows(self, table: str, columns: Sequence[str], order: str) -> list[Row]:
        """The rows of a table."""
        listed = ", ".join(map(quote, columns))
        return self.ask(f"SELECT {listed} FROM {quote(table)} ORDER BY {quote(order)}")

    def insert(self, table: str, row: Mapping[str, str]) -> None:
        """Insert one row of SQL literals."""
        if not row:
            self.do(f"INSERT INTO {quote(table)} DEFAULT VALUES")
            return
        names = ", ".join(map(quote, row))
        self.do(f"INSERT INTO {quote(table)} ({names}) VALUES ({', '.join(row.values())})")


class SQLiteBench(Bench):
    """Databases in memory, one for each place."""

    engine = "sqlite"
    dialect = SQLite()

    def __init__(self) -> None:
        self._enter()

    def _enter(self) -> None:
        alias = f"bench{next(_numbers)}"
        configure("sqlite", ":memory:", alias=alias)
        super().__init__(alias)

    @contextmanager
    def place(self) -> Generator[None]:
        outer = self.session
        self._enter()
        try:
            yield
        finally:
            self.session.close()
            self.session = outer

    def transaction(self, steps: Sequence[Step]) -> None:
        off = any(step.foreign_keys_off for step in steps)
        if off:
            self.do("PRAGMA foreign_keys = OFF")
        try:
            super().transaction(steps)
        finally:
            if off:
                self.do("PRAGMA foreign_keys = ON")
                self.do("PRAGMA legacy_alter_table = OFF")

    def catalog(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for kind, name, table, sql in self.ask(
            "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\'"
        ):
            if kind == "table" and sql.startswith("CREATE TABLE '"):
                continue  # FTS5 keeps its data in tables of its own
            if kind == "table" and sql.startswith("CREATE TABLE"):
                found[f"table {name}"] = self._table(name, sql)
            else:
                found[f"{kind} {name}"] = (table, " ".join(sql.split()))
        return found

    def _table(self, name: str, sql: str) -> dict[str, Any]:
        columns = self.ask(
            'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?)', name
        )
        keys = self.ask(
            'SELECT "from", "table", "to", on_delete, on_update FROM pragma_foreign_key_list(?)',
            name,
        )
        body = sql[sql.index("(") + 1 : sql.rindex(")")]
        constraints = sorted(
            constraint for item in top_level(body) for constraint in _constraints(item)
        )
        return {
            "columns": sorted(columns, key=repr),
            "keys": sorted(keys, key=repr),
            "constraints": constraints,
            "options": sql[sql.rindex(")") + 1 :].strip(),
        }


_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^'\"]")


def top_level(text: str) -> list[str]:
    """The parts of SQL between its outermost commas."""
    parts, depth = [""], 0
    for found in _QUOTED.finditer(text):
        piece = found[0]
        depth += (piece == "(") - (piece == ")")
        if piece == "," and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return [" ".join(part.split()) for part in parts]


def _constraints(item: str) -> list[str]:
    if item.startswith("CONSTRAINT"):
        return [item]
    if item.startswith("PRIMARY KEY"):
        return [item]
    found = re.match(r'"(?:[^"]|"")*"', item)
    assert found is not None, item
    column, made = found[0], list[str]()
    for piece in item.split("CONSTRAINT ")[1:]:
        name, _, rest = piece.partition(" REFERENCES ")
        if rest:
            made.append(f"CONSTRAINT {name} FOREIGN KEY ({column}) REFERENCES {rest.strip()}")
        else:
            checked = re.match(r'"(?:[^"]|"")*" CHECK \(', piece)
            assert checked is not None, item
            made.append(f"CONSTRAINT {checked[0]}{_closed(piece[checked.end() :])}")
    return made


def _closed(text: str) -> str:
    depth, taken = 1, ""
    for found in _QUOTED.finditer(text):
        taken += found[0]
        depth += (found[0] == "(") - (found[0] == ")")
        if not depth:
            return taken
    raise AssertionError(text)


class PostgresBench(Bench):
    """Schemas of one database, one for each place."""

    engine = "postgres"
    dialect = Postgres()

    def __init__(self, dsn: str) -> None:
        alias = f"bench{next(_numbers)}"
        configure("postgres", dsn, alias=alias)
        super().__init__(alias)
        self.schema = ""
        self._outer: list[str] = []

    @contextmanager
    def place(self) -> Generator[None]:
        outer, self.schema = self.schema, f"place{next(_numbers)}"
        self.do(f"CREATE SCHEMA {self.schema}")
        self.do(f"SET search_path = {self.schema}, public")
        try:
            yield
        finally:
            self.do("SET client_min_messages = warning")
            self.do(f"DROP SCHEMA {self.schema} CASCADE")
            self.schema = outer
            self.do(f"SET search_path = {outer or 'public'}, public")

    def catalog(self) -> dict[str, Any]:
        here = f"'{self.schema}'::regnamespace"
        found: dict[str, Any] = {}
        for table, *column in self.ask(
            "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, "
            "a.attidentity::text, pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute a JOIN "
            "pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid "
            f"AND d.adnum = a.attnum WHERE c.relnamespace = {here} AND c.relkind = 'r' "
            "AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attname"
        ):
            found.setdefault(f"table {table}", []).append(tuple(column))
        for table, name, text, valid in self.ask(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated "
            f"FROM pg_constraint WHERE connamespace = {here} AND contype <> 't'"
        ):
            found[f"constraint {table} {name}"] = (text, valid)
        for table, name, text, valid in self.ask(
            "SELECT i.indrelid::regclass::text, c.relname, pg_get_indexdef(i.indexrelid), "
            "i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE "
            f"c.relnamespace = {here}"
        ):
            found[f"index {name}"] = (table, text.replace(f"{self.schema}.", ""), valid)
        for name, kind, start, step, least, most, cycle, owner in self.ask(
            "SELECT c.relname, format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, "
            "s.seqmin, s.seqmax, s.seqcycle, (SELECT d.refobjid::regclass::text || '.' || "
            "a.attname FROM pg_depend d JOIN pg_attribute a ON a.attrelid = d.refobjid AND "
            "a.attnum = d.refobjsubid WHERE d.objid = c.oid AND d.deptype IN ('a', 'i')) FROM "
            "pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid WHERE "
            f"c.relnamespace = {here}"
        ):
            found[f"sequence {name}"] = (kind, start, step, least, most, cycle, owner)
        return found
