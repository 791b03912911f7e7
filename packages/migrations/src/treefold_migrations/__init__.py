"""treefold_migrations: schema migrations for treefold-orm on SQLite and PostgreSQL."""

import importlib
from typing import TYPE_CHECKING

from treefold_migrations.__about__ import __version__

if TYPE_CHECKING:
    from treefold_migrations._base.errors import (
        Ambiguous as Ambiguous,
        DataLossRefused as DataLossRefused,
        FileError as FileError,
        HistoryError as HistoryError,
        LockTimeout as LockTimeout,
        MigrationError as MigrationError,
        PlanError as PlanError,
        RunError as RunError,
        StateError as StateError,
    )
    from treefold_migrations._base.table_sources import (
        TableScripts as TableScripts,
        TableSource as TableSource,
    )
    from treefold_migrations._commands.baseline import (
        Baseline as Baseline,
        abaseline as abaseline,
        baseline as baseline,
    )
    from treefold_migrations._commands.drifting import adrift as adrift, drift as drift
    from treefold_migrations._commands.files import (
        list_migrations as list_migrations,
        makemigrations as makemigrations,
        merge as merge,
        squash as squash,
    )
    from treefold_migrations._commands.linting import lint as lint
    from treefold_migrations._commands.running import (
        amigrate as amigrate,
        migrate as migrate,
        resolve as resolve,
        rollback as rollback,
        sqlmigrate as sqlmigrate,
    )
    from treefold_migrations._detect.answers import Question as Question
    from treefold_migrations._files.loading import load_folder as load_folder
    from treefold_migrations._files.migration import Migration as Migration
    from treefold_migrations._inspect.compare import Difference as Difference
    from treefold_migrations._inspect.found import InspectError as InspectError
    from treefold_migrations._inspect.live import (
        aread_schema as aread_schema,
        read_schema as read_schema,
    )
    from treefold_migrations._operations.base import Operation as Operation
    from treefold_migrations._operations.columns import (
        AddField as AddField,
        AlterField as AlterField,
        DropField as DropField,
        RenameField as RenameField,
    )
    from treefold_migrations._operations.custom import (
        RunPython as RunPython,
        RunSQL as RunSQL,
        SeparateStateAndDatabase as SeparateStateAndDatabase,
    )
    from treefold_migrations._operations.parts import (
        AddConstraint as AddConstraint,
        AddIndex as AddIndex,
        DropConstraint as DropConstraint,
        DropIndex as DropIndex,
    )
    from treefold_migrations._operations.tables import (
        CreateTable as CreateTable,
        DropTable as DropTable,
        RenameTable as RenameTable,
        SetOptions as SetOptions,
    )
    from treefold_migrations._run.events import Event as Event
    from treefold_migrations._run.frozen import FrozenModels as FrozenModels
    from treefold_migrations._run.runner import Runner as Runner
    from treefold_migrations._run.timeouts import Limits as Limits
    from treefold_migrations._run.work import Work as Work
    from treefold_migrations._state.schema_state import (
        SchemaState as SchemaState,
        TableOptions as TableOptions,
        TableState as TableState,
    )

# every boot of an application imports this package, and few of them need any of it
_MODULES = {
    "_base.errors": "Ambiguous DataLossRefused FileError HistoryError LockTimeout MigrationError "
    "PlanError RunError StateError",
    "_base.table_sources": "TableScripts TableSource",
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
    "_commands.running": "amigrate migrate resolve rollback sqlmigrate",
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

if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    __all__ = ["__version__", *sorted(_LATER)]


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
