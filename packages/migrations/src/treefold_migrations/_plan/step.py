"""Step: one SQL statement of a plan, with the conditions under which it may run.

A step is data for the runner, `--plan`, lint and the journal. Nothing here makes or runs one.
"""

from __future__ import annotations

from dataclasses import dataclass

from treefold_migrations._inspect.sqlite_losses import Known

BLOCKING = frozenset({"ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE ROW EXCLUSIVE", "SHARE"})
"""Locks that rows cannot be written, or not even read, beside."""


@dataclass(frozen=True, slots=True)
class Step:
    """One complete SQL statement.

    `transactional` is False for a statement that is committed by itself: one that cannot run inside
    a transaction (CREATE INDEX CONCURRENTLY), or one that must not keep the locks of others while
    it reads a table (VALIDATE). Such a statement may run again after a crash. Consecutive
    transactional steps share a transaction. `lock` is PostgreSQL's lock level on `table`, empty
    where it is irrelevant. `summary` describes the step for plans, progress and the journal.
    `before_retry` is a statement that removes the remains of an interrupted run. `verify` is a
    query that must return no row after the step; `problem` is the error if it does, with `{0}`,
    `{1}` for the columns of its first row. `sql` is empty for a step that only verifies.

    `undo` takes away a part that the step made, where it is there, when the operation is taken back
    before its end.

    `generates`: `sql` is a query, and each row's first column is a statement to run. `repeat`: the
    statement changes a batch of rows, and runs again until it changes none. `foreign_keys_off`:
    SQLite must not enforce foreign keys, which is switched before the transaction begins. `known`:
    the step fails before its statement where the live table of SQLite has more than that. `hidden`:
    plans and progress leave the step out, which is a part of another one.

    PostgreSQL: a step with `reads` is a guard, which only reads rows; it runs before the locks of
    its transaction are taken. `reads` holds the columns as `table.column`, each table as `table.`,
    and its indexes and constraints as `table.#`. A row written after the guard is refused by the
    statement of a later step, whose `explain` is the guard for its error. `blocks` is what the
    server does with every row while `lock` is held, such as "writes every row again", and empty for
    steps that are brief.
    """

    sql: str
    transactional: bool = True
    lock: str = ""
    table: str = ""
    summary: str = ""
    before_retry: str = ""
    undo: str = ""
    verify: str = ""
    problem: str = ""
    generates: bool = False
    repeat: bool = False
    foreign_keys_off: bool = False
    known: Known | None = None
    hidden: bool = False
    reads: frozenset[str] = frozenset()
    explain: Step | None = None
    blocks: str = ""

    @property
    def blocks_writers(self) -> bool:
        """True where others cannot write rows, or not even read them, beside the step."""
        return self.lock.upper() in BLOCKING
