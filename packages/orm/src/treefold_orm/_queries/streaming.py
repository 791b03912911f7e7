"""Streaming: rows from a database cursor, a chunk at a time, decoded by the same functions as
whole results.

Between two rows the caller does what it likes, and may never come back: a stream of its own holds a
connection, and nothing of it is in the caller's context.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldError, ORMError
from treefold_orm._base.journal import wrap_operation_with_journal
from treefold_orm._base.statement import Operation
from treefold_orm._drivers.base import Cursor, Database, Session, finish_despite_cancellation
from treefold_orm._operations import loading
from treefold_orm._operations.loading import mark_read_in_transaction
from treefold_orm._queries.delivering import (
    aprefetch_elsewhere,
    arun_query,
    prefetch_elsewhere,
    run_query,
)
from treefold_orm._runtime.connections import database_for
from treefold_orm._runtime.context import current
from treefold_orm._runtime.open_transaction import Transaction, execute_statements
from treefold_orm._runtime.transactions import transaction

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery
    from treefold_orm._decode.plan import Plan


def _check_stream_and_find_transaction(
    query: AnyQuery, plan: Plan, chunk_size: int
) -> Transaction | None:
    """The open transaction that holds the cursor, if there is one."""
    if isinstance(chunk_size, bool) or chunk_size < 1:
        raise FieldError(f"chunk_size={chunk_size!r} must be a number of at least 1")
    context = current.get()
    if context is not None and transaction.active(query._alias):
        return context.transactions[query._alias]
    if plan.locks:
        raise loading.build_lock_transaction_error()
    return None


def iterate_rows(query: AnyQuery, chunk_size: int) -> Generator[Any]:
    """Yield a query's rows; a read-only transaction holds the cursor where none is open."""
    plan, args = query._compile_plan("rows")
    database = database_for(query._alias)
    shared = _check_stream_and_find_transaction(query, plan, chunk_size)
    if shared is None and database.single:
        yield from run_query(query, loading.fetch_rows(query, batch_lazy=True), "aiterator()")
        return
    with _open_stream_session(database, shared) as session:
        for chunk in session.fetch_chunks(plan.sql, args, size=chunk_size):
            found = plan.decode_lazy(chunk)
            if shared is not None:
                mark_read_in_transaction(found, shared.journal)
            if query._prefetches:
                session.run(_prefetch_chunk(query, found, shared, batch_lazy=True))
                prefetch_elsewhere(query, found, "aiterator()")
            if query._raises_lazy:
                loading.disable_lazy_loading(found)
            yield from found


async def aiterate_rows(query: AnyQuery, chunk_size: int) -> AsyncGenerator[Any]:
    """Yield a query's rows; a read-only transaction holds the cursor where none is open."""
    plan, args = query._compile_plan("rows")
    database = database_for(query._alias)
    shared = _check_stream_and_find_transaction(query, plan, chunk_size)
    if shared is None and database.single:
        for item in await arun_query(query, loading.fetch_rows(query, batch_lazy=False)):
            yield item
        return
    session = shared.session if shared is not None else await database.acheckout(write=False)
    cursor: Cursor | None = session.create_cursor(plan.sql, args)
    try:
        if shared is None:
            begin = database.begin_sql(write=False, isolation=None)
            await finish_despite_cancellation(session.arun(execute_statements([begin])))
        while chunk := await cursor.fetch_rows(chunk_size):
            found = plan.decode(chunk)
            if shared is not None:
                mark_read_in_transaction(found, shared.journal)
            if query._prefetches:
                await session.arun(_prefetch_chunk(query, found, shared, batch_lazy=False))
                await aprefetch_elsewhere(query, found)
            if query._raises_lazy:
                loading.disable_lazy_loading(found)
            for item in found:
                yield item
    except GeneratorExit:  # the caller left, perhaps with its loop, which waits for nothing
        if shared is None and cursor.try_release_without_waiting():
            cursor = None
        raise
    finally:
        if cursor is not None:
            await finish_despite_cancellation(_close_stream(database, session, cursor, shared))


def _prefetch_chunk(
    query: AnyQuery, found: list[Any], open_transaction: Transaction | None, *, batch_lazy: bool
) -> Operation[None]:
    work = loading.prefetch_relations(found, query, batch_lazy=batch_lazy)
    if open_transaction is None:
        return work
    return wrap_operation_with_journal(work, open_transaction.journal)


@contextmanager
def _open_stream_session(
    database: Database, open_transaction: Transaction | None
) -> Generator[Session]:
    if open_transaction is not None:
        yield open_transaction.session
        return
    session = database.checkout(write=False)
    try:
        session.run(execute_statements([database.begin_sql(write=False, isolation=None)]))
        yield session
    finally:
        with suppress(ORMError):  # the next caller that takes a broken connection notices
            session.run(execute_statements(["ROLLBACK"]))
        database.checkin(session)


async def _close_stream(
    database: Database, session: Session, cursor: Cursor, open_transaction: Transaction | None
) -> None:
    try:
        await cursor.close()
    finally:
        if open_transaction is None:
            with suppress(ORMError):  # the next caller that takes a broken connection notices
                await session.arun(execute_statements(["ROLLBACK"]))
            await database.acheckin(session)
