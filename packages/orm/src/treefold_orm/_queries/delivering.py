"""Running the operation of a query whose instances may have relations of other databases.

    for author in Author.objects.prefetch_related(Prefetch("posts", Post.objects.using("other"))):

An operation runs in one database, in async code of SQLite on another thread: it cannot ask a second
one. Each call that delivers instances passes here, and lets those statements follow its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from treefold_orm._base.statement import CoroutineOf, Operation
from treefold_orm._building.sources import have_queries
from treefold_orm._fields.meta import Instance
from treefold_orm._operations.prefetching import plan_prefetches_elsewhere
from treefold_orm._runtime.run import arun, run

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery

T = TypeVar("T")


def run_query(query: AnyQuery, operation: Operation[T], async_name: str) -> T:
    """Run an operation, then those that load relations of its instances from other databases."""
    found = run(query._alias, operation, async_name)
    if have_queries(query._prefetches):
        prefetch_elsewhere(query, _list_instances(found), async_name)
    return found


def arun_query(query: AnyQuery, operation: Operation[T]) -> CoroutineOf[T]:
    """`run_query` for async code."""
    found = arun(query._alias, operation)
    return _await_relations(query, found) if have_queries(query._prefetches) else found


async def _await_relations(query: AnyQuery, work: CoroutineOf[T]) -> T:
    found = await work
    await aprefetch_elsewhere(query, _list_instances(found))
    return found


def prefetch_elsewhere(query: AnyQuery, found: list[Any], async_name: str) -> None:
    """Load the relations of a query's instances that are of other databases."""
    plan = plan_prefetches_elsewhere(found, query._prefetches, query._alias, batch_lazy=True)
    for alias, operation in plan:
        run(alias, operation, async_name)


async def aprefetch_elsewhere(query: AnyQuery, found: list[Any]) -> None:
    """`prefetch_elsewhere` for async code."""
    plan = plan_prefetches_elsewhere(found, query._prefetches, query._alias, batch_lazy=False)
    for alias, operation in plan:
        await arun(alias, operation)


def _list_instances(found: Any) -> list[Any]:
    """The instances of a list, of `in_bulk()`, of a page, or one alone."""
    if found is None or isinstance(found, Instance):
        return [] if found is None else [found]
    if isinstance(found, dict):
        return list(cast("dict[Any, Any]", found).values())
    return cast("list[Any]", found if isinstance(found, list) else found.items)
