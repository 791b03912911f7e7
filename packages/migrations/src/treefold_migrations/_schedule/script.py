"""Script: the statements of a run, as SQL text for people and for tools that run it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from treefold_migrations._plan.step import Step
from treefold_migrations._records.recorded_history import DatabaseTarget
from treefold_migrations._schedule.units import FileRun, PythonUnit, Unit, find_transaction_group


def render_script(runs: Iterable[FileRun], target: DatabaseTarget) -> str:
    """Return the statements of some files, with transactions and comments.

    Python steps, and the records of applied files, are comments: a script does not do them.
    """
    return "\n".join(line for run in runs for line in _render_file(run, target))


def _render_file(run: FileRun, target: DatabaseTarget) -> Iterator[str]:
    turn = "" if run.direction == "forwards" else ", backwards"
    yield f"-- {run.name} ({target.dialect.name}{turn})"
    place = 0
    while place < len(run.units):
        group = find_transaction_group(run.units, place)
        together = group[0].transactional
        # in front of BEGIN, where no lock is held, as the runner runs them
        for guard in group[0].guards:
            yield from _render_step(guard)
        if together and _disables_foreign_keys(group):
            yield "PRAGMA foreign_keys = OFF;"
        yield "BEGIN;" if together else "-- committed by itself:"
        for number, unit in enumerate(group):
            for guard in unit.guards if number else ():
                yield from _render_step(guard)
            yield from _render_unit(unit)
        if together:
            yield "COMMIT;"
        if together and _disables_foreign_keys(group):
            yield "PRAGMA foreign_keys = ON;"
        place += len(group)
    if not run.units:
        yield "-- nothing to do in the database"
    yield ""


def _disables_foreign_keys(group: tuple[Unit, ...]) -> bool:
    return any(not isinstance(u, PythonUnit) and u.step.foreign_keys_off for u in group)


def _render_unit(unit: Unit) -> Iterator[str]:
    if isinstance(unit, PythonUnit):
        yield f"-- {unit.summary} (Python, not part of this script)"
        return
    yield from _render_step(unit.step)


def _render_step(step: Step) -> Iterator[str]:
    if step.summary:
        yield f"-- {step.summary}"
    if step.generates:
        yield "-- run each statement that this query returns:"
    if step.repeat:
        yield "-- repeat until no row changes:"
    if step.sql:
        # the text of an author may have its semicolon already
        yield f"{step.sql.rstrip().rstrip(';')};"
    if step.verify:
        yield "-- must return no row:"
        yield f"{step.verify.rstrip().rstrip(';')};"
