"""Writing through a many-to-many relation: rows of the through model. Generators; no I/O of their
own.

Existing connections stay as they are. Reverse foreign keys are written in `related_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from treefold_orm._base.names import check_untainted
from treefold_orm._base.statement import ATOMIC, Operation
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._fields.meta import Meta, Relation
from treefold_orm._models.related_rows import (
    OwnedRelation,
    materialize_related_objects,
    require_same_database,
    resolve_related_keys,
)
from treefold_orm._operations.changing import delete_rows
from treefold_orm._operations.loading import fetch_rows

if TYPE_CHECKING:
    from treefold_orm._building.set_operations import ModelQuery


def add_related(owned: OwnedRelation, others: Sequence[Any]) -> Operation[None]:
    """Connect instances or keys with the owner; new rows of the through model take its defaults."""
    relation, keys = owned.relation, resolve_related_keys(owned, others)
    given = _resolve_defaults(owned.defaults)
    if not keys:
        return
    yield ATOMIC
    through = require_through_model(relation)
    first, second = relation.source_field, relation.target_field
    if not through.auto_created:  # nothing in the table may keep a pair single
        links = build_through_query(owned).filter(second.column.in_(keys))
        present = yield from _read_connected_keys(relation, links)
        keys = [key for key in keys if key not in present]
    from treefold_orm._compile.writes import Conflict
    from treefold_orm._operations import bulk

    given[first.attname] = owned.owner.pk
    made = [through.model(**{**given, second.attname: key}) for key in keys]
    # another transaction may connect the same pair: the unique constraint then skips the row
    rule = Conflict((first, second)) if through.auto_created else None
    yield from bulk.insert_instances(
        through, cast("list[Any]", made), owned.alias, batch_size=None, rule=rule
    )


def remove_related(owned: OwnedRelation, others: Sequence[Any]) -> Operation[int]:
    """Disconnect instances or keys; return how many were connected."""
    keys = resolve_related_keys(owned, others)
    if not keys:
        return 0
    column = owned.relation.target_field.column
    return (yield from delete_rows(build_through_query(owned).filter(column.in_(keys))))


def clear_related(owned: OwnedRelation) -> Operation[int]:
    """Disconnect everything; return how many were connected."""
    require_same_database(owned, ())
    return (yield from delete_rows(build_through_query(owned)))


def replace_related(owned: OwnedRelation, others: Any, *, clear_first: bool) -> Operation[None]:
    """Connect exactly these instances or keys with the owner."""
    yield ATOMIC
    wanted = yield from materialize_related_objects(owned, others)
    keys = resolve_related_keys(owned, wanted)
    links = build_through_query(owned)
    if clear_first:
        yield from delete_rows(links)
    else:
        present = yield from _read_connected_keys(owned.relation, links)
        gone = [key for key in present if key not in set(keys)]
        if gone:
            yield from delete_rows(links.filter(owned.relation.target_field.column.in_(gone)))
        wanted = [key for key in keys if key not in present]
    yield from add_related(owned, wanted)


def require_through_model(relation: Relation) -> Meta:
    """Return the through model of a many-to-many relation."""
    assert relation.through is not None  # noqa: S101 - a many relation always has one
    return relation.through


def build_through_query(owned: OwnedRelation) -> ModelQuery:
    """Return the query for the through rows of one instance."""
    query = build_unfiltered_query(require_through_model(owned.relation), owned.alias)
    return query.filter(owned.relation.source_field.column == owned.owner.pk)


def _read_connected_keys(relation: Relation, links: ModelQuery) -> Operation[set[Any]]:
    keys = links._select_values("flat", (relation.target_field.column,), {})
    return set((yield from fetch_rows(keys, batch_lazy=False)))


def _resolve_defaults(defaults: Mapping[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in (defaults or {}).items():
        check_untainted(name)
        found[name] = value() if callable(value) else value
    return found
