"""The order of guards in a file: as early as their answer stays the same, and before the locks.

    AddField("book", "rank", IntegerField(null=True))      ALTER TABLE "book" ADD COLUMN "rank" ...
    AlterField("book", "title", CharField(unique=True))    guard: duplicates in book.title

The guard reads nothing that the first operation changes. It runs before it, so that no row is read
under a lock, and a file that is refused has done nothing. A guard that needs an operation before
it, such as a fill, stays behind it: the transaction of the operation is committed first if others
wait for its locks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.custom import RunPython, RunSQL, may_change_schema_by_sql
from treefold_migrations._plan.step import Step
from treefold_migrations._schedule.units import SqlUnit, Unit
from treefold_migrations._state.schema_state import SchemaState, derive_column_name


def attach_guards_to_units(
    units: Iterable[Unit], operations: Sequence[Operation], states: Sequence[SchemaState]
) -> list[Unit]:
    """Return units with the guards among them given to the units that they run before.

    Args:
        units: the units in the order of their operations.
        operations: the operations that the units are numbered by.
        states: the states before, between and after them.
    """
    made: list[Unit] = []
    guards: dict[int, list[Step]] = {}
    for unit in units:
        if isinstance(unit, SqlUnit) and unit.step.reads:
            place = len(made)
            while place and _can_guard_run_before(unit, made[place - 1], operations, states):
                place -= 1
            guards.setdefault(place, []).append(unit.step)
        else:
            made.append(unit)
    # a change of the models alone has guards and no statement
    made += [SqlUnit(step, len(operations) - 1) for step in guards.pop(len(made), ())]
    return [replace(unit, guards=tuple(guards.get(n, ()))) for n, unit in enumerate(made)]


def _can_guard_run_before(
    guard: SqlUnit, unit: Unit, operations: Sequence[Operation], states: Sequence[SchemaState]
) -> bool:
    # units of one SeparateStateAndDatabase have one place, and no states between them here
    if guard.operation == unit.operation:
        return False
    operation = operations[unit.operation]
    if guard.step.catalog:
        if isinstance(operation, RunPython | RunSQL) and not may_change_schema_by_sql(operation):
            return True
    elif operation.phase != operations[guard.operation].phase:
        return False
    both = states[unit.operation], states[unit.operation + 1]
    changed = _find_changed_columns(operation, both)
    return changed is not None and not any(
        # a table as a whole, such as one that is dropped, counts for each guard that reads it
        name in guard.step.reads if "." in name else f"{name}." in guard.step.reads
        for name in changed
    )


def _find_changed_columns(
    operation: Operation, states: tuple[SchemaState, SchemaState]
) -> set[str] | None:
    touched = operation.touches()
    # SQL and Python of the author may have changed anything
    if touched is None:
        return None
    found: set[str] = set()
    for name in touched:
        table, _, field = name.partition(".")
        # an index or a constraint changes no row; guards over the catalog alone read it
        if "#" in name:
            found.add(f"{table.partition('#')[0]}.#")
            continue
        columns = [
            derive_column_name(field, state.table(table).fields[field])
            for state in states
            if field and table in state and field in state.table(table).fields
        ]
        found |= {f"{table}.{column}" for column in columns} if columns else {table}
    return found
