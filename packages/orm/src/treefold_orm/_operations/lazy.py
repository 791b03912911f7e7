"""Reading deferred columns and relations: refused in async code and after `raiseload()`, loaded in
other sync code.

Lazy loads are batched: one query serves every instance of the same result, and each instance takes
its part of the answer when it is read.

Example, 50 articles of 3 writers in sync code:

    for article in Article.objects.all():    1 query
        article.writer.name                  1 query for the first article, with the 3 keys of all
                                             50; for the others their writer is in the batch
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treefold_orm._base.errors import NotLoaded
from treefold_orm._base.journal import drop_cache_with_undo
from treefold_orm._base.references import OwnerReference, make_weak_owner_reference
from treefold_orm._base.statement import Operation
from treefold_orm._building.own_rows import filter_by_keys, load_only_fields
from treefold_orm._building.sources import require_valid_prefetch
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.meta import Instance, Meta, Relation
from treefold_orm._fields.relations import AnyForeignKey, is_foreign_key
from treefold_orm._operations.loading import fetch_related_by_key, fetch_rows
from treefold_orm._operations.prefetching import prefetch_missing
from treefold_orm._operations.row_state import copy_reloaded_columns, record_stored_values
from treefold_orm._runtime.connections import database_for
from treefold_orm._runtime.context import current, find_current_journal
from treefold_orm._runtime.run import has_running_loop, run


def _check_lazy_allowed(instance: Instance, name: str, hint: str) -> None:
    if instance._raises_lazy and not _blocking_is_forbidden():
        raise NotLoaded(
            f"{instance._meta.name}.{name} is not loaded, and raiseload() lets no attribute load "
            f"it: add {hint} to the query, or call instance.load({name!r})"
        )
    if _blocking_is_forbidden():
        raise NotLoaded(
            f"{instance._meta.name}.{name} is not loaded: add {hint} to the query, or `await "
            f"instance.aload({name!r})`"
        )


def _blocking_is_forbidden() -> bool:
    return has_running_loop() and not getattr(current.get(), "blocking", False)


def refuse_dropped_owner(
    instance: Instance, field: AnyForeignKey, owner: OwnerReference, key: Any
) -> None:
    """Raise `NotLoaded` in async code where the owner that `instance` was prefetched for is gone.

    Sync code loads it again, for all rows of the same result with one query.
    """
    if not owner.prefetched or owner.key != key or not _blocking_is_forbidden():
        return
    name, target = field.name, field.known_target.name
    raise NotLoaded(
        f"{instance._meta.name}.{name} is not loaded any more: the {target} it was prefetched for "
        f"was dropped; keep that {target}, add .select_related({name!r}) to the query of "
        f"Prefetch, or `await instance.aload({name!r})`"
    )


def load_field(instance: Instance, field: AnyField) -> Any:
    """Return the value of a column that was not part of the query."""
    meta, key = instance._meta, instance.pk
    if instance._row is None:
        hint = "; the database sets it on insert" if field.db_fills else ""
        raise AttributeError(f"{meta.name}.{field.attname} was never set{hint}")
    batch, journal = instance._batch, find_current_journal(instance._alias)
    if journal is not None and journal.find_innermost_written_journal() is not None:
        batch = None  # nothing that may be undone is kept for the others
    loaded = {} if batch is None else batch.columns.setdefault(field, {})
    if key not in loaded:
        _check_lazy_allowed(instance, field.name, f"only(..., {field.name!r})")
        keys = {key, *_collect_batch_values(instance, meta.pk)} - loaded.keys()
        work = _fetch_column_by_key(meta, instance._alias, field, list(keys))
        loaded.update(run(instance._alias, work, f"await instance.aload({field.name!r})"))
    if key not in loaded:
        raise meta.model.DoesNotExist(f"The row of this {meta.name} is gone")
    raw = loaded[key]
    decode = field.decoder(_find_dialect_name(instance))
    value = raw if decode is None or raw is None else decode(raw)
    if journal is not None:
        journal.record_attribute_change(instance, field.attname, value)
    instance.__dict__[field.attname] = value
    record_stored_values(instance, (field,), (raw,))
    return value


def _fetch_column_by_key(
    meta: Meta, alias: str, field: AnyField, keys: list[Any]
) -> Operation[dict[Any, Any]]:
    query = filter_by_keys(load_only_fields(build_unfiltered_query(meta, alias), [field]), keys)
    found = yield from fetch_rows(query, batch_lazy=False)
    if not found:
        return {}
    place = (found[0]._shape or meta.columns).index(field)
    return {item.pk: item._row[place] for item in found}


def load_related(instance: Instance, relation: Relation) -> Any:
    """Return the instance at the end of a to-one relation that was not part of the query."""
    name = relation.name
    key = getattr(instance, relation.source_field.attname)
    batch = instance._batch
    loaded = {} if batch is None else batch.related.setdefault(name, {})
    if key not in loaded:
        relation.require_one_database()
        _check_lazy_allowed(instance, name, f".select_related({name!r})")
        keys = {key, *_collect_batch_values(instance, relation.source_field)} - loaded.keys()
        work = fetch_related_by_key(relation, list(keys), instance._alias, batch_lazy=True)
        made = run(instance._alias, work, f"await instance.aload({name!r})")
        # a key that points to nothing is looked up again; to have no row pointing here is an answer
        loaded.update(made if relation.kind == "forward" else {**dict.fromkeys(keys), **made})
    found = loaded.get(key)
    if relation.kind != "forward":
        if found is not None:
            owner = make_weak_owner_reference(instance, key, prefetched=False)
            found.__dict__[f"_cached_{relation.target_field.name}"] = owner
    elif found is None:
        raise relation.target.model.DoesNotExist(
            f"The {relation.target.name} this {instance._meta.name} points to is gone"
        )
    instance.__dict__[f"_cached_{name}"] = found
    return found


def _collect_batch_values(instance: Instance, field: AnyField) -> set[Any]:
    batch = instance._batch
    if batch is None:
        return set()
    dialect = _find_dialect_name(instance)
    if isinstance(field, KeyColumns):
        return batch.collect_distinct_keys(
            field.parts, [part.decoder(dialect) for part in field.parts]
        )
    return batch.collect_distinct_values(field, field.decoder(dialect))


def _find_dialect_name(instance: Instance) -> str:
    return database_for(instance._alias).dialect.name


def load_attributes(
    instances: Sequence[Instance], alias: str, names: Sequence[str], *, batch_lazy: bool
) -> Operation[None]:
    """Load columns and relations by name for all instances."""
    meta = instances[0]._meta
    columns: list[str] = []
    for name in names:
        field = meta.fields.get(name) or meta.by_attname.get(name)
        if field is None or (is_foreign_key(field) and name == field.name):
            relation = meta.relations.get(name)
            for instance in instances:
                if relation is not None and relation.to_many:
                    drop_cache_with_undo(instance, f"_cached_{name}")
                else:
                    instance.__dict__.pop(f"_cached_{name}", None)
            spec = require_valid_prefetch(meta, name)
            yield from prefetch_missing(instances, [spec], alias, batch_lazy=batch_lazy)
        else:
            columns.append(field.name)
    if not columns:
        return
    # all, where none lacks a column: then the call is to read them again
    lacking = [
        o for o in instances if any(meta.fields[c].attname not in o.__dict__ for c in columns)
    ] or instances
    wanted = [meta.fields[name] for name in columns]
    loading = load_only_fields(build_unfiltered_query(meta, alias), wanted)
    query = filter_by_keys(loading, [o.pk for o in lacking])
    found = yield from fetch_rows(query, batch_lazy=False)
    fresh = {o.pk: o for o in found}
    for instance in lacking:
        if instance.pk in fresh:
            copy_reloaded_columns(instance, fresh[instance.pk], wanted)
