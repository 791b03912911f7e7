"""Operations on an open SQLite connection, in the thread that calls."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

from treefold_orm._base.journal import Journal, wrap_operation_with_journal
from treefold_orm._base.statement import ATOMIC, Operation, Statement
from treefold_orm._drivers import sqlite_errors
from treefold_orm._drivers.base import make_statement_operation
from treefold_orm._sqlite.clock import Connection

T = TypeVar("T")


def execute_operation(raw: Connection, operation: Operation[T]) -> T:
    """Run an operation to its end on an open connection."""
    send, clock = raw.execute, raw.clock
    try:
        statement = operation.send(None)
        if statement is ATOMIC:
            return execute_atomic(raw, operation)
        while True:
            clock.text = ""
            try:
                cursor = send(statement.sql, statement.args)
                outcome: Any = (
                    cursor.fetchall()
                    if statement.kind == "rows"
                    else _read_statement_outcome(statement, cursor)
                )
            except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
                failure = sqlite_errors.translate_error(error)
            else:
                statement = operation.send(outcome)
                continue
            statement = operation.throw(failure)
    except StopIteration as stop:
        return stop.value
    except BaseException:
        operation.close()
        raise


def execute_and_append_outcome(raw: Connection, operation: Operation[T], outcome: list[T]) -> None:
    raw.is_interruptible = not raw.in_transaction
    try:
        outcome.append(execute_operation(raw, operation))
    finally:
        raw.is_interruptible = True


def _read_statement_outcome(statement: Statement, cursor: sqlite3.Cursor) -> Any:
    if statement is ATOMIC:
        raise RuntimeError("An operation asks for a transaction first, not between statements")
    if statement.kind == "raw":
        return [column[0] for column in cursor.description or ()], cursor.fetchall()
    if statement.kind == "count" and cursor.rowcount == -1:
        # the module counts statements that begin with their verb only, and this began with WITH
        return cursor.connection.execute("SELECT changes()").fetchone()[0]
    return cursor.rowcount


def execute_atomic(raw: Connection, operation: Operation[T]) -> T:
    """Run an operation inside a transaction of its own."""
    journal = Journal()
    execute_operation(raw, make_statement_operation("BEGIN IMMEDIATE"))
    raw.is_interruptible = False
    try:
        outcome = execute_operation(
            raw, wrap_operation_with_journal(operation, journal, in_own_transaction=True)
        )
        execute_operation(raw, make_statement_operation("COMMIT"))
    except BaseException:
        try:
            if raw.in_transaction:
                raw.rollback()
        finally:
            journal.roll_back_instances()
        raise
    finally:
        raw.is_interruptible = True
    return outcome


def run_noop_barrier() -> None:
    return None  # in line behind the interrupted call: when this has run, that one has stopped


def open_cursor(raw: Connection, sql: str, args: Sequence[object]) -> sqlite3.Cursor:
    raw.clock.text = ""
    try:
        return raw.execute(sql, args)
    except sqlite3.Error as error:
        failure = sqlite_errors.translate_error(error)
    raise failure


def open_and_append_cursor(
    raw: Connection, cursors: list[sqlite3.Cursor], sql: str, args: Sequence[object]
) -> None:
    cursors.append(open_cursor(raw, sql, args))


def fetch_chunk(raw: Connection, cursor: sqlite3.Cursor, size: int) -> list[Any]:
    try:
        return cursor.fetchmany(size)
    except sqlite3.Error as error:
        failure = sqlite_errors.translate_error(error)
    raise failure


def close_cursors(raw: Connection, cursors: list[sqlite3.Cursor]) -> None:
    with suppress(sqlite3.ProgrammingError):  # the connection was closed before, and they with it
        for cursor in cursors:
            cursor.close()
