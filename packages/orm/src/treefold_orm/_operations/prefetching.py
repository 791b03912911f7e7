"""Related rows for instances that are there already. Generators; no I/O of their own.

    posts = [...]                                        # of any query, or of several
    prefetch_related_objects(posts, "author__country", Prefetch("tags", Tag.objects.all()[:3]))

Each step of a path loads the relation for those instances that lack it, by one statement, and goes
on with all rows at its end. An instance may come from `only()` or `raw()` and lack the foreign key
itself, which is loaded first: reading it here would send a statement inside of another operation.

An operation runs in one database. Those that load relations of other databases come one by one
from `plan_prefetches_elsewhere`, each with its alias, once the operation before it has run:

    authors -> [post.author_id in 1, 2] in "other" -> [tags of these posts] in "other"
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.databases import Home
from treefold_orm._base.errors import FieldError
from treefold_orm._base.journal import record_cache_for_undo
from treefold_orm._base.references import find_cached_related, is_relation_cached
from treefold_orm._base.statement import Operation
from treefold_orm._building.own_rows import filter_by_keys, load_only_fields
from treefold_orm._building.sources import (
    Prefetch,
    list_relation_source_columns,
    require_relation,
    require_valid_prefetch,
    split_prefetches,
)
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Instance, Relation
from treefold_orm._operations.loading import (
    build_prefetch_query,
    collect_cached_related,
    disable_lazy_loading,
    fetch_rows,
    load_and_attach_related,
)
from treefold_orm._operations.row_state import copy_reloaded_columns, is_expression
from treefold_orm._runtime.run import arun, run

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery


def prefetch_related_objects(instances: Iterable[Instance], *lookups: str | Prefetch) -> None:
    """Load relations of instances that came from anywhere, with one statement each.

    What an instance has loaded is not asked for again, but for a `Prefetch` with a query or a
    `to_attr`, which names rows of its own.

    Args:
        instances: rows of one model and one database.
        lookups: names of relations, nested names, or `Prefetch`, as of `prefetch_related`.

    Raises:
        FieldError: the instances are of several models or databases, or one without a key has no
            such rows yet.
    """
    found, specs, alias = _normalize_prefetch_arguments(instances, lookups)
    if found and specs:
        name = "await aprefetch_related_objects()"
        if split_prefetches(specs, alias)[0]:
            run(alias, prefetch_missing(found, specs, alias, batch_lazy=True), name)
        for other, work in plan_prefetches_elsewhere(found, specs, alias, batch_lazy=True):
            run(other, work, name)


async def aprefetch_related_objects(
    instances: Iterable[Instance], *lookups: str | Prefetch
) -> None:
    """`prefetch_related_objects` for async code."""
    found, specs, alias = _normalize_prefetch_arguments(instances, lookups)
    if found and specs:
        if split_prefetches(specs, alias)[0]:
            await arun(alias, prefetch_missing(found, specs, alias, batch_lazy=False))
        for other, work in plan_prefetches_elsewhere(found, specs, alias, batch_lazy=False):
            await arun(other, work)


def _normalize_prefetch_arguments(
    instances: Iterable[Any], lookups: Sequence[Any]
) -> tuple[list[Instance], list[Prefetch], str]:
    call = "prefetch_related_objects()"
    if isinstance(instances, (Instance, str)):
        raise FieldError(f"{call} takes a list of instances, got {type(instances).__name__}")
    found = list(instances)
    for given in lookups:
        if not isinstance(given, (str, Prefetch)):
            raise FieldError(f"{call} takes names and Prefetch, got {type(given).__name__}")
    if not found:
        return [], [], "default"
    for item in found:
        if not isinstance(item, Instance):
            raise FieldError(f"{call} takes instances, got {type(item).__name__}")
        if item._meta is not found[0]._meta:
            raise FieldError(
                f"{call} takes instances of one model, got {found[0]._meta.name} and "
                f"{item._meta.name}; call it for each"
            )
    # an instance that is not stored yet does not count: it may still be saved anywhere
    aliases = sorted({o._alias for o in found if o._row} or {o._alias for o in found})
    if len(aliases) > 1:
        raise FieldError(
            f"{call} takes instances of one database, got rows of {aliases[0]!r} and "
            f"{aliases[1]!r}; call it for each"
        )
    specs = [require_valid_prefetch(found[0]._meta, lookup) for lookup in lookups]
    return found, specs, aliases[0]


def prefetch_missing(
    instances: Sequence[Instance], specs: Sequence[Prefetch], alias: str, *, batch_lazy: bool
) -> Operation[None]:
    """Load the relations of `specs`, but for those of other databases, for the instances that lack
    them.
    """
    for spec in split_prefetches(specs, alias)[0]:
        here = instances
        parts = spec.path.split("__")
        for part in parts[:-1]:
            if here:
                relation = require_relation(here[0]._meta, part)
                yield from _load_relation_where_missing(
                    here, relation, alias, batch_lazy=batch_lazy
                )
                here = collect_cached_related(here, part)
        if here:
            relation = require_relation(here[0]._meta, parts[-1])
            query = build_prefetch_query(relation, spec, specs)
            yield from _load_relation_where_missing(
                here, relation, alias, query=query, to_attr=spec.to_attr, batch_lazy=batch_lazy
            )


def plan_prefetches_elsewhere(
    instances: Sequence[Instance], specs: Sequence[Prefetch], alias: str, *, batch_lazy: bool
) -> Generator[tuple[str, Operation[None]]]:
    """Yield the operations that load relations of other databases, each with its alias.

    The caller runs one before it asks for the next. What can be loaded in `alias` is there already.
    """
    here, later = split_prefetches(specs, alias)
    for spec in later:
        rows = instances
        *way, last = spec.path.split("__")
        for part in way:
            yield from _plan_relation(rows, part, batch_lazy=batch_lazy)
            rows = collect_cached_related(rows, part)
        if spec not in here:
            yield from _plan_relation(rows, last, spec, specs, batch_lazy=batch_lazy)
        if spec.query is not None and (below := spec.query._prefetches):
            for own, group in _group_by_database(_collect_prefetched(rows, spec)):
                yield from plan_prefetches_elsewhere(group, below, own, batch_lazy=batch_lazy)


def _plan_relation(
    instances: Sequence[Instance],
    name: str,
    spec: Prefetch | None = None,
    specs: Sequence[Prefetch] = (),
    *,
    batch_lazy: bool,
) -> Generator[tuple[str, Operation[None]]]:
    to_attr = spec and spec.to_attr
    if to_attr is None and (spec is None or spec.query is None):
        instances = [item for item in instances if not is_relation_cached(item, name)]
    if not instances:
        return
    relation = require_relation(instances[0]._meta, name)
    groups = _group_by_database(instances)
    query = spec and build_prefetch_query(relation, spec, specs)
    if query is not None and not isinstance(query._alias, Home):
        columns = list_relation_source_columns(relation.source, name)
        for own, group in groups:
            if own != query._alias and _find_lacking_columns(group, columns):
                yield own, load_columns_where_missing(group, own, columns)
        groups = [(query._alias, instances)]
    for alias, group in groups:
        work = _load_relation_where_missing(
            group, relation, alias, query=query, to_attr=to_attr, batch_lazy=batch_lazy
        )
        yield alias, work


def _group_by_database(instances: Sequence[Instance]) -> list[tuple[str, list[Instance]]]:
    groups: dict[str, list[Instance]] = {}
    for item in instances:
        groups.setdefault(item._alias, []).append(item)
    return list(groups.items())


def _collect_prefetched(instances: Sequence[Instance], spec: Prefetch) -> list[Instance]:
    if spec.to_attr is None:
        return collect_cached_related(instances, spec.path.rpartition("__")[2])
    found: list[Instance | None] = []
    for instance in instances:
        value = instance.__dict__.get(spec.to_attr)
        found += value if isinstance(value, list) else [value]
    return list({id(item): item for item in found if item is not None}.values())


def _load_relation_where_missing(
    instances: Sequence[Instance],
    relation: Relation,
    alias: str,
    *,
    query: AnyQuery | None = None,
    to_attr: str | None = None,
    batch_lazy: bool,
) -> Operation[None]:
    lacking = instances
    # rows of a query of the caller's are others than those that are loaded
    if query is None and to_attr is None:
        lacking = [item for item in instances if not _is_loaded(item, relation)]
    if not lacking:
        return
    columns = list_relation_source_columns(relation.source, relation.name)
    yield from load_columns_where_missing(lacking, alias, columns)
    for item in lacking:
        _require_loadable_relation(item, relation)
        record_cache_for_undo(item, to_attr or f"_cached_{relation.name}")
    yield from load_and_attach_related(
        lacking, relation, query, alias, to_attr=to_attr, batch_lazy=batch_lazy
    )
    refusing = [item for item in lacking if item._raises_lazy]
    for item in refusing:  # what they have now is loaded along with them
        item._raises_lazy = False
    disable_lazy_loading(refusing)


def _is_loaded(instance: Instance, relation: Relation) -> bool:
    attname = relation.source_field.attname
    if relation.kind != "forward" or attname not in instance.__dict__:
        return is_relation_cached(instance, relation.name)
    related = find_cached_related(instance, relation.name)  # the key may have changed since
    return related is not None and related.pk == instance.__dict__[attname]


def _require_loadable_relation(instance: Instance, relation: Relation) -> None:
    name = f"{relation.source.name}.{relation.name}"
    if relation.kind != "forward" and instance.pk is None:
        raise FieldError(f"{name} cannot be loaded for an instance without a key; save it first")
    if relation.kind == "forward" and is_expression(
        instance.__dict__[relation.source_field.attname]
    ):
        raise FieldError(f"{name} is not known before save(), got an expression as its key")


def load_columns_where_missing(
    instances: Sequence[Instance], alias: str, fields: Sequence[AnyField]
) -> Operation[None]:
    """Load columns for those stored instances that lack one of them.

    Raises `DoesNotExist` where such a row is gone.
    """
    lacking = _find_lacking_columns(instances, fields)
    if not lacking:
        return
    meta = lacking[0]._meta
    loading = load_only_fields(build_unfiltered_query(meta, alias), fields)
    query = filter_by_keys(loading, [o.pk for o in lacking])
    found = yield from fetch_rows(query, batch_lazy=False)
    fresh = {o.pk: o for o in found}
    for instance in lacking:
        if instance.pk not in fresh:
            raise meta.model.DoesNotExist(f"The row of this {meta.name} is gone")
        copy_reloaded_columns(instance, fresh[instance.pk], fields)


def _find_lacking_columns(
    instances: Sequence[Instance], fields: Sequence[AnyField]
) -> list[Instance]:
    return [o for o in instances if o._row and any(f.attname not in o.__dict__ for f in fields)]
