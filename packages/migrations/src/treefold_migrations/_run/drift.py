"""`drift`: how a database differs from the migrations that it has recorded as applied.

It only reads. Tables of models with `managed = False` are left alone, as are views, partitions and
other schemas, and differences that a baseline noted (`as_found` of a table).
"""

from __future__ import annotations

from collections.abc import Iterable

from treefold_migrations._files.history import History
from treefold_migrations._inspect.compare import Difference
from treefold_migrations._inspect.live import acompare_database, compare_database
from treefold_migrations._records.recorded_history import RecordedHistory
from treefold_migrations._run.runner import Runner
from treefold_migrations._schedule.expanded import compute_current_schema
from treefold_migrations._schedule.half_done import list_half_done
from treefold_migrations._schedule.half_done_runs import list_completed_operations
from treefold_migrations._schedule.history_checks import check_history
from treefold_migrations._state.rendering import render_managed_tables
from treefold_migrations._state.schema_state import SchemaState


def compute_expected_state(recorded: RecordedHistory) -> SchemaState:
    """Return the state after the applied migrations, the parts of expanded ones that run in expand,
    and the complete operations of one that is half applied.

    Raises `HistoryError` for files that do not fit the records.
    """
    check_history(recorded)
    state = compute_current_schema(recorded)
    # an operation that is not complete does not count: its parts are differences
    for entry in list_half_done(recorded.applied):
        for operation in list_completed_operations(recorded, entry):
            state = operation.apply(state)
    return state


def drift(history: History, alias: str = "default") -> list[Difference]:
    """Return how the database differs from the migrations that it has applied; none is well.

    Only tables of the models that live there are wanted.

    Args:
        history: the migration files.
        alias: the database.

    Raises `HistoryError` for files that do not fit the records, `InspectError` for a catalog that
    cannot be read.
    """
    runner = Runner(alias, history)
    recorded = RecordedHistory.on_database(runner.history, runner.applied(), alias)
    state = compute_expected_state(recorded)
    wanted = render_managed_tables(state, recorded.dialect)
    found = compare_database(wanted, alias, ignored=_list_unmanaged_tables(state))
    return exclude_known_differences(state, found)


async def adrift(history: History, alias: str = "default") -> list[Difference]:
    """`drift` for async code."""
    runner = Runner(alias, history)
    recorded = RecordedHistory.on_database(runner.history, await runner.aapplied(), alias)
    state = compute_expected_state(recorded)
    wanted = render_managed_tables(state, recorded.dialect)
    found = await acompare_database(wanted, alias, ignored=_list_unmanaged_tables(state))
    return exclude_known_differences(state, found)


def exclude_known_differences(
    state: SchemaState, differences: Iterable[Difference]
) -> list[Difference]:
    """Return the differences that no table has as it was found."""
    tables = state.tables.items()
    known = {(name, *finding) for name, table in tables for finding in table.options.as_found}
    return [found for found in differences if (found.table, *found.key) not in known]


def _list_unmanaged_tables(state: SchemaState) -> list[str]:
    return [name for name, table in state.tables.items() if not table.options.managed]
