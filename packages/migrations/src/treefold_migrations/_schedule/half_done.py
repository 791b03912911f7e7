"""Files that are half done: their names in messages, and what may be corrected in them.

`half_done_runs` makes the runs that end them.

| State of the file | Ways out |
|---|---|
| a step failed, steps before it are committed | correct it, and `migrate --resolve NAME again` |
| batches of a step are committed, the next one failed | the same; it goes on with that batch |
| a step was interrupted, its effect is not known | `again`, or `skip` if it took effect |
| a step was done by hand | `migrate --resolve NAME skip` |
| any of these, and the file is to go | `migrate --resolve NAME abandon` |

Steps that ended are compared one by one; the step that failed and those behind it may be changed.
"""

from __future__ import annotations

from bisect import bisect_left

from treefold_migrations._base.errors import RunError
from treefold_migrations._records.recorded_history import RecordedHistory
from treefold_migrations._records.records import Applied, Progress
from treefold_migrations._schedule.units import FileRun

# -- words ----------------------------------------------------------------------------------------


def list_half_done(applied: Applied) -> list[Progress]:
    """Return the journal rows of files that have no record, are not expanded, and are not rolled
    back from a record.
    """
    entries = applied.progress.values()
    return [e for e in entries if e.undo >= 0 or (e.direction == "forwards" and not e.is_expanded)]


def describe_progress(entry: Progress) -> str:
    """Return where a file stands: "half applied (1 of 3 steps)", or "expanded"."""
    if entry.is_expanded:
        return "expanded"
    way = "expanded" if entry.phase == "expand" else "applied"
    way = way if entry.direction == "forwards" else "rolled back"
    done, steps = _count_complete_steps(entry), len(entry.shown) or entry.steps
    batches = f", and {describe_batches(entry)} of step {done + 1}" if entry.batches else ""
    return f"half {way} ({done} of {steps} steps{batches})"


def describe_committed(entry: Progress, *, commits_by_itself: bool) -> str:
    """Return what is committed of a file, empty for nothing; `commits_by_itself` is True where the
    step that has begun commits by itself.
    """
    parts: list[str] = []
    done = _count_complete_steps(entry)
    if done:
        steps = "step 1 is" if done == 1 else f"steps 1 to {done} are"
        parts.append(f"{steps} committed")
    if entry.batches:
        parts.append(f"of step {done + 1}, {describe_batches(entry)} are committed")
    elif entry.started and commits_by_itself:
        parts.append(f"what step {done + 1} wrote outside of a transaction is committed")
    elif entry.started:
        parts.append(f"step {done + 1} has begun")
    return ", and ".join(parts)


def _count_complete_steps(entry: Progress) -> int:
    """The number of complete steps as people read it, by which a rebuild is one."""
    return bisect_left(entry.shown, entry.done) if entry.shown else entry.done


def describe_batches(entry: Progress) -> str:
    """Return what is committed of a step in batches: "2 batches with 1000 rows"."""
    rows = "row" if entry.rows == 1 else "rows"
    batches = "batch" if entry.batches == 1 else "batches"
    return f"{entry.batches} {batches} with {entry.rows} {rows}"


def describe_resolving_commands(entry: Progress) -> str:
    """Return the commands that end the state of a file."""
    if entry.is_expanded:
        return (
            "`migrate` applies the rest once the release before is gone, `rollback` takes it back"
        )
    command = f"`migrate --resolve {entry.name}"
    if entry.direction == "backwards":
        return (
            f"Correct it and run {command} again`, or {command} skip` if the step is done by hand"
        )
    return (
        f"Correct it and run {command} again`, {command} skip` if the step is done by hand, or "
        f"{command} abandon` to take the file back"
    )


# -- comparison -----------------------------------------------------------------------------------


def require_unchanged_completed_steps(run: FileRun, entry: Progress) -> None:
    """Refuse a file whose complete steps were changed.

    Raises:
        RunError: the number of the step.
    """
    place = _find_changed_step(run, entry)
    if place is not None:
        raise RunError(
            f"Migration {run.name!r} is {describe_progress(entry)}, and its step "
            f"{run.find_displayed_step_number(place)}, "
            "which is complete, was changed since, or is planned in another way by this version: "
            "restore that part of the file; the steps behind the complete ones may be changed. To "
            f"change it, restore the file and run `migrate --resolve {run.name} abandon` first"
        )


def _find_changed_step(run: FileRun, entry: Progress) -> int | None:
    if len(entry.ended) < entry.done:  # begun by a version that kept no digests
        return None if entry.plan == run.plan else 0
    for place, digest in enumerate(entry.ended):
        same = place < run.unit_count and run.digests[place] == digest
        # a step done by hand never ran, so that its text does not matter
        if not same and place not in entry.skipped:
            return place
    return None


def require_half_done_entry(recorded: RecordedHistory, name_prefix: str) -> Progress:
    """Return the journal row of a half done file; raises `RunError` for any other file."""
    applied = recorded.applied
    found = [row for name, row in applied.progress.items() if name.startswith(name_prefix)]
    if len(found) == 1 and not found[0].is_expanded:
        return found[0]
    if found and found[0].is_expanded:
        raise RunError(
            f"Migration {found[0].name!r} is expanded, and not half done:"
            f" {describe_resolving_commands(found[0])}"
        )
    name = recorded.history.find(name_prefix).name
    state = "applied" if name in applied.records else "not applied"
    half = ", ".join(repr(e.name) for e in list_half_done(applied)) or "no file"
    raise RunError(
        f"Migration {name!r} is {state}, and not half done; half done is {half}. Correct the file "
        "and run `migrate`"
    )
