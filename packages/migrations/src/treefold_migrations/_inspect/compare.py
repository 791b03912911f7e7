"""Two descriptions of the same tables, one by the history and one by the database, compared.

Both were printed by the same database or read from text by the same code, so that equal parts are
equal text. Nothing here asks a database.

Example, a table whose column was made longer by hand:

    Difference(
        table="book",
        kind="type",
        name="title",
        problem="book.title has type varchar(80), and the migrations made varchar(40)",
        advice="change it back to varchar(40)",
        found="varchar(80)",
    )
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from treefold_migrations._base.table_sources import load_table_sources
from treefold_migrations._inspect.found import INVALID, NOT_VALID, SERIAL, Catalog, InspectedTable
from treefold_orm import schema
from treefold_orm.schema import quote

Text = Callable[[str], str]
MISSING = "missing"
"""The value of `found` where the database lacks a part."""
_OWN_TABLES = ("treefold_migrations", "treefold_migrations_journal", "treefold_sessions")


def list_own_tables() -> frozenset[str]:
    """Return the tables of the framework and of other packages: no model stands for them."""
    sources = load_table_sources()
    return frozenset(_OWN_TABLES).union(*(source.tables for source in sources))


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between a database and its migrations; `advice` is the next step, and
    `found` is what the database has, in a form that a migration file can hold.
    """

    table: str
    kind: str
    name: str
    problem: str
    advice: str
    found: str = MISSING

    @property
    def key(self) -> tuple[str, str, str]:
        """The key among the differences of its table."""
        return self.kind, self.name, self.found

    def __str__(self) -> str:
        return f"{self.problem}; {self.advice}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How text is compared: `text` returns a form that means the same wherever it is equal."""

    text: Text
    engine: str

    def compare_tables(
        self, wanted: Mapping[str, InspectedTable], live: Catalog, *, ignored: frozenset[str]
    ) -> Iterator[Difference]:
        """Yield every difference between the wanted tables and a catalog."""
        other = {o.name: o for o in live.others if "table" in o.kind or "view" in o.kind}
        # other kinds may have the name of a table: a trigger, or row security of the table itself
        others = {**other, **{o.name: o for o in live.others if o.kind == "partition"}}
        for name, table in wanted.items():
            if name in live.tables:
                yield from self.compare_table(table, live.tables[name])
            elif name in others:
                problem = f"{name!r} is a {others[name].kind}, and the migrations made a table"
                advice = "say Meta.managed = False in its model, or restore the table"
                yield Difference(name, "table", name, problem, advice, others[name].kind)
            else:
                problem = f"Table {name!r} is missing from the database"
                advice = "restore it, or drop it from the history with a migration"
                yield Difference(name, "table", name, problem, advice)
        expected = ignored | list_own_tables()
        for name in live.tables:
            if name not in wanted and name not in expected:
                problem = f"Table {name!r} is in the database, and no migration made it"
                advice = "drop it, or add a model with Meta.managed = False"
                yield Difference(name, "table", name, problem, advice, "table")

    def compare_table(self, wanted: InspectedTable, live: InspectedTable) -> Iterator[Difference]:
        """Yield every difference between two descriptions of a table."""
        one, other = wanted.table, live.table
        yield from self._compare_extra_properties(wanted, live, "table", one.name, one.name)
        yield from self._compare_columns(wanted, live)
        if tuple(map(self._normalize_name, one.primary_key)) != tuple(
            map(self._normalize_name, other.primary_key)
        ):
            yield Difference(
                one.name,
                "primary key",
                one.name,
                f"{one.name} has the primary key ({', '.join(other.primary_key) or 'none'}), and "
                f"the migrations made ({', '.join(one.primary_key)})",
                "write a migration with RunSQL that puts it right",
                ", ".join(other.primary_key) or "none",
            )
        yield from self._compare_foreign_keys(wanted, live)
        for kind in ("unique", "check", "index", "exclusion", "search index"):
            yield from self._compare_constraints_or_indexes(wanted, live, kind)

    def _normalize_name(self, name: str) -> str:
        # names of SQLite do not differ by case; on PostgreSQL "Title" and "title" are two columns
        return name.lower() if self.engine == "sqlite" else name

    def _compare_columns(
        self, wanted: InspectedTable, live: InspectedTable
    ) -> Iterator[Difference]:
        table = wanted.table.name
        there = {self._normalize_name(c.name): c for c in live.table.columns}
        for column in wanted.table.columns:
            where = f"{table}.{column.name}"
            found = there.pop(self._normalize_name(column.name), None)
            if found is None:
                problem = f"Column {where} is missing from the database"
                clause = f"ADD COLUMN {quote(column.name)} {column.type}"
                advice = f"add it: ALTER TABLE {quote(table)} {clause}"
                yield Difference(table, "column", column.name, problem, advice)
                continue
            yield from self._compare_column(table, column, found)
            yield from self._compare_extra_properties(
                wanted, live, "column", column.name, where, live_name=found.name
            )
        for found in there.values():
            where, shown = f"{table}.{found.name}", found.type or "no type"
            problem = f"Column {where} ({shown}) is in the database, and no migration made it"
            advice = "drop it, or add the field and record its migration with `migrate --fake`"
            yield Difference(table, "column", found.name, problem, advice, shown)

    def _compare_column(
        self, table: str, wanted: schema.ColumnDef, live: schema.ColumnDef
    ) -> Iterator[Difference]:
        where = f"{table}.{wanted.name}"

        def make_difference(what: str, found: str, made: str, advice: str) -> Difference:
            problem = f"{where} has {what} {found}, and the migrations made {made}"
            return Difference(table, what, wanted.name, problem, advice, found)

        if wanted.type.upper() != live.type.upper():
            advice = f"change it back to {wanted.type}"
            yield make_difference("type", live.type or "(none)", wanted.type, advice)
        if wanted.null != live.null:
            verb = "DROP" if wanted.null else "SET"
            has, made = ("NULL", "NOT NULL") if live.null else ("NOT NULL", "NULL")
            advice = f"ALTER TABLE {quote(table)} ALTER COLUMN {quote(wanted.name)} {verb} NOT NULL"
            if self.engine == "sqlite":
                advice = "rebuild the table with a migration"
            yield make_difference("nullability", has, made, advice)
        if wanted.identity != live.identity:
            has, made = ("no", "a") if wanted.identity else ("a", "no")
            problem = f"{where} has {has} generated key, and the migrations made {made} such key"
            advice = "write a migration with RunSQL that puts it right"
            found = "not generated" if wanted.identity else "generated"
            yield Difference(table, "identity", wanted.name, problem, advice, found)
        if self.text(wanted.default) != self.text(live.default):
            advice = f"set it back to {wanted.default}" if wanted.default else "drop the default"
            has, made = live.default or "(none)", wanted.default or "(none)"
            yield make_difference("default", has, made, advice)

    def _compare_extra_properties(
        self,
        wanted: InspectedTable,
        live: InspectedTable,
        kind: str,
        name: str,
        label: str,
        *,
        live_name: str = "",
        constraint: str = "",
    ) -> Iterator[Difference]:
        table = wanted.table.name
        # a serial column, as other tools make it, numbers its rows as an identity does
        mine = set(wanted.notes.get((kind, name), ())) - {SERIAL}
        theirs = set(live.notes.get((kind, live_name or name), ())) - {SERIAL}
        for note in sorted(theirs - mine):
            problem = f"{label} is {note}, which no migration made"
            if note == NOT_VALID:
                problem = f"The {kind} {label} is NOT VALID: rows may break it"
            repair = _advise_repair(table, constraint or name, note)
            yield Difference(table, kind, name, problem, repair, note)
        for note in sorted(mine - theirs):
            problem = f"{label} is not {note}, as the migrations made it"
            advice = "rebuild the table with a migration"
            yield Difference(table, kind, name, problem, advice, f"not {note}")

    def _compare_foreign_keys(
        self, wanted: InspectedTable, live: InspectedTable
    ) -> Iterator[Difference]:
        table = wanted.table.name
        there: dict[str, list[schema.ForeignKeyDef]] = {}
        for key in live.table.foreign_keys:
            there.setdefault(self._normalize_name(key.column), []).append(key)
        for key in wanted.table.foreign_keys:
            waiting = there.get(self._normalize_name(key.column), [])
            where = f"{table}.{key.column}"
            same = [k for k in waiting if self._is_same_reference(key, k)]
            if not waiting:
                target = f"{key.target}.{key.target_column}"
                problem = f"The foreign key from {where} to {target} is missing from the database"
                advice = f"add it: ALTER TABLE {quote(table)} ADD CONSTRAINT {quote(key.name)} ..."
                yield Difference(table, "foreign key", key.column, problem, advice)
                continue
            # of several keys over one column the equal one first, so that the others are the extra
            # ones
            found = (same or waiting)[0]
            waiting.remove(found)
            yield from self._compare_foreign_key(table, key, found)
            yield from self._compare_extra_properties(
                wanted, live, "foreign key", key.column, where, constraint=found.name
            )
        for found in (key for keys in there.values() for key in keys):
            problem = (
                f"The foreign key from {table}.{found.column} to {found.target}."
                f"{found.target_column} is in the database, and no migration made it"
            )
            advice = "drop it, or make the field a ForeignKey"
            shown = _describe_target(found)
            yield Difference(table, "foreign key", found.column, problem, advice, shown)

    def _compare_foreign_key(
        self, table: str, key: schema.ForeignKeyDef, found: schema.ForeignKeyDef
    ) -> Iterator[Difference]:
        """Yield at most one difference: where the target differs, the name does not matter."""
        where, shown = f"{table}.{key.column}", _describe_target(found)
        advice = "drop that foreign key and add the right one"
        if self._normalize_target(key) != self._normalize_target(found):
            problem = (
                f"{where} points to {found.target}.{found.target_column}, and the migrations "
                f"made it point to {key.target}.{key.target_column}"
            )
            yield Difference(table, "foreign key", key.column, problem, advice, shown)
        elif not self._is_same_reference(key, found):
            problem = (
                f"The foreign key from {where} has ON DELETE "
                f"{found.on_delete.replace('_', ' ')}, and the migrations made "
                f"{key.on_delete.replace('_', ' ')}"
            )
            yield Difference(table, "foreign key", key.column, problem, advice, shown)
        # no statement of SQLite names a reference, and later ones of PostgreSQL do
        elif self.engine == "postgres" and found.name != key.name:
            problem = f"The foreign key from {where} is called {found.name!r}, not {key.name!r}"
            names = f"{quote(found.name)} TO {quote(key.name)}"
            advice = f"ALTER TABLE {quote(table)} RENAME CONSTRAINT {names}"
            yield Difference(table, "name", key.column, problem, advice, found.name)

    def _normalize_target(self, key: schema.ForeignKeyDef) -> tuple[str, str]:
        return self._normalize_name(key.target), self._normalize_name(key.target_column)

    def _is_same_reference(self, one: schema.ForeignKeyDef, other: schema.ForeignKeyDef) -> bool:
        # NO ACTION refuses the same as RESTRICT, at the end of the statement
        actions = [k.on_delete.replace("NO_ACTION", "RESTRICT") for k in (one, other)]
        same_target = self._normalize_target(one) == self._normalize_target(other)
        return actions[0] == actions[1] and same_target

    def _compare_constraints_or_indexes(
        self, wanted: InspectedTable, live: InspectedTable, kind: str
    ) -> Iterator[Difference]:
        table = wanted.table.name
        live_parts = list_parts_of_kind(live.table, kind)
        there = {self._build_part_match_key(part): part for part in live_parts}
        missing: list[Any] = []
        for part in list_parts_of_kind(wanted.table, kind):
            found = there.pop(self._build_part_match_key(part), None)
            if found is None:
                missing.append(part)
                continue
            if self.normalize_part(part) != self.normalize_part(found):
                problem = (
                    f"The {kind} {part.name!r} of {table} is {describe_part(found)}, and the "
                    f"migrations made {describe_part(part)}"
                )
                advice = "drop it and create it again"
                yield Difference(table, kind, part.name, problem, advice, describe_part(found))
            label = "index" if isinstance(part, schema.UniqueDef) and part.is_index else kind
            yield from self._compare_extra_properties(wanted, live, label, part.name, part.name)
        for part in missing:
            same = self.normalize_part(part)
            twin = next((p for p in there.values() if self.normalize_part(p) == same), None)
            if twin is None:
                problem = f"The {kind} {part.name!r} of {table} is missing: {describe_part(part)}"
                yield Difference(table, kind, part.name, problem, "create it again")
                continue
            del there[self._build_part_match_key(twin)]
            if twin.name or self.engine == "postgres":
                problem = f"The {kind} {part.name!r} of {table} is called {twin.name!r}"
                advice = "give it back its name"
                yield Difference(table, "name", part.name, problem, advice, twin.name)
        for part in there.values():
            yield self._build_unexpected_part_difference(live, kind, part)

    def _build_unexpected_part_difference(
        self, live: InspectedTable, kind: str, part: Any
    ) -> Difference:
        table, shown = live.table.name, describe_part(part)
        problem = (
            f"The {kind} {part.name!r} of {table} is in the database, and no migration made it:"
            f" {shown}"
            if part.name
            else f"{table} has a {kind} without a name that no migration made: {shown}"
        )
        advice = "drop it, or add it to the model's Meta and record that with `migrate --fake`"
        if INVALID in live.notes.get(("index", part.name), ()):
            problem = (
                f"The {kind} {part.name!r} of {table} is invalid: CREATE INDEX CONCURRENTLY began "
                f"it and failed: {describe_part(part)}"
            )
            advice = (
                f"DROP INDEX CONCURRENTLY {quote(part.name)}, or repair the rows that it refuses "
                "and run `migrate`, if a migration creates it"
            )
        return Difference(table, kind, part.name, problem, advice, describe_part(part))

    def _build_part_match_key(self, part: Any) -> str:
        # constraints of SQLite may have no name: what they say tells them apart
        return self._normalize_name(part.name) or repr(self.normalize_part(part))

    def normalize_part(self, part: Any) -> Any:
        """Return a part without its name, its SQL in the form that is compared."""
        if isinstance(part, schema.IndexDef | schema.UniqueDef):
            changed: dict[str, Any] = {"terms": tuple(self.text(t) for t in part.terms)}
            changed["where"] = self.text(part.where)
            if isinstance(part, schema.UniqueDef):
                changed["columns"] = tuple(map(self._normalize_name, part.columns))
            return replace(part, name="", **changed)
        if hasattr(part, "sql"):
            return self.text(part.sql)
        if hasattr(part, "config"):  # SQLite keeps no weights, and of configurations the stemming
            stems = part.config == "english"
            return stems, part.key.lower(), tuple(c.lower() for c in part.columns)
        if isinstance(part, schema.ExclusionDef):
            # `scalars` tells which extension to load, and no catalog says it
            return replace(part, name="", scalars=False)
        return replace(part, name="")


def list_parts_of_kind(table: schema.TableDef, kind: str) -> Sequence[Any]:
    """Return the parts of one kind."""
    kinds: dict[str, Sequence[Any]] = {
        "unique": table.uniques,
        "check": table.checks,
        "index": table.indexes,
        "exclusion": table.exclusions,
        "search index": table.searches,
    }
    return kinds[kind]


def describe_part(part: Any) -> str:
    """Return a part in a few words, for messages."""
    if hasattr(part, "sql"):
        return part.sql
    terms = getattr(part, "terms", ()) or part.columns
    where = getattr(part, "where", "")
    return f"({', '.join(terms)})" + (f" WHERE {where}" if where else "")


def _describe_target(key: schema.ForeignKeyDef) -> str:
    action = key.on_delete.replace("_", " ")
    return f"{key.target}({key.target_column}) ON DELETE {action}"


def _advise_repair(table: str, name: str, note: str) -> str:
    if note == NOT_VALID:
        return f"ALTER TABLE {quote(table)} VALIDATE CONSTRAINT {quote(name)}"
    if note == INVALID:
        return f"REINDEX INDEX CONCURRENTLY {quote(name)}"
    if note.startswith("trigger "):
        return "drop and create the search index again"
    return "take it back, or write it into the history with RunSQL"
