"""treefold_migrations: schema migrations for treefold-orm on SQLite and PostgreSQL."""

from typing import TYPE_CHECKING

from treefold_migrations.__about__ import __version__

if TYPE_CHECKING:
    from treefold_migrations._base.errors import (
        Ambiguous,
        DataLossRefused,
        FileError,
        HistoryError,
        LockTimeout,
        MigrationError,
        PlanError,
        RunError,
        StateError,
    )
    from treefold_migrations._commands.baseline import Baseline, abaseline, baseline
    from treefold_migrations._commands.drifting import adrift, drift
    from treefold_migrations._commands.files import (
        list_migrations,
        makemigrations,
        merge,
        squash,
    )
    from treefold_migrations._commands.linting import lint
    from treefold_migrations._commands.running import amigrate, migrate, rollback, sqlmigrate
    from treefold_migrations._detect.answers import Question
    from treefold_migrations._files.loading import load_folder
    from treefold_migrations._files.migration import Migration
    from treefold_migrations._inspect.compare import Difference
    from treefold_migrations._inspect.found import InspectError
    from treefold_migrations._inspect.live import aread_schema, read_schema
    from treefold_migrations._operations.base import Operation
    from treefold_migrations._operations.columns import AddField, AlterField, DropField, RenameField
    from treefold_migrations._operations.custom import RunPython, RunSQL, SeparateStateAndDatabase
    from treefold_migrations._operations.parts import (
        AddConstraint,
        AddIndex,
        DropConstraint,
        DropIndex,
    )
    from treefold_migrations._operations.tables import (
        CreateTable,
        DropTable,
        RenameTable,
        SetOptions,
    )
    from treefold_migrations._run.events import Event
    from treefold_migrations._run.frozen import FrozenModels
    from treefold_migrations._run.runner import Runner
    from treefold_migrations._run.timeouts import Limits
    from treefold_migrations._run.work import Work
    from treefold_migrations._state.schema_state import SchemaState, TableOptions, TableState

__all__ = [
    "AddConstraint",
    "AddField",
    "AddIndex",
    "AlterField",
    "Ambiguous",
    "Baseline",
    "CreateTable",
    "DataLossRefused",
    "Difference",
    "DropConstraint",
    "DropField",
    "DropIndex",
    "DropTable",
    "Event",
    "FileError",
    "FrozenModels",
    "HistoryError",
    "InspectError",
    "Limits",
    "LockTimeout",
    "Migration",
    "MigrationError",
    "Operation",
    "PlanError",
    "Question",
    "RenameField",
    "RenameTable",
    "RunError",
    "RunPython",
    "RunSQL",
    "Runner",
    "SchemaState",
    "SeparateStateAndDatabase",
    "SetOptions",
    "StateError",
    "TableOptions",
    "TableState",
    "Work",
    "__version__",
    "abaseline",
    "adrift",
    "amigrate",
    "aread_schema",
    "baseline",
    "drift",
    "lint",
    "list_migrations",
    "load_folder",
    "makemigrations",
    "merge",
    "migrate",
    "read_schema",
    "rollback",
    "sqlmigrate",
    "squash",
]

# every boot of an application imports this package, and few of them need any of it
_MODULES = {
    "_base.errors": "Ambiguous DataLossRefused FileError HistoryError LockTimeout MigrationError "
    "PlanError RunError StateError",
    "_files.migration": "Migration",
    "_operations.base": "Operation",
    "_operations.columns": "AddField AlterField DropField RenameField",
    "_operations.custom": "RunPython RunSQL SeparateStateAndDatabase",
    "_operations.parts": "AddConstraint AddIndex DropConstraint DropIndex",
    "_operations.tables": "CreateTable DropTable RenameTable SetOptions",
    "_state.schema_state": "SchemaState TableOptions TableState",
    "_commands.baseline": "Baseline abaseline baseline",
    "_commands.files": "list_migrations makemigrations merge squash",
    "_commands.linting": "lint",
    "_commands.running": "amigrate migrate rollback sqlmigrate",
    "_detect.answers": "Question",
    "_files.loading": "load_folder",
    "_inspect.compare": "Difference",
    "_inspect.found": "InspectError",
    "_commands.drifting": "adrift drift",
    "_inspect.live": "aread_schema read_schema",
    "_run.events": "Event",
    "_run.frozen": "FrozenModels",
    "_run.runner": "Runner",
    "_run.timeouts": "Limits",
    "_run.work": "Work",
}
_LATER = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
