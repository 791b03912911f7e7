"""Writing through a reverse foreign key: which rows point to an instance. Generators; no I/O of
their own.

Rows are locked and read before they are changed, so that the instances given are marked with what
the database holds. Many-to-many relations are written in `related_links`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.journal import record_cache_for_undo, set_attribute_with_undo
from treefold_orm._base.records import Record, frozen_record
from treefold_orm._base.statement import ATOMIC, Operation
from treefold_orm._building.one_database import require_common_database
from treefold_orm._building.query import AnyQuery, QueryBuilder
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._fields.base import AnyField
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


@frozen_record
class OwnedRelation(Record):
    """A to-many relation of one instance, and the database in which it is changed; `defaults` are
    for new rows of a through model.
    """

    owner: Instance
    relation: Relation
    alias: str
    defaults: Mapping[str, Any] | None = None


def add_related(owned: OwnedRelation, others: Sequence[Any]) -> Operation[None]:
    """Point the rows of instances or keys to the owner."""
    relation = owned.relation
    keys = resolve_related_keys(owned, others)
    if not keys:
        return
    yield ATOMIC
    found = yield from _lock_and_read_foreign_keys(owned, keys)
    missing = [key for key in keys if key not in found]
    if missing:
        key = _format_key_for_error(relation.target, missing[0])
        raise relation.target.model.DoesNotExist(
            f"{relation.target.name} with key {key} does not exist; save it before it is added "
            f"to {relation.source.name}.{relation.name}"
        )
    yield from _update_foreign_keys(owned, found, owned.owner)
    _sync_instances_in_memory(owned, others, found, owned.owner)


def remove_related(owned: OwnedRelation, others: Sequence[Any]) -> Operation[int]:
    """Set the foreign key of these rows to NULL where it points to the owner; return how many
    did.
    """
    require_nullable_foreign_key(owned.relation, "remove()")
    keys = resolve_related_keys(owned, others)
    if not keys:
        return 0
    yield ATOMIC
    found = yield from _lock_and_read_foreign_keys(owned, keys)
    own = {key: row for key, row in found.items() if row[0] == owned.owner.pk}
    yield from _update_foreign_keys(owned, own, None)
    _sync_instances_in_memory(owned, others, own, None)
    return len(own)


def clear_related(owned: OwnedRelation) -> Operation[int]:
    """Set the foreign key of every row that points to the owner to NULL; return how many did."""
    require_nullable_foreign_key(owned.relation, "clear()")
    require_same_database(owned, ())
    values = {owned.relation.target_field.name: None}
    return (yield from update_rows(_build_rows_query(owned), values))


def replace_related(owned: OwnedRelation, others: Any, *, clear_first: bool) -> Operation[None]:
    """Point exactly these rows to the owner; the others get NULL."""
    yield ATOMIC
    wanted = yield from materialize_related_objects(owned, others)
    keys = set(resolve_related_keys(owned, wanted))
    present = yield from _read_foreign_keys(owned.relation, _build_rows_query(owned))
    if clear_first:
        yield from clear_related(owned)
    elif gone := [key for key in present if key not in keys]:
        require_nullable_foreign_key(owned.relation, "set() without some of the present rows")
        yield from remove_related(owned, gone)
    yield from add_related(owned, wanted)


def _build_rows_query(owned: OwnedRelation) -> AnyQuery:
    query = build_unfiltered_query(owned.relation.target, owned.alias)
    return query.filter(owned.relation.target_field.column == owned.owner.pk)


def materialize_related_objects(owned: OwnedRelation, others: Any) -> Operation[list[Any]]:
    """Return instances or keys as a list; a query is run for its rows."""
    query: Any = others
    if isinstance(others, Manager):
        query = cast("Manager[Any]", others).get_queryset()
    if isinstance(query, QueryBuilder):
        require_common_database(query._alias, owned.alias, owned.owner._meta)
        return (yield from fetch_rows(cast("AnyQuery", query), batch_lazy=False))
    return list(query)


def resolve_related_keys(owned: OwnedRelation, others: Iterable[Any]) -> list[Any]:
    """Return the keys of instances or keys, each once; raise `FieldError` for instances of other
    models or databases, and unsaved ones.
    """
    target = owned.relation.target
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
    require_same_database(owned, others)
    return list(found)


def require_same_database(owned: OwnedRelation, others: Iterable[Any]) -> None:
    """Raise `FieldError` where the owner and a given row are of different databases."""
    owner, relation, alias = owned.owner, owned.relation, owned.alias
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
    owned: OwnedRelation, keys: Sequence[Any]
) -> Operation[dict[Any, tuple[Any, ...]]]:
    target = owned.relation.target
    query = build_unfiltered_query(target, owned.alias).filter(target.pk.column.in_(list(keys)))
    return (yield from _read_foreign_keys(owned.relation, query.select_for_update()))


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
    owned: OwnedRelation, rows_by_key: dict[Any, tuple[Any, ...]], owner: Instance | None
) -> Operation[None]:
    if rows_by_key:
        target, key = owned.relation.target, None if owner is None else owner.pk
        query = build_unfiltered_query(target, owned.alias)
        query = query.filter(target.pk.column.in_(list(rows_by_key)))
        yield from update_rows(query, {owned.relation.target_field.name: key})


def _sync_instances_in_memory(
    owned: OwnedRelation,
    others: Iterable[Any],
    found: dict[Any, tuple[Any, ...]],
    owner: Instance | None,
) -> None:
    relation = owned.relation
    field, version = relation.target_field, relation.target.version
    ((_, encode, _),) = list_field_codecs(database_for(owned.alias), (field,))
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


def _assign_owner(other: Instance, field: AnyField, owner: Instance | None) -> None:
    cache = f"_cached_{field.name}"
    record_cache_for_undo(other, cache)
    set_attribute_with_undo(other, field.attname, None if owner is None else owner.pk)
    if owner is None:
        other.__dict__.pop(cache, None)
    else:
        other.__dict__[cache] = owner


def _format_key_for_error(meta: Meta, key: Any) -> str:
    return "***" if meta.pk.sensitive else repr(key)
