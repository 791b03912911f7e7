"""The databases of a history: those that it lives on, and the part of each file that one has.

| Operation of a file | on `default` | on `analytics` |
|---|---|---|
| `CreateTable("author", ...)` | runs | |
| `CreateTable("event", ..., database="analytics")` | | runs |
| `AddField("event", ...)` | | runs, where its table is |
| `RunPython(copy, database="analytics")` | | runs, and knows the tables of `default` |

Names, order and hashes of the files are the same on every database, so that each records all of
them: also those of which it has no operation. A history that names no database is not bound to
one: it is whole on whichever alias it is asked for. A database that no operation names, such as a
copy, has the operations of `default` when it is asked for, as `create_all` gives it those tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from treefold_migrations._base.errors import HistoryError
from treefold_migrations._files.history import History
from treefold_migrations._operations.base import Operation, compute_states
from treefold_migrations._operations.custom import RunPython, RunSQL, SeparateStateAndDatabase
from treefold_migrations._operations.tables import CreateTable, DropTable, RenameTable
from treefold_migrations._state.schema_state import SchemaState
from treefold_orm.schema import DEFAULT, sort_databases


def list_databases(history: History) -> list[str]:
    """Return the aliases that the operations of a history live on, `default` first."""
    named = (alias for item in history.order() for alias in _collect_databases(item.operations))
    return sort_databases(named) or [DEFAULT]


def _collect_databases(operations: Iterable[Operation]) -> Iterator[str]:
    for operation in operations:
        if isinstance(operation, (CreateTable, RunSQL, RunPython)):
            yield operation.database
        elif isinstance(operation, SeparateStateAndDatabase):
            yield from _collect_databases((*operation.database, *operation.state))


def select_databases(history: History, database: str | None) -> list[str]:
    """Return the aliases that a command is for: the one that it was given, or all of a history."""
    return list_databases(history) if database is None else [database]


def restrict_to_database(history: History, alias: str) -> History:
    """Return a history with the operations that one database has.

    Raises:
        HistoryError: it has none: no operation lives there, and none on `default`.
    """
    found = list_databases(history)
    # nothing to take out, and a history that names no database is not bound to one
    if found in ([DEFAULT], [alias]):
        return history
    home = alias if alias in found else DEFAULT
    if home not in found:
        raise HistoryError(
            f"No operation of the migrations lives on the database {alias!r}; they live on "
            f"{', '.join(found)}"
        )
    parts = {
        item.name: replace(item, part=_filter_operations_by_database(home, item.operations, before))
        for item, before, _ in history.walk_states()
    }
    # replaced files as they are: only their names and hashes count
    items = [parts.get(name, item) for name, item in history.files.items()]
    return History(history.folder, items, database=alias)


def _filter_operations_by_database(
    database: str, operations: Sequence[Operation], before: SchemaState
) -> tuple[Operation, ...]:
    states = compute_states(operations, before)
    pairs = zip(operations, states, strict=False)
    found = (_restrict_operation_to_database(database, *pair) for pair in pairs)
    return tuple(part for part in found if part is not None)


def _restrict_operation_to_database(
    database: str, operation: Operation, before: SchemaState
) -> Operation | None:
    if isinstance(operation, SeparateStateAndDatabase):
        halves = [
            _filter_operations_by_database(database, h, before)
            for h in (operation.database, operation.state)
        ]
        return SeparateStateAndDatabase(*halves) if any(halves) else None
    if _find_operation_database(operation, before) != database:
        return None
    if isinstance(operation, RunPython):
        # a restricted history replays the tables of its own database alone: the others are kept
        # here
        others = [t for t in before.tables.values() if t.options.database != database]
        return replace(operation, elsewhere=others)
    return operation


def _find_operation_database(operation: Operation, before: SchemaState) -> str:
    match operation:
        case CreateTable() | RunSQL() | RunPython():
            return operation.database
        case DropTable():
            table = operation.name
        case RenameTable():
            table = operation.old
        case _:
            table = str(getattr(operation, "table", ""))
    known = before.tables.get(table)
    return DEFAULT if known is None else known.options.database


def runs_python(operation: Operation) -> bool:
    """Return True for an operation with Python, which may read one database and write another."""
    if isinstance(operation, SeparateStateAndDatabase):
        return any(map(runs_python, (*operation.database, *operation.state)))
    return isinstance(operation, RunPython)
