"""The commands that change a database, or show how: migrate, rollback, sqlmigrate.

They report to `say`, one line at a time; nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from treefold_migrations._base.errors import FileError
from treefold_migrations._commands.files import Folder, Say, quiet
from treefold_migrations._files.history import History
from treefold_migrations._files.loading import load_folder
from treefold_migrations._run import schedule
from treefold_migrations._run.events import Event
from treefold_migrations._run.executor import Interrupted
from treefold_migrations._run.lock import WAIT
from treefold_migrations._run.planning import Target
from treefold_migrations._run.records import Applied
from treefold_migrations._run.runner import Resolution, Runner
from treefold_migrations._run.schedule import Phase
from treefold_migrations._run.script import script
from treefold_migrations._run.timeouts import Limits
from treefold_migrations._run.units import FileRun, SqlUnit, Unit
from treefold_orm.schema import Postgres, SQLite, database_for


def migrate(
    folder: Folder = "migrations",
    target: str | None = None,
    *,
    database: str = "default",
    phase: Phase | None = None,
    fake: bool = False,
    plan: bool = False,
    say: Say = quiet,
    limits: Limits | None = None,
    wait: float = WAIT,
    interrupted: Interrupted = "stop",
) -> list[FileRun]:
    """Apply the migrations of a folder; arguments, result and errors as of `Runner.migrate`.

    Args:
        folder: The folder of the files.
        target: The last file to apply.
        database: The alias of the database.
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
    runner = _runner(folder, database, say, limits, wait, interrupted)
    runs = runner.migrate(target, phase=phase, fake=fake, plan=plan)
    _conclude(runs, "expand" if phase == "expand" else "apply", say, fake=fake, plan=plan)
    if target is not None and not runs:
        _point_back(runner, runner.applied(), target, say, fake=fake)
    return runs


async def amigrate(
    folder: Folder = "migrations",
    target: str | None = None,
    *,
    database: str = "default",
    phase: Phase | None = None,
    fake: bool = False,
    plan: bool = False,
    say: Say = quiet,
    limits: Limits | None = None,
    wait: float = WAIT,
    interrupted: Interrupted = "stop",
) -> list[FileRun]:
    """`migrate` for async code."""
    runner = _runner(folder, database, say, limits, wait, interrupted)
    runs = await runner.amigrate(target, phase=phase, fake=fake, plan=plan)
    _conclude(runs, "expand" if phase == "expand" else "apply", say, fake=fake, plan=plan)
    if target is not None and not runs:
        _point_back(runner, await runner.aapplied(), target, say, fake=fake)
    return runs


def resolve(
    folder: Folder,
    name: str,
    choice: Resolution,
    *,
    database: str = "default",
    plan: bool = False,
    allow_destructive: bool = False,
    say: Say = quiet,
    limits: Limits | None = None,
    wait: float = WAIT,
) -> list[FileRun]:
    """End the state of a half done file; arguments, result and errors as of `Runner.resolve`."""
    runner = _runner(folder, database, say, limits, wait, "stop")
    runs = runner.resolve(name, choice, plan=plan, allow_destructive=allow_destructive)
    _conclude(runs, "resolve", say, fake=False, plan=plan)
    return runs


def rollback(
    folder: Folder = "migrations",
    target: str | None = None,
    *,
    database: str = "default",
    steps: int = 1,
    fake: bool = False,
    plan: bool = False,
    allow_destructive: bool = False,
    fill: Iterable[str] = (),
    say: Say = quiet,
    limits: Limits | None = None,
    wait: float = WAIT,
    interrupted: Interrupted = "stop",
) -> list[FileRun]:
    """Take applied migrations back; arguments, result and errors as of `Runner.rollback`."""
    runner = _runner(folder, database, say, limits, wait, interrupted)
    runs = runner.rollback(
        target,
        steps=steps,
        fake=fake,
        plan=plan,
        allow_destructive=allow_destructive,
        fill=fill,
    )
    _conclude(runs, "roll back", say, fake=fake, plan=plan)
    return runs


def sqlmigrate(
    folder: Folder,
    name: str,
    *,
    dialect: Literal["sqlite", "postgres"] | None = None,
    backwards: bool = False,
) -> str:
    """Return the SQL of one migration; no database is asked.

    Args:
        folder: The folder of the files.
        name: The file, or the beginning of its name.
        dialect: "sqlite" or "postgres"; without it, that of the default database.
        backwards: The SQL that takes it back.

    Raises:
        HistoryError: There is no such file.
        RunError: An operation cannot be reversed.
        PlanError: The database has no such change.
    """
    named = {"sqlite": SQLite, "postgres": Postgres}
    chosen = database_for("default").dialect if dialect is None else named[dialect]()
    target = Target(chosen)
    history = load_folder(folder)
    return script([schedule.alone(history, name, target, backwards=backwards)], target)


def script_of(runs: list[FileRun], *, database: str = "default") -> str:
    """Return the SQL of the runs that `migrate` or `rollback` returned with `plan`."""
    return script(runs, Target(database_for(database).dialect))


def line_of(event: Event) -> str:
    """Return the line for an event; empty where it has none."""
    match event.kind:
        case "file":
            return f"{event.text}: {event.steps} {_steps(event.steps)}"
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


def _steps(number: int) -> str:
    return "step" if number == 1 else "steps"


def _blocked(unit: Unit, sizes: Mapping[str, int]) -> str:
    """What the server does with every row while others wait, and the size of the table."""
    if not (isinstance(unit, SqlUnit) and unit.step.blocks):
        return ""
    size = _readable_size(sizes.get(unit.step.table, 0))
    return f" ({unit.step.blocks} of {unit.step.table}, {size}, while reads and writes wait)"


def _readable_size(count: int) -> str:
    for unit, size in (("GB", 2**30), ("MB", 2**20)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count // 1024} kB"


def _runner(
    folder: Folder,
    database: str,
    say: Say,
    limits: Limits | None,
    wait: float,
    interrupted: Interrupted,
) -> Runner:
    def listen(event: Event) -> None:
        line = line_of(event)
        if line:
            say(line)

    return Runner(
        database,
        _history(folder),
        listener=listen,
        limits=limits,
        wait=wait,
        interrupted=interrupted,
    )


def _point_back(runner: Runner, applied: Applied, target: str, say: Say, *, fake: bool) -> None:
    """Name the command that goes back to a target behind which files are applied."""
    after = schedule.behind(runner.history, applied, target)
    if after:
        flag = " --fake" if fake else ""
        name = runner.history.find(target).name
        say(
            f"{', '.join(after)} {'is' if len(after) == 1 else 'are'} applied after it; to go back "
            f"run `treefold rollback {name}{flag}`"
        )


def _history(folder: Folder) -> History:
    """Load a folder; one that is missing has no migrations yet if it has the usual name.

    Raises:
        FileError: There is no folder of another name, which may be meant as a target.
    """
    path = Path(folder)
    if not path.exists() and path.name != "migrations":
        raise FileError(
            f"There is no folder {str(folder)!r}; the folder of the migrations comes first, then"
            f" the target: migrate('migrations', {path.name!r})"
        )
    return load_folder(folder)


def _conclude(runs: list[FileRun], verb: str, say: Say, *, fake: bool, plan: bool) -> None:
    if plan:
        for run in runs:
            places = [place for place in run.shown if place < len(run.units)]
            say(f"{run.name}: {len(places)} {_steps(len(places))}")
            for number, place in enumerate(places, 1):
                unit = run.units[place]
                for guard in unit.guards:
                    if guard.table:
                        say(f"      {guard.summary}, without a lock")
                apart = "" if unit.transactional else " (committed by itself)"
                blocks = _blocked(unit, run.sizes)
                say(f"  {number}/{len(run.shown)} {unit.summary}{apart}{blocks}")
    elif fake:
        for run in runs:
            say(f"{run.name}: record {'written' if run.direction == 'forwards' else 'removed'}")
    elif verb == "expand" and runs:
        say("Expanded; run `migrate` once the release before is gone")
    for run in runs:
        for part in run.kept:
            say(f"{run.name}: {part}")
    if not runs:
        say(f"Nothing to {verb}")
