"""Replay: files on an empty SQLite database in memory, for what their own SQL makes of the schema.

`RunSQL("ALTER TABLE book ADD shelf TEXT")` adds a column that no model knows, and a later file
changes `book.title`, for which SQLite creates the table again, without the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from treefold_migrations._base.errors import RunError
from treefold_migrations._base.sql_words import split_and_mask_statements
from treefold_migrations._files.history import History, LoadedMigration
from treefold_migrations._inspect.sqlite_losses import UnknownParts
from treefold_migrations._operations.base import compute_states
from treefold_migrations._plan.perform import perform_step
from treefold_migrations._records.recorded_history import DatabaseTarget
from treefold_migrations._schedule.planning import plan_guarded_units
from treefold_migrations._schedule.units import PythonUnit, Unit
from treefold_orm import ORMError
from treefold_orm.schema import Operation, SQLite, Statement, run_in_memory

_SCHEMA = ("CREATE ", "ALTER ", "DROP ")


@dataclass(frozen=True, slots=True)
class Refusal:
    """An operation of a file that `migrate` would refuse, and the parts that are in its way."""

    name: str
    operation: int
    problem: str


def find_unknown_part_refusals(history: History) -> list[Refusal]:
    """Return the operations that would lose parts which SQL in the files themselves has made.

    The replay ends where SQL of an author fails, which may need rows or more than one connection.
    """
    made: list[Refusal] = []
    run_in_memory(_replay_and_collect_refusals(history, made))
    return made


def _replay_and_collect_refusals(history: History, refusals: list[Refusal]) -> Operation[None]:
    yield Statement("script", "PRAGMA foreign_keys = OFF")
    for item in history.order():
        for unit in _plan_file(history, item):
            try:
                yield from _perform_unit_collecting_refusals(item, unit, refusals)
            except (ORMError, RunError):
                return


def _plan_file(history: History, item: LoadedMigration) -> Iterable[Unit]:
    states = compute_states(item.operations, history.compute_state_before(item.name))
    return plan_guarded_units(item.operations, states, DatabaseTarget(SQLite(), single=True))


def _perform_unit_collecting_refusals(
    item: LoadedMigration, unit: Unit, refusals: list[Refusal]
) -> Operation[None]:
    # a function changes rows, of which there are none
    if isinstance(unit, PythonUnit):
        return
    if not unit.again:
        for sql in _list_schema_statements(unit.step.sql):
            yield Statement("script", sql)
        return
    try:
        yield from perform_step(unit.step)
    except UnknownParts as error:
        refusals.append(Refusal(item.name, unit.operation, error.problem))
        # once named, the parts are lost here as in the database that agrees to it
        yield from perform_step(replace(unit.step, known=None))


def _list_schema_statements(sql: str) -> Iterator[str]:
    """The statements that change tables: others may reach files, by ATTACH or VACUUM INTO."""
    for written, words in split_and_mask_statements(sql):
        if words.upper().startswith(_SCHEMA):
            yield written
