"""Remains of a step that stands alone: an index whose build ended before its end.

    CREATE INDEX CONCURRENTLY "by_rank" ...    failed: "by_rank" exists already, made by hand
    CREATE UNIQUE INDEX CONCURRENTLY "one" ... failed: duplicates; an invalid index is left

Only the second one has remains. A run that was killed cannot tell whether its statement was
complete, so that there the index goes in any case, and is built again.
"""

from __future__ import annotations

from dataclasses import replace

from treefold_migrations._plan.step import Step
from treefold_orm.schema import Postgres, literal

_DROP = "DROP INDEX CONCURRENTLY IF EXISTS "


def build_remains_removal_step(step: Step, *, was_refused: bool) -> Step | None:
    """Return the step that removes the remains of a step, or None for one that leaves none.

    Args:
        step: the step.
        was_refused: True where the server refused it, False for a run that was cut off.
    """
    if not step.before_retry:
        return None
    summary = f"remove the remains of: {step.summary}"
    made = Step(step.before_retry, transactional=False, summary=summary)
    if not was_refused or not step.before_retry.startswith(_DROP):
        return made
    name = literal(step.before_retry.removeprefix(_DROP), Postgres())
    sql = (
        f"SELECT {literal(step.before_retry, Postgres())} FROM pg_index "  # noqa: S608 - literals
        f"WHERE indexrelid = to_regclass({name}) AND NOT indisvalid"
    )
    return replace(made, sql=sql, generates=True)
