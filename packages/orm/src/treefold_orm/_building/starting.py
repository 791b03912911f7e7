"""Where queries begin: all rows of a model, and `get` by one lookup without building a query."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from treefold_orm._building.query import AnyQuery, QueryBuilder
from treefold_orm._building.set_operations import ModelQuery, SetOperations
from treefold_orm._fields.meta import Meta
from treefold_orm._runtime.connections import database_for

if TYPE_CHECKING:
    from treefold_orm._decode.plan import Plan

B = TypeVar("B", bound=AnyQuery)

_SCALARS = frozenset({int, str, uuid.UUID})  # values that no lookup takes for anything else


def instantiate_query(kind: type[B], meta: Meta, alias: str) -> B:
    """Return a query of class `kind` for all rows of a model."""
    made: Any = object.__new__(kind)
    initialize_query(made, meta, alias)
    return made


def build_unfiltered_query(meta: Meta, alias: str) -> ModelQuery:
    """A query for all rows of a model, without the filters of its own managers."""
    return instantiate_query(cast("type[ModelQuery]", SetOperations), meta, alias)


def build_default_manager_query(meta: Meta, alias: str) -> ModelQuery:
    """The query of the model's default manager: the first that the model declares, else a plain
    one.
    """
    manager = meta.default_manager
    if manager is None:
        return build_unfiltered_query(meta, alias)
    return manager.db_manager(alias).get_queryset()


def initialize_query(query: AnyQuery, meta: Meta, alias: str) -> None:
    """Make `query` the query for all rows of a model."""
    query._meta = meta
    query._key = (meta,)
    query._params = query._prefetches = ()
    query._alias = alias
    query._notes = query._parent = query._high = query._max_rows = query._cache = None
    query._low = 0
    query._raises_lazy = False


def compile_exact_get_plan(
    meta: Meta, alias: str, lookups: dict[str, Any]
) -> tuple[Plan, Sequence[object]] | None:
    """The plan and arguments of `get` with one exact lookup among all rows, the commonest query of
    all, without building a query; None where it is not that.
    """
    ((name, value),) = lookups.items()
    # a name marked by a request is of a subclass of str: the long way refuses it
    lookup = meta.lookups.get(name) if name.__class__ is str else None
    if lookup is None or lookup.exact is None or value.__class__ not in _SCALARS:
        return None
    params = (lookup.exact(value),)
    database = database_for(alias)
    plan = database.plans.get((meta, name))
    if plan is None:
        kind = cast("type[AnyQuery]", QueryBuilder)
        query = instantiate_query(kind, meta, alias).filter(**lookups)
        plan = database.plans.keep_plan((meta, name), query._compile_plan("get")[0])
    return plan, params if plan.bind is None else plan.bind(params)


def compile_unfiltered_get_plan(
    query: AnyQuery, lookups: dict[str, Any]
) -> tuple[Plan, Sequence[object]] | None:
    """The result of `compile_exact_get_plan` for a query of all rows of its model, else None."""
    if len(query._key) != 1 or query._prefetches or query._high is not None or query._low:
        return None
    if query._raises_lazy:
        return None
    return compile_exact_get_plan(query._meta, query._alias, lookups)
