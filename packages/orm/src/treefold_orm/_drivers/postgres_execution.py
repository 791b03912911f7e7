"""Operations on an open PostgreSQL connection, on its event loop."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any, TypeVar

from treefold_orm._base.errors import ConnectionFailed, ORMError, build_unanswered_commit_error
from treefold_orm._base.journal import Journal, wrap_operation_with_journal
from treefold_orm._base.statement import ATOMIC, Kind, Operation
from treefold_orm._drivers import postgres_errors
from treefold_orm._drivers.base import make_statement_operation
from treefold_orm._drivers.postgres_extremes import has_extreme_date, rewrite_dates_as_text
from treefold_orm._drivers.postgres_pool import PostgresConnection

T = TypeVar("T")
_numbers = itertools.count()


class DeclaredCursor:
    """A cursor by SQL alone, which leaves no prepared statement on a connection behind a pooler."""

    def __init__(self, raw: Any, name: str) -> None:
        self._raw = raw
        self._name = name

    @classmethod
    async def declare_cursor(cls, raw: Any, sql: str, args: Sequence[object]) -> DeclaredCursor:
        """Declare the cursor for a query."""
        name = f"treefold_{next(_numbers)}"
        await raw.fetch(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}", *args)
        return cls(raw, name)

    async def fetch(self, size: int) -> list[Any]:
        """The next rows."""
        # in the text, since the grammar of FETCH takes no parameter here
        return await self._raw.fetch(f"FETCH FORWARD {int(size)} FROM {self._name}")


async def execute_operation(connection: PostgresConnection, operation: Operation[T]) -> T:
    """Run an operation to its end on a connection."""
    raw = connection.raw
    connection.started = connection.clock()
    try:
        statement = operation.send(None)
        if statement is ATOMIC:
            return await execute_atomic(connection, operation)
        while True:
            try:
                sql, args = statement.sql, statement.args
                if args and has_extreme_date(args):
                    sql, args = await rewrite_dates_as_text(raw, sql, args)
                if statement.kind == "rows":
                    outcome: Any = await raw.fetch(sql, *args)
                elif args and statement.kind == "count":
                    outcome = _parse_row_count(await raw.execute(sql, *args))
                else:
                    outcome = await _execute_script_raw_or_count(
                        connection, statement.kind, sql, args
                    )
            except postgres_errors.FOREIGN as error:
                opening = connection.opening
                failure = await connection.handle_driver_error(
                    error, is_schema_statement=statement.kind == "script"
                )
                # the error has aborted the transaction, so that asyncpg cannot prepare the
                # statement again in it; where nothing else has run in it, a new one loses nothing
                if opening and isinstance(error, postgres_errors.OUTDATED):
                    failure = await _restart_transaction(connection, opening)
                    if failure is None:
                        continue
            else:
                if connection.opening and statement.kind != "script":
                    connection.opening = ()
                statement = operation.send(outcome)
                continue
            statement = operation.throw(failure)
    except StopIteration as stop:
        return stop.value
    except BaseException:  # a cancelled operation learns of it, and not when it is collected
        operation.close()
        raise
    finally:
        connection.started = 0.0


_OPENS = ("BEGIN", "SAVEPOINT ")


async def _restart_transaction(
    connection: PostgresConnection, opening_statements: Sequence[str]
) -> ORMError | None:
    """Undo a transaction in which nothing has run, and open it and its savepoints once more."""
    try:
        for sql in ("ROLLBACK", *opening_statements):
            await connection.raw.execute(sql)
    except postgres_errors.FOREIGN as error:
        return await connection.handle_driver_error(error)
    return None


async def _execute_script_raw_or_count(
    connection: PostgresConnection, kind: Kind, sql: str, args: Sequence[object]
) -> Any:
    raw = connection.raw
    if kind == "atomic":
        raise RuntimeError("An operation asks for a transaction first, not between statements")
    if kind == "script":
        opens = sql.startswith(_OPENS)
        outcome = await raw.execute(sql)
        connection.opening = (*connection.opening, sql) if opens else ()
        return outcome
    if kind == "raw":
        # it may hold SET, LISTEN or an advisory lock, which outlive its transaction
        connection.tainted = True
        prepared = await raw.prepare(sql, name="")
        rows = await prepared.fetch(*args)
        return [attribute.name for attribute in prepared.get_attributes()], rows
    # without arguments execute() would use the many-statement protocol
    prepared = await raw.prepare(sql, name="")
    await prepared.fetch()
    return _parse_row_count(prepared.get_statusmsg())


def _parse_row_count(status: str) -> int:
    # "INSERT 0 5" and "UPDATE 3" end with the count, "CREATE TABLE" has none
    last = status.rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


async def execute_atomic(
    connection: PostgresConnection, operation: Operation[T], *, begin: str = "BEGIN"
) -> T:
    """Run an operation inside a transaction of its own."""
    journal, committing = Journal(), False
    try:
        await execute_operation(connection, make_statement_operation(begin))
        outcome = await execute_operation(
            connection, wrap_operation_with_journal(operation, journal, in_own_transaction=True)
        )
        # known to be closed, it sends no COMMIT, and the outcome is in no doubt
        committing = not connection.raw.is_closed()
        await execute_operation(connection, make_statement_operation("COMMIT"))
    except BaseException as error:
        no_answer = isinstance(error, ConnectionFailed) or not isinstance(error, Exception)
        journal.roll_back_instances(commit_unanswered=committing and no_answer)
        if isinstance(error, Exception) and not connection.raw.is_closed():
            with contextlib.suppress(ORMError):  # report the error that led here
                await execute_operation(connection, make_statement_operation("ROLLBACK"))
        if committing and isinstance(error, ConnectionFailed):
            raise build_unanswered_commit_error(error) from None
        raise
    return outcome
