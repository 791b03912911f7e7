"""Rehearsal: the steps of a file on a copy of a SQLite schema that has no rows.

A file that commits between its steps cannot be undone as a whole. Its third step drops a column
that a view by hand names: on the copy that fails at once, and the file has done nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from treefold_migrations._base.errors import RunError
from treefold_migrations._base.sql_words import contains_only_row_changes
from treefold_migrations._plan.perform import perform_step
from treefold_migrations._plan.step import Step
from treefold_migrations._schedule.units import FileRun, PythonUnit
from treefold_orm import ORMError
from treefold_orm.schema import Operation, Statement, run_in_memory

CATALOG = (
    "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite|_%' "
    "ESCAPE '|' ORDER BY instr('table index view trigger', type), rowid"
)


def rehearse_on_empty_copy(
    run: FileRun, begin: int, skipped: Collection[int], catalog: Sequence[tuple[str, str]]
) -> None:
    """Run the steps of a file that are left on an empty copy of the schema.

    SQL of the author ends the rehearsal, unless it changes rows alone: it may do what must not be
    done twice.

    Args:
        run: the file.
        begin: the place of the first unit that is left.
        skipped: the places of units that were done by hand.
        catalog: the rows of `CATALOG`.

    Raises:
        RunError: a step fails on the copy, as it would in the database.
    """
    steps = list(_list_rehearsable_steps(run, begin, skipped))
    if steps:
        run_in_memory(_perform_on_copy(run, steps, catalog))


def _list_rehearsable_steps(
    run: FileRun, begin: int, skipped: Collection[int]
) -> Iterator[tuple[int, Step]]:
    for place in range(begin, len(run.units)):
        unit = run.units[place]
        # a function changes rows, of which the copy has none
        if place in skipped or isinstance(unit, PythonUnit):
            continue
        if not unit.again:
            if not contains_only_row_changes(unit.step.sql):
                return
            continue
        yield place, unit.step


def _perform_on_copy(
    run: FileRun, steps: Sequence[tuple[int, Step]], catalog: Sequence[tuple[str, str]]
) -> Operation[None]:
    # a view by hand may name a table that the database lacks, too
    yield Statement("script", "PRAGMA foreign_keys = OFF")
    for name, sql in catalog:
        # the tables behind a full-text index came with it
        if (yield Statement("rows", "SELECT 1 FROM sqlite_master WHERE name = ?", (name,))):
            continue
        try:
            yield Statement("script", sql)
        except ORMError:  # a module or a function that this process does not have
            return
    for place, step in steps:
        try:
            yield from perform_step(step)
        except (RunError, ORMError) as error:
            if isinstance(error, RunError):
                raise
            what = f"step {run.find_displayed_step_number(place)}, {step.summary},"
            raise RunError(f"{what} would fail: {error}") from error
