"""Streaming: rows from a database cursor, a chunk at a time, decoded by the same functions as
whole results.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

from treefold_orm._context import current
from treefold_orm._errors import FieldError
from treefold_orm._prefetch import prefetch
from treefold_orm._transactions import transaction

if TYPE_CHECKING:
    from treefold_orm._query import QueryBuilder


def _check(chunk_size: int) -> None:
    if isinstance(chunk_size, bool) or chunk_size < 1:
        raise FieldError(f"chunk_size={chunk_size!r} must be a number of at least 1")


def _session(alias: str) -> Any:
    context = current.get()
    assert context is not None  # noqa: S101 - a transaction was opened just before
    return context.transactions[alias].session


def iterate(query: QueryBuilder[Any, Any], chunk_size: int) -> Generator[Any]:
    """Yield a query's rows; a read-only transaction holds the cursor where none is open."""
    _check(chunk_size)
    plan, args = query._plan("rows")
    with ExitStack() as stack:
        if not transaction.active(query._alias):
            stack.enter_context(transaction(query._alias, read_only=True))
        session = _session(query._alias)
        for chunk in session.rows(plan.sql, args, size=chunk_size):
            found = plan.decode_peers(chunk)
            if query._prefetches:
                session.run(prefetch(found, query._prefetches, query._alias, peers=True))
            yield from found


async def aiterate(query: QueryBuilder[Any, Any], chunk_size: int) -> AsyncGenerator[Any]:
    """Yield a query's rows; a read-only transaction holds the cursor where none is open."""
    _check(chunk_size)
    plan, args = query._plan("rows")
    async with AsyncExitStack() as stack:
        if not transaction.active(query._alias):
            await stack.enter_async_context(transaction(query._alias, read_only=True))
        session = _session(query._alias)
        async for chunk in session.arows(plan.sql, args, size=chunk_size):
            found = plan.decode(chunk)
            if query._prefetches:
                await session.arun(prefetch(found, query._prefetches, query._alias, peers=False))
            for item in found:
                yield item
