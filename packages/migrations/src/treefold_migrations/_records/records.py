"""Records: the applied migrations of a database, in two tables of its own.

`treefold_migrations` holds one row for each applied file, written in the transaction that completes
it. `treefold_migrations_journal` holds a row for each file that is half done, and the lock of
databases that have no lock of a session. Nothing here decides anything.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from treefold_migrations._base.errors import RunError
from treefold_migrations._records.effects import fetch_rows, run_script, run_statement
from treefold_orm.schema import Dialect, Operation

TABLE = "treefold_migrations"
JOURNAL = "treefold_migrations_journal"
LOCK = "(lock)"
"""The name of the journal's row that is the lock; no file can have it."""

Direction = Literal["forwards", "backwards"]


@dataclass(frozen=True, slots=True)
class Record:
    """An applied migration: its name, the hash of its file then, and when that was."""

    name: str
    hash: str
    applied_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a file has come that does not fit into one transaction.

    `plan` is a digest of the steps, `done` counts those that are complete, `started` is True while
    one outside a transaction runs, `position` is where the batches of a Python step have come.
    `undo` is the number of operations that are taken back of a file that was never completed.
    `ended` holds a digest of each complete step, `failed` the place of the one that failed (-1 for
    none), `skipped` those done by hand; `batches` with `rows` of the step at `done` are committed.
    `origin` is where a file stood when it began to be taken back, `forced` whether parts of it may
    stay. `shown` are the places of the steps that people count. `fills` are the flags of `rollback`
    with values for the rows, as `post.slug:text`.

    `phase` is "expand" or "contract" where only that part of the file runs, and `parts` the letters
    by which its operations are split. A row of expand stays when all its steps are complete;
    `base` is that row while contract runs.
    """

    name: str
    hash: str
    direction: Direction
    plan: str
    steps: int
    done: int = 0
    started: bool = False
    position: str | None = None
    undo: int = -1
    ended: tuple[str, ...] = ()
    failed: int = -1
    skipped: tuple[int, ...] = ()
    batches: int = 0
    rows: int = 0
    origin: Progress | None = None
    forced: bool = False
    shown: tuple[int, ...] = ()
    phase: Literal["", "expand", "contract"] = ""
    parts: str = ""
    base: Progress | None = None
    fills: tuple[str, ...] = ()

    @property
    def is_expanded(self) -> bool:
        """True where all that runs in expand is done, and nothing of contract."""
        return self.phase == "expand" and self.direction == "forwards" and self.done >= self.steps


@dataclass(frozen=True, slots=True)
class Applied:
    """Everything recorded: applied migrations in the order in which they were, those that are
    expanded, and the one half done.
    """

    records: dict[str, Record]
    progress: dict[str, Progress]


class Records:
    """The statements on the two tables, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._postgres = dialect.name == "postgres"
        self._now = (
            # now() is the time at which the transaction began, and would not move during a long one
            "extract(epoch from clock_timestamp())::double precision"
            if self._postgres
            else "((julianday('now') - 2440587.5) * 86400.0)"
        )

    def adapt_sql_to_dialect(self, text: str) -> str:
        """Return a statement of this package with the placeholders and the clock (`@now`, seconds)
        of the dialect.
        """
        # sqlite3 takes ? alone; each statement here has its placeholders once and in their order
        text = text.replace("@now", self._now)
        return text if self._postgres else re.sub(r"\$\d+", "?", text)

    def has_tables(self) -> Operation[bool]:
        """Return True if the tables are there."""
        if self._postgres:
            # not those of a schema further down the search path, where another history may live
            found = yield from fetch_rows(
                "SELECT to_regclass(quote_ident(current_schema()) || '.' || $1) IS NOT NULL",
                JOURNAL,
            )
            return bool(found[0][0])
        sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        found = yield from fetch_rows(sql, JOURNAL)
        return bool(found)

    def create_tables(self) -> Operation[None]:
        """Create the tables where they are missing."""
        types = _POSTGRES if self._postgres else _SQLITE
        yield from run_script(
            f"CREATE TABLE IF NOT EXISTS {TABLE} (name {types.text} NOT NULL PRIMARY KEY, "
            f"hash {types.text} NOT NULL, applied_at {types.moment} NOT NULL, "
            f"place {types.integer} NOT NULL){types.tail}",
            f"CREATE TABLE IF NOT EXISTS {JOURNAL} (name {types.text} NOT NULL PRIMARY KEY, "
            f"state {types.text} NOT NULL, at {types.real} NOT NULL){types.tail}",
        )

    def read(self) -> Operation[Applied]:
        """Read all rows; none where the tables are missing."""
        if not (yield from self.has_tables()):
            return Applied({}, {})
        sql = "SELECT name, hash, applied_at FROM treefold_migrations ORDER BY place"
        found = yield from fetch_rows(sql)
        records = {name: Record(name, hash_, _parse_timestamp(at)) for name, hash_, at in found}
        sql = "SELECT state FROM treefold_migrations_journal WHERE name <> $1"
        found = yield from fetch_rows(self.adapt_sql_to_dialect(sql), LOCK)
        entries = [_parse_progress(json.loads(state)) for (state,) in found]
        return Applied(records, {entry.name: entry for entry in entries})

    def add_record(self, name: str, hash_: str) -> Operation[None]:
        """Record a file as applied."""
        now: Any = dt.datetime.now(dt.UTC)
        yield from run_statement(
            self.adapt_sql_to_dialect(
                "INSERT INTO treefold_migrations (name, hash, applied_at, place) VALUES "
                # rows are ordered by it: two files of one run may have the same time
                "($1, $2, $3, (SELECT coalesce(max(place), 0) + 1 FROM treefold_migrations))"
            ),
            name,
            hash_,
            now if self._postgres else now.isoformat(" ", "microseconds"),
        )

    def rewrite_hash(self, name: str, hash_: str) -> Operation[int]:
        """Replace the hash of a record; its time and place stay."""
        sql = "UPDATE treefold_migrations SET hash = $1 WHERE name = $2"
        return run_statement(self.adapt_sql_to_dialect(sql), hash_, name)

    def delete_record_if_present(self, name: str) -> Operation[int]:
        """Take the record of a file away if there is one."""
        sql = "DELETE FROM treefold_migrations WHERE name = $1"
        return run_statement(self.adapt_sql_to_dialect(sql), name)

    def delete_existing_record(self, name: str) -> Operation[None]:
        """Take the record of a file away."""
        # another run took the file back at the same time: the transaction is undone
        if (yield from self.delete_record_if_present(name)) != 1:
            raise RunError(f"Migration {name!r} has no record any more: run the command again")

    def save_progress(self, progress: Progress) -> Operation[int]:
        """Write how far a file has come."""
        return self.write_journal_row(progress.name, json.dumps(asdict(progress)))

    def write_journal_row(self, name: str, state: str) -> Operation[int]:
        """Write a row of the journal."""
        sql = (
            "INSERT INTO treefold_migrations_journal (name, state, at) VALUES ($1, $2, @now) "
            "ON CONFLICT (name) DO UPDATE SET state = excluded.state, at = excluded.at"
        )
        return run_statement(self.adapt_sql_to_dialect(sql), name, state)

    def clear_progress(self, name: str) -> Operation[int]:
        """Take away how far a file has come."""
        sql = "DELETE FROM treefold_migrations_journal WHERE name = $1"
        return run_statement(self.adapt_sql_to_dialect(sql), name)


@dataclass(frozen=True, slots=True)
class _Types:
    text: str
    integer: str
    real: str
    moment: str
    tail: str


_POSTGRES = _Types("text", "bigint", "double precision", "timestamptz", "")
_SQLITE = _Types("TEXT", "INTEGER", "REAL", "TEXT", " STRICT")


def advance_progress(progress: Progress, *, completed_digests: Sequence[str]) -> Progress:
    """Return the progress after the steps with these digests."""
    return replace(
        progress,
        done=len(completed_digests),
        ended=tuple(completed_digests),
        started=False,
        # position and batches belong to the step that has just ended
        position=None,
        failed=-1,
        batches=0,
        rows=0,
    )


def _parse_progress(state: dict[str, Any]) -> Progress:
    origin, base = state.get("origin"), state.get("base")
    # JSON has lists where the record has tuples, and a list never equals a tuple
    made = Progress(**state)
    return replace(
        made,
        ended=tuple(made.ended),
        skipped=tuple(made.skipped),
        shown=tuple(made.shown),
        fills=tuple(made.fills),
        origin=None if origin is None else _parse_progress(origin),
        base=None if base is None else _parse_progress(base),
    )


def _parse_timestamp(value: Any) -> dt.datetime:
    return value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(value)
