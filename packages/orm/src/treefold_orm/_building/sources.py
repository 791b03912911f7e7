"""Sources of queries: managers, and relations that are loaded by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from treefold_orm._base.databases import Home
from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._building.query_protocol import Query
from treefold_orm._expressions.nodes import contains_window
from treefold_orm._expressions.resolving import QuerySource
from treefold_orm._expressions.steps import Combine, DistinctOn, FromCTE, JoinCTE, Lock, Where
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Meta, Relation


class PrefetchQuery(Query, Protocol):
    """The query of a `Prefetch`, which may prefetch relations itself."""

    _prefetches: tuple[Prefetch, ...]


class Prefetch:
    """A relation to load, with the query that finds its rows: `Prefetch("posts",
    Post.objects.filter(...))`.

    With `to_attr` the rows are put there as a list, and the relation itself stays unloaded. A
    slice, `Post.objects.order_by("-views")[:3]`, is one for each owner: by the query's order, else
    that of the model, and then by key. A query with `using()` is sent to that database, any other
    to that of the outer query.
    """

    __slots__ = ("path", "query", "to_attr")

    def __init__(
        self,
        path: str,
        query: QuerySource | None = None,
        to_attr: str | None = None,
        *,
        queryset: QuerySource | None = None,
    ) -> None:
        """Load `path` by `query` (also as `queryset=`), into the attribute `to_attr`."""
        if queryset is not None and query is not None:
            raise FieldError(f"Prefetch({path!r}) takes query= or queryset=, got both")
        query = queryset if query is None else query
        check_untainted(path)
        given: PrefetchQuery | None = None if query is None else convert_manager_to_query(query)
        if given is not None and is_sliced(given):
            _check_prefetch_slice(given, path)
        if to_attr is not None and (not to_attr.isidentifier() or to_attr.startswith("_")):
            raise FieldError(f"to_attr={to_attr!r} must be a plain attribute name")
        self.path = path
        self.query = given
        self.to_attr = to_attr


def is_sliced(query: Query) -> bool:
    """Return True for a query with a slice."""
    return bool(query._low) or query._high is not None


def _check_prefetch_slice(query: Query, path: str) -> None:
    """Raise `FieldError` for a query whose rows have no place among those of one owner."""
    wheres = [step.condition for step in query._key[1:] if isinstance(step, Where)]
    refused = {
        "union(), intersection() or difference()": query._has_step(Combine),
        "distinct(fields)": query._has_step(DistinctOn),
        "select_for_update()": query._has_step(Lock),
        "limit_rows()": query._max_rows is not None,
        "a CTE": query._has_step(FromCTE, JoinCTE),
        "a filter on a window": any(map(contains_window, wheres)),
    }
    for what, found in refused.items():
        if found:
            raise FieldError(
                f"Prefetch({path!r}) takes no slice of a query with {what}; filter by the keys of "
                "its rows instead"
            )


def require_valid_prefetch(meta: Meta, lookup: str | Prefetch) -> Prefetch:
    """Check a relation path against a model; return it as `Prefetch`."""
    spec = lookup if isinstance(lookup, Prefetch) else Prefetch(lookup)
    here = source = meta
    to_many = True
    for part in spec.path.split("__"):
        relation = require_relation(here, part)
        source, here, to_many = here, relation.target, relation.to_many
    if spec.query is not None and is_sliced(spec.query) and not to_many:
        raise FieldError(f"Prefetch({spec.path!r}) leads to one row, got a query with a slice")
    if spec.to_attr is not None and hasattr(source.model, spec.to_attr):
        raise FieldError(
            f"to_attr={spec.to_attr!r} cannot replace an attribute of {source.name}; choose a name "
            "that it does not have"
        )
    if spec.query is not None and spec.query._meta is not here:
        raise FieldError(
            f"Prefetch({spec.path!r}) needs a query of {here.name}, not of {spec.query._meta.name}"
        )
    return spec


def split_prefetches(
    specs: Sequence[Prefetch], alias: str
) -> tuple[Sequence[Prefetch], Sequence[Prefetch]]:
    """Return the relations that an operation in the database `alias` loads, and those for which
    statements follow in other databases.

        prefetch_related(Prefetch("posts", Post.objects.using("other")), "posts__tags", "country")

    gives `country`, and then the two others: a post's tags are looked up in its own database. A
    relation is in both lists if only relations below it are loaded elsewhere, by its own query.
    """
    if not have_queries(specs):
        return specs, ()
    here: list[Prefetch] = []
    later: list[Prefetch] = []
    loaded_later: tuple[str, ...] = ()
    for spec in specs:
        if loaded_later and f"{spec.path}__".startswith(loaded_later):
            later.append(spec)
        elif _is_placed_elsewhere(spec, alias):
            way = spec.path.rpartition("__")[0]
            if way:
                here.append(Prefetch(way))
            later.append(spec)
            if spec.to_attr is None:
                loaded_later += (f"{spec.path}__",)
        else:
            here.append(spec)
            if spec.query is not None and split_prefetches(spec.query._prefetches, alias)[1]:
                later.append(spec)
    return here, later


def have_queries(specs: Sequence[Prefetch]) -> bool:
    """Return True if a relation is loaded by a query of its own: only that can be of a database of
    its own.
    """
    for spec in specs:  # noqa: SIM110 - a generator takes longer than most lists
        if spec.query is not None:
            return True
    return False


def _is_placed_elsewhere(spec: Prefetch, alias: str) -> bool:
    """Return True for a query with a database of its own other than `alias`."""
    if spec.query is None:
        return False
    placed = spec.query._alias
    return placed != alias and not isinstance(placed, Home)


def require_relation(meta: Meta, name: str) -> Relation:
    """The relation of a model with this name."""
    relation = meta.relations.get(name)
    if relation is None:
        raise meta.build_unknown_name_error(name)
    relation.require_one_database()
    return relation


def list_relation_source_columns(meta: Meta, name: str) -> list[AnyField]:
    """The columns of a model by which rows of one of its relations are found."""
    relation = require_relation(meta, name)
    return [] if relation.kind == "many" else [relation.source_field]


def convert_manager_to_query(source: Any) -> Any:
    """Return the query that a manager stands for; anything else is returned as it is."""
    return source.get_queryset() if hasattr(source.__class__, "get_queryset") else source
