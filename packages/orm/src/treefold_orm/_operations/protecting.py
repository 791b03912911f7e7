"""`on_delete=PROTECT`: the rows that keep others from being deleted. No I/O of its own.

    class Album(Model): artist = ForeignKey(Artist, CASCADE)
    class Song(Model):  album = ForeignKey(Album, PROTECT)

    Artist.objects.filter(name="x").delete()
        SELECT ... FROM song WHERE album_id IN (
            SELECT id FROM album WHERE artist_id IN (SELECT id FROM artist WHERE name = ?))
        DELETE FROM artist WHERE name = ?     -- only where no song was found

The rows to delete are those of the query and all that cascades reach; one statement for each
foreign key with PROTECT looks for rows that point to them. Where cascades form a circle, as in a
tree, no fixed statement reaches all rows, and the keys of the circle are read level by level.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from treefold_orm._base.errors import ProtectedError
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._building.own_rows import build_key_ordering
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._expressions.steps import Lock
from treefold_orm._fields.meta import Instance, Meta, find_owner_meta
from treefold_orm._fields.relations import AnyForeignKey
from treefold_orm._operations.loading import fetch_rows
from treefold_orm._terms.operators import Condition

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery
    from treefold_orm._building.set_operations import ModelQuery

SHOWN = 20
"""How many protecting rows an error holds."""

_Pointer = AnyForeignKey


def has_protectors(meta: Meta) -> bool:
    """Return True if a row of the model, or one that its deletion cascades to, may be protected."""
    meta.registry.resolve_pending_targets()
    if not meta.pointers:
        return False
    return any(
        _find_referencing_foreign_keys(one, "PROTECT") for one in _collect_cascaded_models(meta)
    )


def refuse_protected_deletion(query: AnyQuery) -> Operation[None]:
    """Raise `ProtectedError` where a row that deleting the query deletes is protected."""
    meta, alias = query._meta, query._alias
    reached = {
        one: _collect_cascaded_models(one)
        for one in _collect_cascaded_models(meta)
        if any(
            _find_referencing_foreign_keys(further, "PROTECT")
            for further in _collect_cascaded_models(one)
        )
    }
    sources: dict[Meta, list[Any]] = {one: [] for one in reached}
    sources[meta].append(query._copy_without_steps(Lock, (None,)))
    found: list[Instance] = []
    counts: dict[str, int] = {}
    for circle in _group_in_cascade_order(reached):
        if len(circle) > 1 or _cascades_to_itself(circle[0]):
            yield from _replace_sources_with_keys(circle, sources, alias)
        for one in filter(sources.get, circle):
            for key in _find_referencing_foreign_keys(one, "CASCADE"):
                if key.meta in reached and key.meta not in circle:
                    sources[key.meta].append(_build_referencing_query(key, sources[one], alias))
            for key in _find_referencing_foreign_keys(one, "PROTECT"):
                yield from _collect_protecting_rows(key, sources[one], alias, found, counts)
    if found:
        raise _build_protected_error(meta, found, counts)


def _collect_protecting_rows(
    key: _Pointer,
    sources: list[Any],
    alias: str,
    protecting_rows: list[Instance],
    counts: dict[str, int],
) -> Operation[None]:
    query = _build_referencing_query(key, sources, alias)
    # one more than is shown tells whether a count is needed
    first = query.order_by(*build_key_ordering(find_owner_meta(key)))._slice_rows(None, SHOWN + 1)
    protecting = yield from fetch_rows(first, batch_lazy=False)
    if not protecting:
        return
    total = len(protecting)
    if total > SHOWN:
        plan, args = query._compile_plan("count")
        total = (yield Statement("rows", plan.sql, args))[0][0]
    counts[f"{key.meta.name}.{key.name}"] = total
    protecting_rows += protecting[: SHOWN - len(protecting_rows)]


def _build_protected_error(
    meta: Meta, protecting_rows: list[Instance], counts: dict[str, int]
) -> ProtectedError:
    total = sum(counts.values())
    parts = ", ".join(f"{name}: {number}" for name, number in counts.items())
    model, _, field = next(iter(counts)).partition(".")
    return ProtectedError(
        f"{meta.name} cannot be deleted, got {total} {'row' if total == 1 else 'rows'} that "
        f"on_delete=PROTECT keeps ({parts}); delete these first, or let them point elsewhere",
        protected_objects=protecting_rows,
        count=total,
        model=model,
        fields=(field,),
    )


def _build_referencing_query(key: _Pointer, sources: list[Any], alias: str) -> ModelQuery:
    """The query for the rows whose foreign key is one of the keys of `sources`."""
    conditions = [cast("Condition", key.column.in_(source)) for source in sources]
    condition = functools.reduce(lambda one, other: one | other, conditions)
    return build_unfiltered_query(find_owner_meta(key), alias).filter(condition)


def _replace_sources_with_keys(
    circle: list[Meta], sources: dict[Meta, list[Any]], alias: str
) -> Operation[None]:
    """Put in place of the sources of a circle the keys of all rows that cascades reach in it."""
    known: dict[Meta, set[Any]] = {one: set() for one in circle}
    level = {one: sources[one] for one in circle}
    while any(level.values()):
        beneath: dict[Meta, list[Any]] = {one: [] for one in circle}
        for one, given in level.items():
            fresh: set[Any] = set()
            for source in given:
                keys = source._select_values("flat", (one.pk.column,), {})
                fresh.update((yield from fetch_rows(keys, batch_lazy=False)))
            # rows may point around in a circle: what is known already has been followed
            fresh -= known[one]
            known[one] |= fresh
            for key in _find_referencing_foreign_keys(one, "CASCADE") if fresh else ():
                if key.meta in known:
                    beneath[key.meta].append(_build_referencing_query(key, [list(fresh)], alias))
        level = beneath
    for one, keys in known.items():
        sources[one] = [list(keys)] if keys else []


def _find_referencing_foreign_keys(meta: Meta, on_delete: str) -> list[Any]:
    return [
        k for k in meta.pointers if k.on_delete == on_delete and k.target is meta and k.is_in_use
    ]


def _cascades_to_itself(meta: Meta) -> bool:
    return any(key.meta is meta for key in _find_referencing_foreign_keys(meta, "CASCADE"))


def _collect_cascaded_models(meta: Meta) -> frozenset[Meta]:
    """The model and all whose rows are deleted along with its rows."""
    found, waiting = {meta}, [meta]
    while waiting:
        for key in _find_referencing_foreign_keys(waiting.pop(), "CASCADE"):
            if key.meta not in found:
                found.add(key.meta)
                waiting.append(key.meta)
    return frozenset(found)


def _group_in_cascade_order(cascaded_models: dict[Meta, frozenset[Meta]]) -> Iterator[list[Meta]]:
    """The models in the order of their cascades; those of one circle together.

    Models of a circle reach the same models, and one before it reaches more.
    """
    circles: dict[frozenset[Meta], list[Meta]] = {}
    for one, further in cascaded_models.items():
        circles.setdefault(further, []).append(one)
    yield from (circles[key] for key in sorted(circles, key=len, reverse=True))
