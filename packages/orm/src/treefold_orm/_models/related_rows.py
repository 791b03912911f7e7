"""Writing through a reverse foreign key: which rows point to an instance. Generators; no I/O of
their own.

Rows are locked and read before they are changed, so that the instances given are marked with what
the database holds. Many-to-many relations are written in `related_links`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.journal import record_cache_for_undo, set_attribute_with_undo
from treefold_orm._base.statement import ATOMIC, Operation
from treefold_orm._building.one_database import require_common_database
from treefold_orm._building.query import AnyQuery, QueryBuilder
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._fields.base import Field
from treefold_orm._fields.meta import Instance, Meta, Relation
from treefold_orm._operations.changing import update_rows
from treefold_orm._operations.loading import fetch_rows
from treefold_orm._operations.row_state import (
    list_field_codecs,
    record_new_version,
    record_stored_values,
)
from treefold_orm._queries.managers import Manager
from treefold_orm._runtime.connections import database_for


def add_related(
    owner: Instance, relation: Relation, others: Sequence[Any], alias: str
) -> Operation[None]:
    """Point the rows of instances or keys to `owner`."""
    keys = resolve_related_keys(owner, relation, others, alias)
    if not keys:
        return
    yield ATOMIC
    found = yield from _lock_and_read_foreign_keys(relation, keys, alias)
    missing = [key for key in keys if key not in found]
    if missing:
        key = _format_key_for_error(relation.target, missing[0])
        raise relation.target.model.DoesNotExist(
            f"{relation.target.name} with key {key} does not exist; save it before it is added "
            f"to {relation.source.name}.{relation.name}"
        )
    yield from _update_foreign_keys(relation, found, owner, alias)
    _sync_instances_in_memory(relation, others, found, owner, alias)


def remove_related(
    owner: Instance, relation: Relation, others: Sequence[Any], alias: str
) -> Operation[int]:
    """Set the foreign key of these rows to NULL where it points to `owner`; return how many did."""
    require_nullable_foreign_key(relation, "remove()")
    keys = resolve_related_keys(owner, relation, others, alias)
    if not keys:
        return 0
    yield ATOMIC
    found = yield from _lock_and_read_foreign_keys(relation, keys, alias)
    own = {key: row for key, row in found.items() if row[0] == owner.pk}
    yield from _update_foreign_keys(relation, own, None, alias)
    _sync_instances_in_memory(relation, others, own, None, alias)
    return len(own)


def clear_related(owner: Instance, relation: Relation, alias: str) -> Operation[int]:
    """Set the foreign key of every row that points to `owner` to NULL; return how many did."""
    require_nullable_foreign_key(relation, "clear()")
    require_same_database(owner, relation, (), alias)
    query = build_unfiltered_query(relation.target, alias).filter(
        relation.target_field.column == owner.pk
    )
    return (yield from update_rows(query, {relation.target_field.name: None}))


def replace_related(
    owner: Instance, relation: Relation, others: Any, alias: str, *, clear_first: bool
) -> Operation[None]:
    """Point exactly these rows to `owner`; the others get NULL."""
    yield ATOMIC
    wanted = yield from materialize_related_objects(owner, others, alias)
    keys = set(resolve_related_keys(owner, relation, wanted, alias))
    query = build_unfiltered_query(relation.target, alias).filter(
        relation.target_field.column == owner.pk
    )
    present = yield from _read_foreign_keys(relation, query)
    if clear_first:
        yield from clear_related(owner, relation, alias)
    elif gone := [key for key in present if key not in keys]:
        require_nullable_foreign_key(relation, "set() without some of the present rows")
        yield from remove_related(owner, relation, gone, alias)
    yield from add_related(owner, relation, wanted, alias)


def materialize_related_objects(owner: Instance, others: Any, alias: str) -> Operation[list[Any]]:
    """Return instances or keys as a list; a query is run for its rows."""
    query: Any = others
    if isinstance(others, Manager):
        query = cast("Manager[Any]", others).get_queryset()
    if isinstance(query, QueryBuilder):
        require_common_database(query._alias, alias, owner._meta)
        return (yield from fetch_rows(cast("AnyQuery", query), batch_lazy=False))
    return list(query)


def resolve_related_keys(
    owner: Instance, relation: Relation, others: Iterable[Any], alias: str
) -> list[Any]:
    """Return the keys of instances or keys, each once; raise `FieldError` for instances of other
    models or databases, and unsaved ones.
    """
    target = relation.target
    found: dict[Any, None] = {}
    for other in others:
        if isinstance(other, target.model):
            if other.pk is None:
                raise FieldError(
                    f"{target.name} must be saved before it is added or removed, got one without a "
                    "key; save it, or make it with create()"
                )
            found[target.pk.coerce(other.pk)] = None
        elif hasattr(other, "_meta"):
            raise FieldError(
                f"A {target.name} or its key is needed, got {type(other).__name__}; give the key "
                f"of a {target.name}"
            )
        else:
            found[target.pk.coerce(other)] = None
    require_same_database(owner, relation, others, alias)
    return list(found)


def require_same_database(
    owner: Instance, relation: Relation, others: Iterable[Any], alias: str
) -> None:
    """Raise `FieldError` where the owner and a given row are of different databases."""
    if alias != owner._alias:
        raise FieldError(
            f"{relation.source.name}.{relation.name} must be changed in the database of its "
            f"{relation.source.name}, {owner._alias!r}, got {alias!r}; read the "
            f"{relation.source.name} with using({alias!r})"
        )
    for other in others:
        if isinstance(other, relation.target.model) and other._row and other._alias != alias:
            raise FieldError(
                f"{relation.source.name}.{relation.name} cannot hold a row of another database, "
                f"got a {relation.target.name} of {other._alias!r}; read it with using({alias!r})"
            )


def require_nullable_foreign_key(relation: Relation, call: str) -> None:
    """Raise `FieldError` where a foreign key cannot be set to NULL."""
    field = relation.target_field
    if not field.null:
        raise FieldError(
            f"{call} cannot set {field.meta.name}.{field.name} to NULL; delete() the rows, add() "
            f"them to another {relation.source.name}, or declare null=True"
        )


def _lock_and_read_foreign_keys(
    relation: Relation, keys: Sequence[Any], alias: str
) -> Operation[dict[Any, tuple[Any, ...]]]:
    target = relation.target
    query = build_unfiltered_query(target, alias).filter(target.pk.column.in_(list(keys)))
    return (yield from _read_foreign_keys(relation, query.select_for_update()))


def _read_foreign_keys(
    relation: Relation, query: AnyQuery
) -> Operation[dict[Any, tuple[Any, ...]]]:
    """The foreign key, and the version where there is one, of rows by their key."""
    target, size = relation.target, len(relation.target.keys)
    columns = [*target.keys, relation.target_field]
    if target.version is not None:
        columns.append(target.version)
    wanted = query._select_values("tuples", [field.column for field in columns], {})
    found = yield from fetch_rows(wanted, batch_lazy=False)
    return {row[0] if size == 1 else row[:size]: row[size:] for row in found}


def _update_foreign_keys(
    relation: Relation, rows_by_key: dict[Any, tuple[Any, ...]], owner: Instance | None, alias: str
) -> Operation[None]:
    if rows_by_key:
        target = relation.target
        query = build_unfiltered_query(target, alias).filter(
            target.pk.column.in_(list(rows_by_key))
        )
        yield from update_rows(
            query, {relation.target_field.name: None if owner is None else owner.pk}
        )


def _sync_instances_in_memory(
    relation: Relation,
    others: Iterable[Any],
    found: dict[Any, tuple[Any, ...]],
    owner: Instance | None,
    alias: str,
) -> None:
    field, version = relation.target_field, relation.target.version
    ((_, encode, _),) = list_field_codecs(database_for(alias), (field,))
    key = None if owner is None else owner.pk
    raw = key if key is None or encode is None else encode(key)
    for other in others:
        if not isinstance(other, relation.target.model) or other.pk not in found:
            continue
        _assign_owner(other, field, owner)
        if not other._row:
            continue
        record_stored_values(other, (field,), (raw,))
        # with another version it was outdated before, and stays so: its next save() is refused
        if version is not None and getattr(other, version.attname) == found[other.pk][1]:
            record_new_version(other, version, found[other.pk][1] + 1)


def _assign_owner(other: Instance, field: Field[Any], owner: Instance | None) -> None:
    cache = f"_cached_{field.name}"
    record_cache_for_undo(other, cache)
    set_attribute_with_undo(other, field.attname, None if owner is None else owner.pk)
    if owner is None:
        other.__dict__.pop(cache, None)
    else:
        other.__dict__[cache] = owner


def _format_key_for_error(meta: Meta, key: Any) -> str:
    return "***" if meta.pk.sensitive else repr(key)
