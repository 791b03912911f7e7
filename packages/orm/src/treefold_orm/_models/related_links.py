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
from treefold_orm._fields.meta import Instance, Meta, Relation
from treefold_orm._models.related_rows import (
    materialize_related_objects,
    require_same_database,
    resolve_related_keys,
)
from treefold_orm._operations.changing import delete_rows
from treefold_orm._operations.loading import fetch_rows

if TYPE_CHECKING:
    from treefold_orm._building.set_operations import SetOperations

Defaults = Mapping[str, Any] | None


def add_related(
    owner: Instance, relation: Relation, others: Sequence[Any], alias: str, *, defaults: Defaults
) -> Operation[None]:
    """Connect instances or keys with `owner`; new rows of the through model take `defaults`."""
    keys = resolve_related_keys(owner, relation, others, alias)
    given = _resolve_defaults(defaults)
    if not keys:
        return
    yield ATOMIC
    through = require_through_model(relation)
    first, second = relation.source_field, relation.target_field
    if not through.auto_created:  # nothing in the table may keep a pair single
        links = build_through_query(owner, relation, alias).filter(second.column.in_(keys))
        present = yield from _read_connected_keys(relation, links)
        keys = [key for key in keys if key not in present]
    from treefold_orm._compile.writes import Conflict
    from treefold_orm._operations import bulk

    made = [
        through.model(**{**given, first.attname: owner.pk, second.attname: key}) for key in keys
    ]
    # another transaction may connect the same pair: the unique constraint then skips the row
    rule = Conflict((first, second)) if through.auto_created else None
    yield from bulk.insert_instances(
        through, cast("list[Any]", made), alias, batch_size=None, rule=rule
    )


def remove_related(
    owner: Instance, relation: Relation, others: Sequence[Any], alias: str
) -> Operation[int]:
    """Disconnect instances or keys; return how many were connected."""
    keys = resolve_related_keys(owner, relation, others, alias)
    if not keys:
        return 0
    links = build_through_query(owner, relation, alias).filter(
        relation.target_field.column.in_(keys)
    )
    return (yield from delete_rows(links))


def clear_related(owner: Instance, relation: Relation, alias: str) -> Operation[int]:
    """Disconnect everything; return how many were connected."""
    require_same_database(owner, relation, (), alias)
    return (yield from delete_rows(build_through_query(owner, relation, alias)))


def replace_related(
    owner: Instance,
    relation: Relation,
    others: Any,
    alias: str,
    *,
    clear_first: bool,
    defaults: Defaults,
) -> Operation[None]:
    """Connect exactly these instances or keys with `owner`."""
    yield ATOMIC
    wanted = yield from materialize_related_objects(owner, others, alias)
    keys = resolve_related_keys(owner, relation, wanted, alias)
    links = build_through_query(owner, relation, alias)
    if clear_first:
        yield from delete_rows(links)
    else:
        present = yield from _read_connected_keys(relation, links)
        gone = [key for key in present if key not in set(keys)]
        if gone:
            yield from delete_rows(links.filter(relation.target_field.column.in_(gone)))
        wanted = [key for key in keys if key not in present]
    yield from add_related(owner, relation, wanted, alias, defaults=defaults)


def require_through_model(relation: Relation) -> Meta:
    """Return the through model of a many-to-many relation."""
    assert relation.through is not None  # noqa: S101 - a many relation always has one
    return relation.through


def build_through_query(owner: Instance, relation: Relation, alias: str) -> SetOperations[Any, Any]:
    """Return the query for the through rows of one instance."""
    query = build_unfiltered_query(require_through_model(relation), alias)
    return query.filter(relation.source_field.column == owner.pk)


def _read_connected_keys(relation: Relation, links: SetOperations[Any, Any]) -> Operation[set[Any]]:
    keys = links._select_values("flat", (relation.target_field.column,), {})
    return set((yield from fetch_rows(keys, batch_lazy=False)))


def _resolve_defaults(defaults: Defaults) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in (defaults or {}).items():
        check_untainted(name)
        found[name] = value() if callable(value) else value
    return found
