"""Streaming: rows from a database cursor, a chunk at a time, decoded by the same functions as
whole results.

Between two rows the caller does what it likes, and may never come back: a stream of its own holds a
connection, and nothing of it is in the caller's context.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from treefold_orm import _operations
from treefold_orm._connections import database_for
from treefold_orm._context import current
from treefold_orm._errors import FieldError, ORMError
from treefold_orm._open_transaction import script
from treefold_orm._prefetch import prefetch
from treefold_orm._run import arun, run
from treefold_orm._transactions import transaction
from treefold_orm.drivers._base import Database, Session, finish_anyway

if TYPE_CHECKING:
    from treefold_orm._query import QueryBuilder


def _check(chunk_size: int) -> None:
    if isinstance(chunk_size, bool) or chunk_size < 1:
        raise FieldError(f"chunk_size={chunk_size!r} must be a number of at least 1")


def _shared(alias: str) -> Session | None:
    if not transaction.active(alias):
        return None
    context = current.get()
    assert context is not None  # noqa: S101 - a transaction is in it
    return context.transactions[alias].session


def iterate(query: QueryBuilder[Any, Any], chunk_size: int) -> Generator[Any]:
    """Yield a query's rows; a read-only transaction holds the cursor where none is open."""
    _check(chunk_size)
    plan, args = query._plan("rows")
    database, shared = database_for(query._alias), _shared(query._alias)
    if shared is None and database.single:
        yield from run(query._alias, _operations.rows(query, peers=True), "aiterator()")
        return
    with _held(database, shared) as session:
        for chunk in session.rows(plan.sql, args, size=chunk_size):
            found = plan.decode_peers(chunk)
            if query._prefetches:
                session.run(prefetch(found, query._prefetches, query._alias, peers=True))
            yield from found


async def aiterate(query: QueryBuilder[Any, Any], chunk_size: int) -> AsyncGenerator[Any]:
    """Yield a query's rows; a read-only transaction holds the cursor where none is open."""
    _check(chunk_size)
    plan, args = query._plan("rows")
    database, shared = database_for(query._alias), _shared(query._alias)
    if shared is None and database.single:
        for item in await arun(query._alias, _operations.rows(query, peers=False)):
            yield item
        return
    async with _aheld(database, shared) as session:
        async for chunk in session.arows(plan.sql, args, size=chunk_size):
            found = plan.decode(chunk)
            if query._prefetches:
                await session.arun(prefetch(found, query._prefetches, query._alias, peers=False))
            for item in found:
                yield item


@contextmanager
def _held(database: Database, shared: Session | None) -> Generator[Session]:
    if shared is not None:
        yield shared
        return
    session = database.checkout(write=False)
    try:
        session.run(script([database.begin(write=False, isolation=None)]))
        yield session
    finally:
        with suppress(ORMError):  # a broken connection is noticed by whoever takes it next
            session.run(script(["ROLLBACK"]))
        database.checkin(session)


@asynccontextmanager
async def _aheld(database: Database, shared: Session | None) -> AsyncGenerator[Session]:
    if shared is not None:
        yield shared
        return
    session = await database.acheckout(write=False)
    try:
        await finish_anyway(session.arun(script([database.begin(write=False, isolation=None)])))
        yield session
    finally:
        await finish_anyway(_released(database, session))


async def _released(database: Database, session: Session) -> None:
    with suppress(ORMError):  # a broken connection is noticed by whoever takes it next
        await session.arun(script(["ROLLBACK"]))
    await database.acheckin(session)
