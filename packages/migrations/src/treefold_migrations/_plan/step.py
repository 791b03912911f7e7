"""Step: one SQL statement of a plan, with the conditions under which it may run.

A step is data for the runner, `--plan`, lint and the journal. Nothing here makes or runs one.
"""

from __future__ import annotations

from dataclasses import dataclass

from treefold_migrations._inspect.sqlite_losses import KnownTable

BLOCKING = frozenset(("ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE ROW EXCLUSIVE", "SHARE"))
"""Lock levels under which others cannot write rows; under the first, not even read them."""


@dataclass(frozen=True, slots=True)
class Step:
    """One complete SQL statement.

    Consecutive transactional steps share a transaction.

    Attributes:
        sql: the statement; empty for a step that only verifies.
        transactional: False for a statement that is committed by itself, because it cannot run in
            a transaction (CREATE INDEX CONCURRENTLY), or must not keep the locks of others while
            it reads a table (VALIDATE). It may run again after a crash.
        table: the table that it changes.
        summary: what it does, for plans, progress and the journal.
        before_retry: the statement that removes the remains of an interrupted run.
        undo: the statement that removes what the step made, if that is there, when the operation
            is taken back before its end.
        verify: a query that must return no row after the step.
        problem: the error if it returns one, with `{0}`, `{1}` for the columns of its first row.
        generates: True if `sql` is a query, and the first column of each row a statement to run.
        repeat: True for a statement that changes a batch of rows, and runs until it changes none.
        hidden: True for a part of another step, which plans and progress leave out.
        foreign_keys_off: SQLite: switch its foreign keys off before the transaction begins.
        known: SQLite: the columns and other parts of the table that the plan knows; the step fails
            before its statement if the live table has more.
        lock: PostgreSQL: the lock level on `table`; empty where it is irrelevant.
        reads: PostgreSQL: what a guard reads, as `table.column`, `table.` for the table and
            `table.#` for its indexes and constraints. A guard changes nothing, and runs before the
            locks of its transaction are taken.
        catalog: PostgreSQL: True for a guard over the catalog, whose answer no change of rows
            alters.
        explain: PostgreSQL: the guard that words the error of this step. A row that was written
            after the guard is refused by the statement of the step.
        blocks: PostgreSQL: what the server does with every row while `lock` is held, such as
            "writes every row again"; empty for brief steps.
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
    known: KnownTable | None = None
    hidden: bool = False
    reads: frozenset[str] = frozenset()
    catalog: bool = False
    explain: Step | None = None
    blocks: str = ""

    @property
    def blocks_writers(self) -> bool:
        """True where others cannot write rows, or not even read them, during the step."""
        return self.lock.upper() in BLOCKING
