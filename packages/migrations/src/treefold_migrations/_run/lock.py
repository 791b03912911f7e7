"""The lock against a second runner, and how others wait for it.

PostgreSQL: an advisory lock on the connection that runs the steps, so that it lasts exactly as long
as a statement may run on the server, even after the client was killed. Waiters ask again and again
instead of queueing: a queued statement would hold a snapshot that CREATE INDEX CONCURRENTLY waits
for. Behind a pooler, and on SQLite: a row that its owner renews; one whose owner is dead, or has
not renewed it for `STALE` seconds, is taken over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from treefold_migrations._base.errors import LockTimeout, RunError
from treefold_migrations._records.effects import (
    Atomic,
    Flow,
    Pause,
    fetch_rows,
    run_script,
    run_statement,
)
from treefold_migrations._records.records import LOCK, Records
from treefold_migrations._run.process import LockOwner
from treefold_orm import DatabaseLocked
from treefold_orm.schema import HeldConnection, Operation

WAIT = 60.0
"""Seconds that a run waits for another one: the instances of a release start at one time."""
STALE = 30.0
"""Seconds without a sign of life after which the owner of a row counts as dead: six missed ones."""
BEAT = 5.0
"""Seconds between two signs of life."""
_SHORTEST, _LONGEST = 0.05, 0.5
_KEY = 0x6D_69_67_72  # a number of this package; the schema is the second half of the key


class Lock(Protocol):
    """The contract between runner and lock."""

    def try_acquire(self) -> Flow[bool]:
        """Take it, or return False."""
        ...

    def read_holder(self) -> Flow[str]:
        """Return the holder, as text; empty where that is not known."""
        ...

    def ensure_held(self) -> Flow[None]:
        """Make sure inside a transaction that it is still held until the transaction ends."""
        ...

    def release(self) -> Flow[None]:
        """Release the lock."""
        ...


def make_lock(held: HeldConnection, records: Records, owner: LockOwner) -> Lock:
    """Return the kind of lock that a database has."""
    if held.dialect.name == "postgres" and not held.pooled:
        return AdvisoryLock(records, owner)
    return RowLock(records, owner, postgres=held.dialect.name == "postgres")


def acquire_lock(lock: Lock, *, wait: float, notice: Callable[[str], None]) -> Flow[None]:
    """Take a lock, waiting for it at most `wait` seconds.

    Args:
        lock: the lock.
        wait: seconds.
        notice: called with the holder, whenever that changes.

    Raises:
        LockTimeout: it stayed held.
    """
    deadline = time.monotonic() + wait
    known, pause = "", _SHORTEST
    while not (yield from lock.try_acquire()):
        # the lock may be free between the two statements, and then has no holder
        holder = (yield from lock.read_holder()) or known
        if holder != known:
            notice(f"Waiting for another migration run: {holder}")
            known = holder
        # a pause that ends behind the deadline is not waited for
        if time.monotonic() + pause > deadline:
            raise LockTimeout(
                f"Another run held the lock of migrations for {wait:g} s: "
                f"{known or 'its owner is not known'}; wait for its end, or stop it and run the "
                "command again"
            )
        yield Pause(pause)
        pause = min(pause * 1.5, _LONGEST)


class AdvisoryLock:
    """A lock of the session (PostgreSQL), one for each schema that tables are created in."""

    def __init__(self, records: Records, owner: LockOwner) -> None:
        self._records = records
        self._owner = owner

    def try_acquire(self) -> Flow[bool]:
        found = yield from fetch_rows(_TRY, _KEY)
        if not found[0][0]:
            return False
        # waiters read the owner from it
        # PostgreSQL keeps 63 bytes of it
        name = f"treefold migrate: process {self._owner.pid} on {self._owner.host}"
        yield from fetch_rows("SELECT set_config('application_name', $1, false)", name[:63])
        yield from self._records.create_tables()
        return True

    def read_holder(self) -> Flow[str]:
        found = yield from fetch_rows(_HOLDER, _KEY)
        if not found:
            return ""
        name, pid, since = found[0]
        who = name.removeprefix("treefold migrate: ") if name.startswith("treefold migr") else ""
        return f"{who or 'a process'}, since {since} UTC (server process {pid})"

    def ensure_held(self) -> Flow[None]:
        # the lock belongs to the session that runs the statements: without it none of them arrives
        yield from ()

    def release(self) -> Flow[None]:
        yield from fetch_rows(_UNLOCK, _KEY)


_TRY = "SELECT pg_try_advisory_lock($1, hashtext(coalesce(current_schema(), '')))"
_UNLOCK = "SELECT pg_advisory_unlock($1, hashtext(coalesce(current_schema(), '')))"
_TAKE_FOR_TRANSACTION = "SELECT pg_advisory_xact_lock($1, hashtext(coalesce(current_schema(), '')))"
_HOLDER = (
    "SELECT coalesce(a.application_name, ''), l.pid, "
    "to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') "
    "FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid "
    # the columns are unsigned, hashtext() is signed; objsubid is 2 for a key of two integers
    "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 "
    "AND l.classid = ($1::bigint)::oid AND l.objid = "
    "(hashtext(coalesce(current_schema(), ''))::bigint & 4294967295)::oid "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class RowLock:
    """A row of the journal (SQLite; PostgreSQL behind a pooler)."""

    def __init__(self, records: Records, owner: LockOwner, *, postgres: bool) -> None:
        self._records = records
        self._mine = owner.to_json()
        self._postgres = postgres

    def try_acquire(self) -> Flow[bool]:
        if (yield from self._records.has_tables()) and (yield from self._is_held_by_other()):
            return False  # found without a write
        try:
            # another claim, or a transaction of the owner, has the row or the database locked
            return (yield Atomic(self._claim_row()))
        except DatabaseLocked:
            return False

    def _claim_row(self) -> Flow[bool]:
        if self._postgres:  # two that create the tables at once
            yield from fetch_rows(_TAKE_FOR_TRANSACTION, _KEY)
        yield from self._records.create_tables()
        # asked again under the lock of the transaction: the row may have come since the first look
        if (yield from self._is_held_by_other()):
            return False
        if self._postgres:
            # the owner renews the row in long transactions, behind which this write would wait
            yield from run_script("SET LOCAL lock_timeout = '1s'")
        yield from self._records.write_journal_row(LOCK, self._mine)
        return True

    def _is_held_by_other(self) -> Flow[bool]:
        found = yield from self._read_lock_row()
        if found is None or found[0] == self._mine:
            return False
        # `at` and now are of the clock of the database, which all runs share
        return found[1] < STALE and not LockOwner.from_json(found[0]).is_dead

    def _read_lock_row(self) -> Flow[tuple[str, float] | None]:
        sql = "SELECT state, @now - at FROM treefold_migrations_journal WHERE name = $1"
        found = yield from fetch_rows(self._records.adapt_sql_to_dialect(sql), LOCK)
        return (found[0][0], found[0][1]) if found else None

    def read_holder(self) -> Flow[str]:
        if not (yield from self._records.has_tables()):
            return ""
        found = yield from self._read_lock_row()
        return "" if found is None else str(LockOwner.from_json(found[0]))

    def ensure_held(self) -> Flow[None]:
        if not (yield from self.renew_lease()):
            raise RunError(
                "The lock of migrations was taken by another run, since this one did not renew it "
                f"for {STALE:g} s: run the command again"
            )

    def renew_lease(self) -> Flow[bool]:
        """Record a sign of life of the owner; return False if the lock is lost."""
        renewed = yield from self._execute_on_own_row(
            "UPDATE treefold_migrations_journal SET at = @now"
        )
        # a row that was taken over has another `state`
        return renewed == 1

    def _execute_on_own_row(self, sql: str) -> Operation[int]:
        own = self._records.adapt_sql_to_dialect(f"{sql} WHERE name = $1 AND state = $2")
        return run_statement(own, LOCK, self._mine)

    def release(self) -> Flow[None]:
        yield from self._execute_on_own_row("DELETE FROM treefold_migrations_journal")
