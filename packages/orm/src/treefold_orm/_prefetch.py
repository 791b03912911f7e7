"""Loading relations of many instances with one query each. Generators; no I/O of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from treefold_orm._errors import FieldError
from treefold_orm._fields._base import Field
from treefold_orm._meta import Meta, Relation
from treefold_orm._names import check_untainted
from treefold_orm._statement import Operation

if TYPE_CHECKING:
    from treefold_orm._query import QueryBuilder


class Prefetch:
    """A relation to load, with the query that finds its rows: `Prefetch("posts",
    Post.objects.filter(...))`.

    With `to_attr` the rows are put there as a list, and the relation itself stays unloaded.
    """

    __slots__ = ("path", "query", "to_attr")

    def __init__(
        self, path: str, query: QueryBuilder[Any, Any] | None = None, *, to_attr: str | None = None
    ) -> None:
        check_untainted(path)
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
    here = meta
    for part in spec.path.split("__"):
        here = _relation(here, part).target
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
    instances: list[Any], specs: Sequence[Prefetch], alias: str, *, peers: bool
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
            loaded = (
                query is None
                and to_attr is None
                and all(f"_cached_{part}" in o.__dict__ for o in here)
            )
            if not loaded:
                yield from attach(here, relation, query, alias, to_attr=to_attr, peers=peers)
            here = _reached(here, part if to_attr is None else None, to_attr)


def _reached(instances: list[Any], name: str | None, to_attr: str | None) -> list[Any]:
    found: dict[int, Any] = {}
    for instance in instances:
        value = instance.__dict__.get(f"_cached_{name}" if to_attr is None else to_attr)
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
    peers: bool,
) -> Operation[None]:
    """Load one relation for all instances and put the rows in place."""
    if query is None:
        query = _everything(relation.target, alias)
    target = to_attr or f"_cached_{relation.name}"
    if relation.kind == "forward":
        yield from _forward(instances, relation, query, target, peers=peers)
    elif relation.kind == "reverse":
        yield from _reverse(instances, relation, query, target, peers=peers)
    else:
        yield from _many(instances, relation, query, target, alias, peers=peers)


def _everything(meta: Meta, alias: str) -> Any:
    from treefold_orm._managers import plain_query

    return plain_query(meta, alias)


def _run(query: Any, *, peers: bool) -> Operation[list[Any]]:
    from treefold_orm._operations import rows

    return (yield from rows(query, peers=peers))


def _forward(
    instances: list[Any], relation: Relation, query: Any, target: str, *, peers: bool
) -> Operation[None]:
    source, field = relation.source_field.attname, relation.target_field
    keys = {getattr(o, source) for o in instances} - {None}
    found = (
        (yield from _run(query.filter(**{f"{field.name}__in": list(keys)}), peers=peers))
        if keys
        else []
    )
    by_key = {getattr(o, field.attname): o for o in found}
    for instance in instances:
        instance.__dict__[target] = by_key.get(getattr(instance, source))


def _reverse(
    instances: list[Any], relation: Relation, query: Any, target: str, *, peers: bool
) -> Operation[None]:
    by_key: dict[Any, list[Any]] = {instance.pk: [] for instance in instances}
    field = relation.target_field
    found = yield from _run(query.filter(**{f"{field.name}__in": list(by_key)}), peers=peers)
    owners = {instance.pk: instance for instance in instances}
    for item in found:
        key = getattr(item, field.attname)
        by_key[key].append(item)
        item.__dict__[f"_cached_{field.name}"] = owners[key]
    for instance in instances:
        rows = by_key[instance.pk]
        instance.__dict__[target] = rows if relation.to_many else (rows[0] if rows else None)


def _many(
    instances: list[Any], relation: Relation, query: Any, target: str, alias: str, *, peers: bool
) -> Operation[None]:
    assert relation.through is not None  # noqa: S101 - a many relation always has one
    first, second = relation.source_field, relation.target_field
    keys = list({instance.pk for instance in instances})
    links = _everything(relation.through, alias).filter(**{f"{first.name}__in": keys})
    pairs = yield from _run(links.values_list(first.attname, second.attname), peers=False)
    sources: dict[Any, list[Any]] = {}
    for source, key in pairs:
        sources.setdefault(key, []).append(source)
    found = (yield from _run(query.filter(pk__in=list(sources)), peers=peers)) if sources else []
    by_key: dict[Any, list[Any]] = {key: [] for key in keys}
    for item in found:
        for source in sources[item.pk]:
            by_key[source].append(item)
    for instance in instances:
        instance.__dict__[target] = by_key[instance.pk]
