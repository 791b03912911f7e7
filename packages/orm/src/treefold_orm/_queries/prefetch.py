"""Loading relations of many instances with one query each. Generators; no I/O of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._base.references import cached, is_cached, owner_reference
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._expressions.nodes import Expr, contains_window
from treefold_orm._fields.base import Field
from treefold_orm._fields.meta import Meta, Relation
from treefold_orm._queries.own_rows import with_keys, with_values
from treefold_orm._queries.query import query_of
from treefold_orm._queries.reading import decoded
from treefold_orm._runtime.connections import database_for

if TYPE_CHECKING:
    from treefold_orm._queries.query import QueryBuilder


class Prefetch:
    """A relation to load, with the query that finds its rows: `Prefetch("posts",
    Post.objects.filter(...))`.

    With `to_attr` the rows are put there as a list, and the relation itself stays unloaded.
    """

    __slots__ = ("path", "query", "to_attr")

    def __init__(
        self,
        path: str,
        query: QueryBuilder[Any, Any] | None = None,
        to_attr: str | None = None,
        *,
        queryset: QueryBuilder[Any, Any] | None = None,
    ) -> None:
        """Load `path` by `query` (also as `queryset=`), into the attribute `to_attr`."""
        if queryset is not None and query is not None:
            raise FieldError(f"Prefetch({path!r}) takes query= or queryset=, got both")
        query = queryset if query is None else query
        check_untainted(path)
        query = None if query is None else query_of(query)
        if query is not None and (query._low or query._high is not None):
            raise FieldError(f"Prefetch({path!r}) takes a query without a slice")
        if to_attr is not None and (not to_attr.isidentifier() or to_attr.startswith("_")):
            raise FieldError(f"to_attr={to_attr!r} must be a plain attribute name")
        self.path = path
        self.query = query
        self.to_attr = to_attr


def as_prefetch(meta: Meta, lookup: str | Prefetch) -> Prefetch:
    """Check a relation path against a model; return it as `Prefetch`."""
    spec = lookup if isinstance(lookup, Prefetch) else Prefetch(lookup)
    here = source = meta
    for part in spec.path.split("__"):
        source, here = here, _relation(here, part).target
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


def _relation(meta: Meta, name: str) -> Relation:
    found = meta.find(name)
    relation = meta.relations.get(name) if isinstance(found, Field) else found
    if relation is None:
        raise meta.unknown(name)
    return relation


def prefetch(
    instances: list[Any], specs: Sequence[Prefetch], alias: str, *, batch_lazy: bool
) -> Operation[None]:
    """Load every relation of `specs` for all instances."""
    for spec in specs:
        here = instances
        parts = spec.path.split("__")
        for depth, part in enumerate(parts, start=1):
            if not here:
                break
            relation = _relation(here[0]._meta, part)
            final = depth == len(parts)
            query = spec.query if final else None
            to_attr = spec.to_attr if final else None
            loaded = query is None and to_attr is None and all(is_cached(o, part) for o in here)
            if not loaded:
                yield from attach(
                    here, relation, query, alias, to_attr=to_attr, batch_lazy=batch_lazy
                )
            if final:
                break
            here = _reached(here, part)


def _reached(instances: list[Any], name: str) -> list[Any]:
    found: dict[int, Any] = {}
    for instance in instances:
        value = cached(instance, name)
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        for item in items:
            if item is not None:
                found[id(item)] = item
    return list(found.values())


def attach(
    instances: list[Any],
    relation: Relation,
    query: QueryBuilder[Any, Any] | None,
    alias: str,
    *,
    to_attr: str | None,
    batch_lazy: bool,
) -> Operation[None]:
    """Load one relation for all instances and put the rows in place."""
    if query is None:
        query = _everything(relation.target, alias, default=relation.to_many)
    target = to_attr or f"_cached_{relation.name}"
    if relation.kind == "forward":
        yield from _forward(instances, relation, query, target, batch_lazy=batch_lazy)
    elif relation.kind == "reverse":
        yield from _reverse(instances, relation, query, target, batch_lazy=batch_lazy)
    else:
        yield from _many(instances, relation, query, target, alias, batch_lazy=batch_lazy)


def _everything(meta: Meta, alias: str, *, default: bool = False) -> Any:
    from treefold_orm._queries.managers import default_query, plain_query

    return (default_query if default else plain_query)(meta, alias)


def _run(query: Any, *, batch_lazy: bool) -> Operation[list[Any]]:
    from treefold_orm._queries.operations import rows

    return (yield from rows(query, batch_lazy=batch_lazy))


def one_by_key(
    relation: Relation, keys: list[Any], alias: str, *, batch_lazy: bool
) -> Operation[dict[Any, Any]]:
    """Load the rows of a to-one relation; return them by the key that they are tied to."""
    field = relation.target_field
    query = with_values(_everything(relation.target, alias), field, keys)
    found = yield from _run(query, batch_lazy=batch_lazy)
    return {getattr(item, field.attname): item for item in found}


def _forward(
    instances: list[Any], relation: Relation, query: Any, target: str, *, batch_lazy: bool
) -> Operation[None]:
    keys, field = _keys(instances, relation), relation.target_field
    wanted = set(keys) - {None}
    found = (
        (yield from _run(with_values(query, field, list(wanted)), batch_lazy=batch_lazy))
        if wanted
        else []
    )
    by_key = dict(zip(map(attrgetter(field.attname), found), found, strict=True))
    for instance, key in zip(instances, keys, strict=True):
        setattr(instance, target, by_key.get(key))


def _reverse(
    instances: list[Any], relation: Relation, query: Any, target: str, *, batch_lazy: bool
) -> Operation[None]:
    keys = _keys(instances, relation)
    by_key: dict[Any, list[Any]] = {key: [] for key in keys}
    field = relation.target_field
    found = yield from _run(with_values(query, field, list(by_key)), batch_lazy=batch_lazy)
    owners = dict(zip(keys, instances, strict=True))
    references: dict[Any, Any] = {}
    back = f"_cached_{field.name}"
    joined = bool(found) and hasattr(found[0], back)
    for item, key in zip(found, map(attrgetter(field.attname), found), strict=True):
        rows = by_key[key]
        if not rows:
            references[key] = owner_reference(owners[key], key, prefetched=True)
        rows.append(item)
        if not joined:  # else the query has loaded the way back, and items hold it
            setattr(item, back, references[key])
    for instance, key in zip(instances, keys, strict=True):
        rows = by_key[key]
        setattr(instance, target, rows if relation.to_many else (rows[0] if rows else None))


def _keys(instances: list[Any], relation: Relation) -> list[Any]:
    """The values of the instances that their rows of the relation name."""
    source = relation.source.pk if relation.kind == "many" else relation.source_field
    return list(map(attrgetter(source.attname), instances))


def _many(
    instances: list[Any],
    relation: Relation,
    query: Any,
    target: str,
    alias: str,
    *,
    batch_lazy: bool,
) -> Operation[None]:
    keys = _keys(instances, relation)
    by_key: dict[Any, list[Any]] = {key: [] for key in keys}
    if _can_link(query):
        found = yield from _linked(query, relation, list(by_key), batch_lazy=batch_lazy)
    else:
        found = yield from _after_links(query, relation, list(by_key), alias, batch_lazy=batch_lazy)
    for source, item in found:
        by_key[source].append(item)
    for instance, key in zip(instances, keys, strict=True):
        setattr(instance, target, by_key[key])


def _can_link(query: Any) -> bool:
    """Return True if a join of related rows to their owners leaves the rows as they are."""
    if query._max_rows is not None or query._has("combine", "distinct_on", "lock"):
        return False
    notes: dict[str, Expr] = query._notes or {}
    return not any(map(contains_window, notes.values()))


def _linked(
    query: Any, relation: Relation, keys: list[Any], *, batch_lazy: bool
) -> Operation[Iterable[tuple[Any, Any]]]:
    plan, args = query._linked_plan(relation, keys)
    rows = yield Statement("rows", plan.sql, args)
    places = list(map(itemgetter(plan.key_place), rows))
    unique = dict(zip(places, rows, strict=True))  # what is connected to several comes with each
    found = decoded(plan, list(unique.values()), batch_lazy=batch_lazy)
    if query._prefetches:
        yield from prefetch(found, query._prefetches, query._alias, batch_lazy=batch_lazy)
    items = dict(zip(unique, found, strict=True))
    sources: Iterable[Any] = map(itemgetter(-1), rows)
    decode = relation.source_field.decoder(database_for(query._alias).dialect.name)
    if decode is not None:
        sources = map(decode, sources)
    return zip(sources, map(items.__getitem__, places), strict=True)


def _after_links(
    query: Any, relation: Relation, keys: list[Any], alias: str, *, batch_lazy: bool
) -> Operation[list[tuple[Any, Any]]]:
    assert relation.through is not None  # noqa: S101 - a many relation always has one
    first, second = relation.source_field, relation.target_field
    links = with_values(_everything(relation.through, alias), first, keys)
    pairs = yield from _run(links.values_list(first.column, second.column), batch_lazy=False)
    sources: dict[Any, list[Any]] = {}
    for source, key in pairs:
        sources.setdefault(key, []).append(source)
    if not sources:
        return []
    found = yield from _run(with_keys(query, list(sources)), batch_lazy=batch_lazy)
    return [(source, item) for item in found for source in sources[item.pk]]
