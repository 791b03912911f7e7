"""Migrations inside an application: list and apply pending ones, explain errors by them.

Found by the entry point `migrations` of the group `treefold.extensions`. Nothing of HTTP and of the
command line is imported; of an application, only its `root` is read. Every boot imports this
module: the rest of the package is imported when it is asked something.

Example, the error of a query and what `explain` adds to it in development:

    no such column: book.rank
    Migration 0003_add_rank brings it and is not applied: run 'treefold migrate'
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from treefold_orm import DatabaseError, aliases

if TYPE_CHECKING:
    from treefold_migrations._files.history import History
    from treefold_migrations._state.schema_state import SchemaState

FOLDER = "migrations"
DEFAULT = "default"

_UNWRITTEN = "No migration brings it yet: run 'treefold makemigrations', then 'treefold migrate'"
# of SQLite and of PostgreSQL: `no such table: book`, `relation "book" does not exist`;
# `no such column: b.rank`, `table book has no column named rank`, `column b.rank does not exist`
_NO_TABLE = re.compile(r'no such table: (?:main\.)?"?(?P<a>\w+)|relation "(?P<b>[^"]+)" does not')
_NO_COLUMN = re.compile(
    r'no such column: (?:"?\w+"?\.)?"?(?P<a>\w+)|has no column named "?(?P<b>\w+)'
    r'|column (?:"?\w+"?\.)?"?(?P<c>\w+)"?(?: of relation "[^"]+")? does not exist'
)


class Application(Protocol):
    """The attributes of an application that are read here."""

    root: Path


@dataclass(frozen=True, slots=True)
class Pending:
    """One thing that keeps the database behind the models.

    Attributes:
        text: what it is.
        advice: the command that provides it.
    """

    text: str
    advice: str


class Migrations:
    """One for each application."""

    def __init__(self) -> None:
        self._root = Path()

    def setup(self, app: Application) -> None:
        """Remember where the project is."""
        self._root = app.root

    def pending(self) -> list[Pending]:
        """Return the files that are not applied, and the models that no file makes yet."""
        if not aliases():
            return []
        from treefold_migrations._state.schema_state import SchemaState

        history = self._load_history()
        found: list[Pending] = [] if history is None else list(_find_pending_databases(history))
        written = SchemaState() if history is None else history.compute_state_after()
        if models := list(_find_models_without_migration(written, self._load_models_state())):
            text = f"no migration yet: {', '.join(models)}"
            found.append(Pending(text, "treefold makemigrations"))
        from treefold_migrations._detect.provided_tables import detect_provided_tables

        for source, _ in detect_provided_tables(self._root, history):
            found.append(Pending(f"no migration yet: {source.title}", "treefold makemigrations"))
        return found

    def apply(self) -> list[str] | None:
        """Apply the files that are not applied, to each database that they live on.

        Returns:
            A line for each file; None in a project without migrations.
        """
        if not self._has_migration_files():
            return None
        from treefold_migrations._commands.running import migrate

        done = migrate(self._root / FOLDER)
        places = {made.database: f" to {made.database}" for made in done}
        places[DEFAULT] = ""
        return [f"applied {made.name}{places[made.database]}" for made in done]

    def explain(self, error: BaseException) -> str:
        """Name the migration that brings the table or column which an error misses."""
        missing = _parse_missing_table_or_column(error)
        if missing is None:
            return ""
        from treefold_migrations._state.schema_state import SchemaState

        history = self._load_history()
        if history is None:
            if _is_table_or_column_added(SchemaState(), self._load_models_state(), missing):
                return _UNWRITTEN
            return ""
        for name in _list_unapplied_on_any_database(history):
            states = history.compute_state_before(name), history.compute_state_after(name)
            if _is_table_or_column_added(*states, missing):
                return f"Migration {name} brings it and is not applied: run 'treefold migrate'"
        state = history.compute_state_after()
        if _is_table_or_column_added(state, self._load_models_state(), missing):
            return _UNWRITTEN
        return ""

    def _has_migration_files(self) -> bool:
        return bool(aliases()) and any((self._root / FOLDER).glob("[0-9]*.py"))

    def _load_history(self) -> History | None:
        if not self._has_migration_files():
            return None
        from treefold_migrations._files.loading import load_folder

        return load_folder(self._root / FOLDER)

    def _load_models_state(self) -> SchemaState:
        from treefold_migrations._detect.models import build_models_state
        from treefold_orm.schema import registry

        registry.enter_application_folder(self._root)
        return build_models_state()


def _find_pending_databases(history: History) -> Iterator[Pending]:
    """The databases of a history that lack files, and those that are not configured."""
    from treefold_migrations._files.databases import list_databases

    for alias in list_databases(history):
        if alias not in aliases():
            advice = f"add {alias!r} to the setting databases"
            yield Pending(f"the database {alias!r} is not configured", advice)
        elif names := _list_unapplied(history, alias, include_expanded=False):
            place = "" if alias == DEFAULT else f" to {alias}"
            yield Pending(f"not applied{place}: {', '.join(names)}", "treefold migrate")


def _list_unapplied_on_any_database(history: History) -> list[str]:
    from treefold_migrations._files.databases import list_databases

    known = [alias for alias in list_databases(history) if alias in aliases()]
    lacking = {name for alias in known for name in _list_unapplied(history, alias)}
    return [item.name for item in history.order() if item.name in lacking]


def _list_unapplied(history: History, alias: str, *, include_expanded: bool = True) -> list[str]:
    """The files that are not applied to a database, in their order; `include_expanded` adds those
    that are expanded. A database is never made by the question.
    """
    from treefold_migrations._run.runner import Runner
    from treefold_orm.schema import database_for

    database = database_for(alias)
    file = str(getattr(database, "database", "")) if database.name == "sqlite" else ""
    if file and file != ":memory:" and not Path(file).exists():
        return [item.name for item in history.order()]
    runner = Runner(alias, history)
    return runner.pending() if include_expanded else runner.missing()


def _find_models_without_migration(old: SchemaState, new: SchemaState) -> Iterator[str]:
    """The models whose tables the files do not make as they are now, of no files those whose tables
    no tool of others makes.
    """
    from treefold_migrations._state.schema_state import is_same_table

    for name, table in new.tables.items():
        if not old.tables and not table.options.managed:
            continue
        if name not in old or not is_same_table(old.table(name), table):
            yield table.model
    for name, table in old.tables.items():
        if name not in new:
            yield f"{table.model} (gone)"


def _parse_missing_table_or_column(error: BaseException) -> tuple[str, str] | None:
    """The part that an error of the database misses: a kind and a name."""
    if not isinstance(error, DatabaseError):
        return None
    for kind, pattern in (("table", _NO_TABLE), ("column", _NO_COLUMN)):
        if found := pattern.search(str(error)):
            return kind, next(filter(None, found.groups()))
    return None


def _is_table_or_column_added(
    before: SchemaState, after: SchemaState, missing: tuple[str, str]
) -> bool:
    """True if a table or a column of that name is there only afterwards."""
    kind, name = missing
    added = _list_tables_and_columns(after) - _list_tables_and_columns(before)
    return any(one == kind and part.rpartition(".")[2] == name for one, part in added)


def _list_tables_and_columns(state: SchemaState) -> set[tuple[str, str]]:
    """The tables of a state, and its columns as `table.column`."""
    from treefold_migrations._state.schema_state import derive_column_name

    tables = {("table", name) for name in state.tables}
    columns = (
        ("column", f"{table.name}.{derive_column_name(name, field)}")
        for table in state.tables.values()
        for name, field in table.fields.items()
    )
    return {*tables, *columns}
