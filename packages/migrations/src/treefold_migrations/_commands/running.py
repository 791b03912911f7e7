"""The commands that change a database, or show how: migrate, rollback, sqlmigrate.

They report to `say`, one line at a time; nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from treefold_migrations._base.errors import FileError
from treefold_migrations._commands.files import Folder, Say, ignore_line
from treefold_migrations._commands.headings import DatabaseHeadedOutput
from treefold_migrations._files.databases import restrict_to_database, select_databases
from treefold_migrations._files.history import History
from treefold_migrations._files.loading import load_folder
from treefold_migrations._records.recorded_history import DatabaseTarget, RecordedHistory
from treefold_migrations._records.records import Applied
from treefold_migrations._run.events import Event, Listener
from treefold_migrations._run.executor import Interrupted
from treefold_migrations._run.lock import WAIT
from treefold_migrations._run.runner import Resolution, Runner
from treefold_migrations._run.timeouts import Limits
from treefold_migrations._schedule.forward_runs import Phase
from treefold_migrations._schedule.planning import plan_single_file
from treefold_migrations._schedule.script import render_script
from treefold_migrations._schedule.targeted_files import list_applied_after
from treefold_migrations._schedule.turns import (
    collect_recorded_files,
    plan_migrate_calls,
    plan_rollback_calls,
    select_fill_flags,
)
from treefold_migrations._schedule.units import FileRun, SqlUnit, Unit
from treefold_orm import ConfigurationError
from treefold_orm.schema import Postgres, SQLite, database_for


def migrate(
    folder: Folder = "migrations",
    target: str | None = None,
    *,
    database: str | None = None,
    phase: Phase | None = None,
    fake: bool = False,
    plan: bool = False,
    say: Say = ignore_line,
    limits: Limits | None = None,
    wait: float = WAIT,
    interrupted: Interrupted = "stop",
) -> list[FileRun]:
    """Apply the migrations of a folder; arguments, result and errors as of `Runner.migrate`.

    Args:
        folder: The folder of the files.
        target: The last file to apply.
        database: The alias of the database; without it, each that the files live on in turn.
        phase: "expand" for the parts that the running release bears, "contract" for the rest.
        fake: Write the records alone.
        plan: Change nothing.
        say: Called with each line for people.
        limits: How long locking steps wait and run.
        wait: Seconds to wait for another run.
        interrupted: The choice for an interrupted step that may not run twice.

    Raises:
        FileError: The folder is missing, and is not called `migrations`.
    """
    every = _Runners(folder, database, say, limits, wait, interrupted)
    runs: list[FileRun] = []
    pending = every.build_empty_pending()
    # turns matter only where rows move; a plan and records can go database by database
    if every.several and not (fake or plan):
        pending = {alias: runner.pending() for alias, runner in every.by_alias.items()}
    for alias, upto in every.plan_migrate_calls(pending, target):
        done = every.by_alias[alias].migrate(upto, phase=phase, fake=fake, plan=plan)
        runs += _set_run_database(alias, done)
    _report_runs(runs, "expand" if phase == "expand" else "apply", every.say, fake=fake, plan=plan)
    if target is not None and not runs:
        for alias, runner in every.by_alias.items():
            _suggest_rollback(
                runner, runner.applied(), target, every.say.make_line_writer(alias), fake=fake
            )
    return runs


async def amigrate(
    folder: Folder = "migrations",
    target: str | None = None,
    *,
    database: str | None = None,
    phase: Phase | None = None,
    fake: bool = False,
    plan: bool = False,
    say: Say = ignore_line,
    limits: Limits | None = None,
    wait: float = WAIT,
    interrupted: Interrupted = "stop",
) -> list[FileRun]:
    """`migrate` for async code."""
    every = _Runners(folder, database, say, limits, wait, interrupted)
    runs: list[FileRun] = []
    pending = every.build_empty_pending()
    if every.several and not (fake or plan):
        pending = {alias: await runner.apending() for alias, runner in every.by_alias.items()}
    for alias, upto in every.plan_migrate_calls(pending, target):
        done = await every.by_alias[alias].amigrate(upto, phase=phase, fake=fake, plan=plan)
        runs += _set_run_database(alias, done)
    _report_runs(runs, "expand" if phase == "expand" else "apply", every.say, fake=fake, plan=plan)
    if target is not None and not runs:
        for alias, runner in every.by_alias.items():
            applied = await runner.aapplied()
            _suggest_rollback(runner, applied, target, every.say.make_line_writer(alias), fake=fake)
    return runs


def resolve(
    folder: Folder,
    name: str,
    choice: Resolution,
    *,
    database: str | None = None,
    plan: bool = False,
    allow_destructive: bool = False,
    say: Say = ignore_line,
    limits: Limits | None = None,
    wait: float = WAIT,
) -> list[FileRun]:
    """End the state of a half done file; arguments, result and errors as of `Runner.resolve`.

    Without `database`, on each where the file is half done.
    """
    every = _Runners(folder, database, say, limits, wait, "stop")
    chosen = list(every.by_alias)
    if every.several:
        found = every.history.find(name).name
        # also one that is half rolled back, which the records still have
        half = [
            alias
            for alias, runner in every.by_alias.items()
            if (entry := runner.applied().progress.get(found)) and not entry.is_expanded
        ]
        # none is half done: the first one raises the error that says so
        chosen = half or chosen[:1]
    runs: list[FileRun] = []
    for alias in chosen:
        runner = every.by_alias[alias]
        done = runner.resolve(name, choice, plan=plan, allow_destructive=allow_destructive)
        runs += _set_run_database(alias, done)
    _report_runs(runs, "resolve", every.say, fake=False, plan=plan)
    return runs


def rollback(
    folder: Folder = "migrations",
    target: str | None = None,
    *,
    database: str | None = None,
    steps: int = 1,
    fake: bool = False,
    plan: bool = False,
    allow_destructive: bool = False,
    fill: Iterable[str] = (),
    say: Say = ignore_line,
    limits: Limits | None = None,
    wait: float = WAIT,
    interrupted: Interrupted = "stop",
) -> list[FileRun]:
    """Take applied migrations back; arguments, result and errors as of `Runner.rollback`.

    Without `database`, the last files of all databases, the last database first.
    """
    every = _Runners(folder, database, say, limits, wait, interrupted)

    def roll_back_turn(turn: _RollbackCall, *, plan: bool) -> list[FileRun]:
        done = every.by_alias[turn.database].rollback(
            turn.target,
            steps=turn.steps,
            fake=fake,
            plan=plan,
            allow_destructive=allow_destructive,
            fill=turn.fills,
        )
        return _set_run_database(turn.database, done)

    turns = every.plan_rollback_calls(target, steps, list(fill), fake=fake)
    at_once = _merge_rollback_calls_by_database(turns)
    runs: list[FileRun] = []
    if len(at_once) > 1 or plan:  # what cannot be reversed is refused before the first turn
        runs = [run for turn in at_once for run in roll_back_turn(turn, plan=True)]
    if not plan:
        runs = [run for turn in turns for run in roll_back_turn(turn, plan=False)]
    _report_runs(runs, "roll back", every.say, fake=fake, plan=plan)
    return runs


def sqlmigrate(
    folder: Folder,
    name: str,
    *,
    dialect: Literal["sqlite", "postgres"] | None = None,
    backwards: bool = False,
    database: str | None = None,
) -> str:
    """Return the SQL of one migration; no database is asked.

    Args:
        folder: The folder of the files.
        name: The file, or the beginning of its name.
        dialect: "sqlite" or "postgres"; without it, that of the database.
        backwards: The SQL that takes it back.
        database: The alias of the database; without it, each that the files live on in turn.

    Raises:
        HistoryError: There is no such file.
        RunError: An operation cannot be reversed.
        PlanError: The database has no such change.
    """
    named = {"sqlite": SQLite, "postgres": Postgres}
    history = load_folder(folder)
    every = select_databases(history, database)
    texts: list[str] = []
    for alias in every:
        chosen = database_for(alias).dialect if dialect is None else named[dialect]()
        target = DatabaseTarget(chosen)
        run = plan_single_file(
            restrict_to_database(history, alias), name, target, backwards=backwards
        )
        text = render_script([run], target)
        texts.append(_add_database_heading(alias, text, has_several_databases=len(every) > 1))
    return "\n".join(texts)


def render_planned_sql(runs: list[FileRun]) -> str:
    """Return the SQL of the runs that `migrate` or `rollback` returned with `plan`."""
    every = list(dict.fromkeys(run.database for run in runs))
    texts: list[str] = []
    for alias in every:
        own = [run for run in runs if run.database == alias]
        text = render_script(own, DatabaseTarget(database_for(alias).dialect))
        texts.append(_add_database_heading(alias, text, has_several_databases=len(every) > 1))
    return "\n".join(texts)


def _add_database_heading(alias: str, text: str, *, has_several_databases: bool) -> str:
    return f"-- database {alias}\n{text}" if has_several_databases else text


def format_event(event: Event) -> str:
    """Return the line for an event; empty where it has none."""
    match event.kind:
        case "file":
            return f"{event.text}: {event.steps} {_choose_step_noun(event.steps)}"
        case "look":
            return f"  {event.text}"
        case "step":
            return f"  {event.step}/{event.steps} {event.text}"
        case "rows":
            whole = f" of {event.total}" if event.total else ""
            return f"      {event.rows}{whole} rows"
        case "retry" | "wait":
            return event.text
        case "done":
            return ""


def _choose_step_noun(number: int) -> str:
    return "step" if number == 1 else "steps"


def _describe_blocking(unit: Unit, sizes: Mapping[str, int]) -> str:
    """What the server does with every row while others wait, and the size of the table."""
    if not (isinstance(unit, SqlUnit) and unit.step.blocks):
        return ""
    size = _format_byte_size(sizes.get(unit.step.table, 0))
    return f" ({unit.step.blocks} of {unit.step.table}, {size}, while reads and writes wait)"


def _format_byte_size(count: int) -> str:
    for unit, size in (("GB", 2**30), ("MB", 2**20)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count // 1024} kB"


@dataclass(frozen=True, slots=True)
class _RollbackCall:
    """One call of `Runner.rollback`."""

    database: str
    target: str | None
    steps: int
    fills: Sequence[str]


class _Runners:
    """The runners of a command, one for each of its databases, and the lines that it says.

    Raises `ConfigurationError` if one of several databases is not configured, or two are the same.
    """

    def __init__(
        self,
        folder: Folder,
        database: str | None,
        say: Say,
        limits: Limits | None,
        wait: float,
        interrupted: Interrupted,
    ) -> None:
        self.history = _load_history(folder)
        names = select_databases(self.history, database)
        self.several = len(names) > 1
        self.say = DatabaseHeadedOutput(say, several=self.several)
        if self.several:
            _require_distinct_addresses(names)
        self.by_alias = {
            alias: Runner(
                alias,
                self.history,
                listener=_make_listener(self.say.make_line_writer(alias)),
                limits=limits,
                wait=wait,
                interrupted=interrupted,
            )
            for alias in names
        }

    def build_empty_pending(self) -> dict[str, list[str]]:
        """Return the aliases without any file, where all runs of each are one turn."""
        return {alias: [] for alias in self.by_alias}

    def plan_migrate_calls(
        self, pending: Mapping[str, list[str]], target: str | None
    ) -> list[tuple[str, str | None]]:
        """Return the turns of `migrate`; a single database has one."""
        if not self.several:
            return [(alias, target) for alias in self.by_alias]
        return plan_migrate_calls(self.history, pending, target)

    def plan_rollback_calls(
        self, target: str | None, steps: int, fills: Sequence[str], *, fake: bool
    ) -> list[_RollbackCall]:
        """Return the turns of `rollback`; a single database has one."""
        whole = [_RollbackCall(alias, target, steps, fills) for alias in self.by_alias]
        # the runner itself refuses a wrong number
        if not self.several or fake or steps < 1:
            return whole[::-1]
        found = {
            alias: collect_recorded_files(_attach_records(runner, runner.applied()))
            for alias, runner in self.by_alias.items()
        }
        made: list[_RollbackCall] = []
        for alias, names in plan_rollback_calls(self.history, found, steps=steps, to=target):
            own = select_fill_flags(self.by_alias[alias].history, names, fills)
            made.append(_RollbackCall(alias, None, len(names), own))
        if not made:
            # nothing to take back: the runner raises, or says so
            return whole[:1]
        # a flag that fits no file is refused by the first runner, as of a single database
        rest = [flag for flag in fills if not any(flag in turn.fills for turn in made)]
        return [replace(made[0], fills=[*made[0].fills, *rest]), *made[1:]]


def _require_distinct_addresses(aliases: Iterable[str]) -> None:
    """Raise `ConfigurationError` where two aliases have one address, and so one record of files:
    what the first had run would count as done for the second.
    """
    known: dict[str, str] = {}
    for alias in aliases:
        address = database_for(alias).database_address
        other = known.setdefault(address, alias) if address else alias
        if other != alias:
            raise ConfigurationError(
                f"The databases {other!r} and {alias!r} have the same address, where one would "
                "take the migrations of the other for its own; give each a file, a database or a "
                "schema of its own"
            )


def _merge_rollback_calls_by_database(turns: Iterable[_RollbackCall]) -> list[_RollbackCall]:
    """The turns as one for each database, as far as nothing is changed between them."""
    made: dict[str, _RollbackCall] = {}
    for turn in turns:
        known = made.get(turn.database)
        if known is not None:
            steps, fills = known.steps + turn.steps, [*known.fills, *turn.fills]
            turn = replace(known, steps=steps, fills=list(dict.fromkeys(fills)))
        made[turn.database] = turn
    return list(made.values())


def _make_listener(say: Say) -> Listener:
    def report_event(event: Event) -> None:
        line = format_event(event)
        if line:
            say(line)

    return report_event


def _set_run_database(alias: str, runs: Iterable[FileRun]) -> list[FileRun]:
    return [replace(run, database=alias) for run in runs]


def _suggest_rollback(
    runner: Runner, applied: Applied, target: str, say: Say, *, fake: bool
) -> None:
    """Name the command that goes back to a target behind which files are applied."""
    after = list_applied_after(_attach_records(runner, applied), target)
    if after:
        flag = " --fake" if fake else ""
        name = runner.history.find(target).name
        say(
            f"{', '.join(after)} {'is' if len(after) == 1 else 'are'} applied after it; to go back "
            f"run `treefold rollback {name}{flag}`"
        )


def _attach_records(runner: Runner, applied: Applied) -> RecordedHistory:
    return RecordedHistory.on_database(runner.history, applied, runner.database)


def _load_history(folder: Folder) -> History:
    """Load a folder; one that is missing has no migrations yet if it has the usual name.

    Raises:
        FileError: There is no folder of another name, which may be meant as a target.
    """
    path = Path(folder)
    if not path.exists() and path.name != "migrations":
        raise FileError(
            f"There is no folder {str(folder)!r}; give the folder of the migrations first, then the"
            f" target: 'migrations', {path.name!r}"
        )
    return load_folder(folder)


def _report_runs(
    runs: list[FileRun], verb: str, say: DatabaseHeadedOutput, *, fake: bool, plan: bool
) -> None:
    if plan:
        for run in runs:
            _report_plan(run, say.make_line_writer(run.database))
    elif fake:
        for run in runs:
            done = "written" if run.direction == "forwards" else "removed"
            say.make_line_writer(run.database)(f"{run.name}: record {done}")
    elif verb == "expand" and runs:
        say("Expanded; run `migrate` once the release before is gone")
    for run in runs:
        for part in run.kept:
            say.make_line_writer(run.database)(f"{run.name}: {part}")
    if not runs:
        say(f"Nothing to {verb}")


def _report_plan(run: FileRun, say: Say) -> None:
    places = [place for place in run.shown if place < len(run.units)]
    say(f"{run.name}: {len(places)} {_choose_step_noun(len(places))}")
    for number, place in enumerate(places, 1):
        unit = run.units[place]
        for guard in unit.guards:
            if guard.table:
                say(f"      {guard.summary}, without a lock")
        apart = "" if unit.transactional else " (committed by itself)"
        blocks = _describe_blocking(unit, run.sizes)
        say(f"  {number}/{len(run.shown)} {unit.summary}{apart}{blocks}")
