"""From each failure of a run a way forward and a way back, by commands of the command line alone.

A `Course` is a command between two states of a database: files applied, rolled back, expanded or
contracted. `walk` lets it fail and follows the way that `list_migrations` shows. The oracle knows
both ends: schema and rows of an undisturbed run, and of the start.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from run_place import Place

from treefold_migrations._commands import command_line, command_line_checks

COMMANDS = 4
"""The most commands that may be needed for a file."""


@dataclass
class Walk:
    """The commands that are run on a database, and what they said.

    Attributes:
        place: the database.
        app_dir: the folder of the project.
        options: of each `migrate` and `rollback`, as limits of waiting.
        fills: of a rollback, for fields that come back.
        said: each command with its exit code and what it printed.
        lost: what the commands named as lost before it was allowed.
        stranger: True while the row of another program is there.
    """

    place: Place
    app_dir: str
    options: dict[str, str] = field(default_factory=dict[str, str])
    fills: list[str] = field(default_factory=list[str])
    said: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    lost: list[str] = field(default_factory=list[str])
    stranger: bool = False

    def run(self, name: str, *args: str, **options: Any) -> int:
        """Run a command of the command line; return its exit code."""
        module = command_line_checks if name == "drift" else command_line
        limits = self.options if name in ("migrate", "rollback") else {}
        out = io.StringIO()
        self.place.configure()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = getattr(module, name)(*args, **options, **limits, app_dir=self.app_dir)
        self.said.append((f"{name} {' '.join(args)} {options or ''}", code, out.getvalue()))
        return code

    def listed(self) -> list[str]:
        """The lines of `list_migrations`."""
        assert self.run("list_migrations") == 0, self.said[-1]
        return self.said[-1][2].splitlines()

    def forward(self) -> None:
        """Run what applies all files."""
        lines = self.listed()
        for _ in range(COMMANDS * len(lines)):
            half = [line for line in lines if "half" in line]
            if half:
                self.succeed("migrate", "again", resolve=name_of(half[0]))
            elif all(line.startswith("[x]") for line in lines):
                return
            else:
                self.succeed("migrate")
            lines = self.listed()
        raise AssertionError("still not applied")

    def back(self) -> None:
        """Run what takes all files but the first back."""
        lines = self.listed()
        for _ in range(COMMANDS * len(lines)):
            half = [line for line in lines if "half" in line]
            if half and "half rolled back" in half[0]:
                self.succeed("migrate", "again", resolve=name_of(half[0]))
            elif half:
                self.give_up("migrate", "abandon", resolve=name_of(half[0]))
            elif all(line.startswith("[ ]") for line in lines[1:]):
                return
            else:
                self.give_up("rollback", **({"fill": self.fills} if self.fills else {}))
            lines = self.listed()
        raise AssertionError("still not taken back")

    def succeed(self, name: str, *args: str, **options: Any) -> None:
        """Run a command that has to succeed."""
        if self.run(name, *args, **options) == 0:
            return
        assert self.stranger, f"refused: {self.said[-1]}"
        self.remove_stranger(must_be_there=True)
        assert self.run(name, *args, **options) == 0, f"refused: {self.said[-1]}"

    def give_up(self, name: str, *args: str, **options: Any) -> None:
        """Run a command that may name a loss, or a field that comes back and needs a value; it is
        then run with the loss allowed, or with the value.
        """
        for _ in range(COMMANDS):
            if self.run(name, *args, **options) == 0:
                return
            said = self.said[-1][2]
            lacking = re.findall(r"--fill (\S+):VALUE$", said, re.MULTILINE)
            if "--allow-destructive" in said and "allow_destructive" not in options:
                self.lost.append(said)
                options["allow_destructive"] = True
            elif lacking:
                options["fill"] = [*options.get("fill", []), *(f"{each}:1" for each in lacking)]
            else:
                break
        self.succeed(name, *args, **options)

    def remove_stranger(self, *, must_be_there: bool) -> None:
        """Delete the row of another program by hand."""
        self.stranger = False
        for table in ("book", "tag", "label"):
            if table in self.place.tables():
                found = self.place.ask(f"DELETE FROM {table} WHERE id = 99 RETURNING id")
                assert found or not must_be_there, f"the row of another program in {table} is lost"


def name_of(line: str) -> str:
    """The name of a file in a line of `list_migrations`."""
    found = re.search(r"\d{4}_\w+", line)
    assert found, line
    return found[0]


# -- what a database holds ------------------------------------------------------------------------


def schema_of(place: Place) -> list[str]:
    """Columns, indexes and constraints as lines, whatever the order of columns."""
    found = sqlite_schema(place) if place.engine == "sqlite" else postgres_schema(place)
    return sorted(line for line in found if "treefold_migrations" not in line)


def sqlite_schema(place: Place) -> Iterator[str]:
    for kind, name, table, sql in place.ask("SELECT type, name, tbl_name, sql FROM sqlite_master"):
        if kind == "table" and name != "sqlite_sequence":
            yield from (f"{table}: {part}" for part in parts_of(sql))
        elif sql and kind != "table":
            yield f"{table}: {sql}"


def parts_of(sql: str) -> list[str]:
    """The columns and constraints of a CREATE TABLE; a key at its column is one of the table."""
    inside = sql[sql.index("(") + 1 : sql.rindex(")")]
    parts, depth = [""], 0
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [
        part
        for given in parts
        for part in _KEY_AT_COLUMN.sub(_KEY_OF_TABLE, " ".join(given.split())).split("\n")
    ]


_KEY_AT_COLUMN = re.compile(r'("\w+") (.*) (CONSTRAINT "\w+") (REFERENCES .*)')
_KEY_OF_TABLE = r"\1 \2\n\3 FOREIGN KEY (\1) \4"
"""As ALTER TABLE writes a key, and as CREATE TABLE does."""


def postgres_schema(place: Place) -> Iterator[str]:
    for sql in POSTGRES_SCHEMA:
        yield from map(str, place.ask(sql))


POSTGRES_SCHEMA = (
    "SELECT table_name::text, column_name::text, data_type::text, character_maximum_length::int, "
    "numeric_precision::int, numeric_scale::int, is_nullable::text, column_default::text, "
    "is_identity::text FROM information_schema.columns WHERE table_schema = current_schema()",
    "SELECT c.relname::text, pg_get_indexdef(i.indexrelid), i.indisvalid FROM pg_index i "
    "JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = current_schema()::regnamespace",
    "SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid), convalidated "
    "FROM pg_constraint WHERE connamespace = current_schema()::regnamespace",
)


def rows_of(place: Place) -> list[str]:
    """The rows of all tables of the project, whatever the order of columns."""
    found: list[str] = []
    for table in sorted(place.tables()):
        if not table.startswith("treefold_migrations"):
            columns = ", ".join(f'"{name}"' for name in columns_of(place, table))
            read = place.ask(f'SELECT {columns} FROM "{table}"')
            found += sorted(f"{table} ({columns}) {row}" for row in read)
    return [NOW.sub("now", line) for line in found]


NOW = re.compile(r"'20\d\d-[\d :.+-]+'|datetime\.datetime\([^)]*\)\)?")


def columns_of(place: Place, table: str) -> list[str]:
    sql = (
        f"SELECT name FROM pragma_table_xinfo('{table}')"
        if place.engine == "sqlite"
        else "SELECT attname::text FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped "
        f"AND attrelid = '{table}'::regclass"
    )
    return sorted(name for (name,) in place.ask(sql))


def journal_of(place: Place) -> list[str]:
    """Records and rows of the journal, without the lock and its times."""
    if "treefold_migrations" not in place.tables():
        return []
    return [
        f"{name} {rest}"
        for sql in (
            "SELECT name, hash FROM treefold_migrations ORDER BY 1",
            "SELECT name, state FROM treefold_migrations_journal WHERE name <> '(lock)' ORDER BY 1",
        )
        for name, rest in place.ask(sql)
    ]


@dataclass(frozen=True)
class Held:
    """What a database holds."""

    schema: list[str]
    rows: list[str]
    journal: list[str]

    @classmethod
    def of(cls, place: Place) -> Held:
        return cls(schema_of(place), rows_of(place), journal_of(place))

    def differences(self, other: Held) -> list[str]:
        """Lines that only one of both holds, at most 8."""
        found: list[str] = []
        for mine, theirs in ((self.schema, other.schema), (self.rows, other.rows)):
            found += [f"- {line}" for line in mine if line not in theirs]
            found += [f"+ {line}" for line in theirs if line not in mine]
        return found[:8]
