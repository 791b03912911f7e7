"""The rows of a query, and relations of many instances with one query each. No I/O of its own.

With `batch_lazy` instances load what they lack later, in one query for all of a result (sync code
only). What is read in a transaction that has written may be undone with it: such instances carry
the transaction's journal, and `save()` after a rollback does not trust what they were read with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from treefold_orm._base.databases import Home
from treefold_orm._base.errors import FieldError, TooManyRows, TransactionRequired
from treefold_orm._base.journal import Journal, active
from treefold_orm._base.references import (
    find_cached_related,
    is_relation_cached,
    make_weak_owner_reference,
)
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._building.own_rows import extend_loaded_columns, filter_by_keys, filter_by_values
from treefold_orm._building.sources import (
    Prefetch,
    is_sliced,
    list_relation_source_columns,
    require_relation,
    split_prefetches,
)
from treefold_orm._building.starting import build_default_manager_query, build_unfiltered_query
from treefold_orm._expressions.nodes import contains_window
from treefold_orm._expressions.steps import Combine, DistinctOn, Lock
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Instance, Relation
from treefold_orm._runtime.connections import database_for

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery, QueryOf, R
    from treefold_orm._decode.plan import Plan


def require_lock_transaction() -> None:
    """Raise `TransactionRequired` where a lock would end with the statement that takes it."""
    journal = active.journal
    if journal is None or journal.single:
        raise build_lock_transaction_error()


def build_lock_transaction_error() -> TransactionRequired:
    """The error for `select_for_update()` outside of a transaction."""
    return TransactionRequired(
        "select_for_update() must run inside of a transaction, which holds the lock; open one with "
        "`with transaction():` or `async with transaction():`"
    )


def fetch_rows(query: QueryOf[R], *, batch_lazy: bool) -> Operation[list[R]]:
    """All rows."""
    most = query._max_rows
    # one row more than is allowed tells that there are too many, without reading all
    capped = query if most is None else query._slice_rows(None, most + 1)
    plan, args = capped._compile_plan("rows")
    if plan.locks:
        require_lock_transaction()
    raw = yield Statement("rows", plan.sql, args)
    if most is not None and len(raw) > most:
        raise build_too_many_rows_error(query)
    found = decode_rows(plan, raw, batch_lazy=batch_lazy)
    if query._prefetches:
        yield from prefetch_relations(found, query, batch_lazy=batch_lazy)
    if query._raises_lazy:
        disable_lazy_loading(found)
    return found


def build_too_many_rows_error(query: AnyQuery) -> TooManyRows:
    """The error for a query that has more rows than `limit_rows()` allows."""
    return TooManyRows(
        f"{query._meta.name}: more than {query._max_rows} rows: page the query or raise"
        " limit_rows()"
    )


def disable_lazy_loading(found: Sequence[object]) -> None:
    """Make instances, and those that were loaded along with them, refuse to load more."""
    waiting = list(found)
    while waiting:
        item = waiting.pop()
        if not isinstance(item, Instance) or item._raises_lazy:
            continue
        item._raises_lazy = True
        for value in item.__dict__.values():
            if isinstance(value, Instance):
                waiting.append(value)
            elif isinstance(value, list):
                items = cast("list[object]", value)
                waiting += items if items and isinstance(items[0], Instance) else ()


def prefetch_relations(
    instances: Sequence[Instance], outer: AnyQuery, *, batch_lazy: bool
) -> Operation[None]:
    """Load the relations of a query for all its instances, but for those of other databases."""
    specs, alias = outer._prefetches, outer._alias
    for spec in split_prefetches(specs, alias)[0]:
        here = instances
        parts = spec.path.split("__")
        for depth, part in enumerate(parts, start=1):
            if not here:
                break
            relation = require_relation(here[0]._meta, part)
            final = depth == len(parts)
            query = build_prefetch_query(relation, spec, specs) if final else None
            to_attr = spec.to_attr if final else None
            loaded = (
                query is None and to_attr is None and all(is_relation_cached(o, part) for o in here)
            )
            if not loaded:
                yield from load_and_attach_related(
                    here, relation, query, alias, to_attr=to_attr, batch_lazy=batch_lazy
                )
            if final:
                break
            here = collect_cached_related(here, part)


def build_prefetch_query(
    relation: Relation, spec: Prefetch, specs: Sequence[Prefetch]
) -> AnyQuery | None:
    """The query of a `Prefetch`, which loads the columns by which its rows are put in place, and
    those below them theirs; None where it has none.
    """
    if spec.query is None:
        return None
    meta = relation.target
    below = len(spec.path.split("__"))
    needed = [] if relation.kind == "many" else [relation.target_field]
    for other in specs:
        if other.path.startswith(f"{spec.path}__"):
            needed += list_relation_source_columns(meta, other.path.split("__")[below])
    return extend_loaded_columns(cast("AnyQuery", spec.query), needed)


def collect_cached_related(instances: Sequence[Instance], name: str) -> list[Instance]:
    found: dict[int, Instance] = {}
    for instance in instances:
        value = find_cached_related(instance, name)
        items = cast("list[Instance | None]", value) if isinstance(value, list) else [value]
        for item in items:
            if item is not None:
                found[id(item)] = item
    return list(found.values())


def load_and_attach_related(
    instances: Sequence[Instance],
    relation: Relation,
    query: AnyQuery | None,
    alias: str,
    *,
    to_attr: str | None,
    batch_lazy: bool,
) -> Operation[None]:
    """Load one relation for all instances and put the rows in place."""
    if query is None:
        query = _build_related_query(relation, alias)
    elif isinstance(query._alias, Home) and query._alias != alias:
        query = query.using(alias)  # its rows are of the database that they are read from
    target = to_attr or f"_cached_{relation.name}"
    if relation.kind == "forward":
        yield from _load_forward_relation(instances, relation, query, target, batch_lazy=batch_lazy)
    elif relation.kind == "reverse":
        yield from _load_reverse_relation(instances, relation, query, target, batch_lazy=batch_lazy)
    else:
        yield from _load_many_to_many(
            instances, relation, query, target, alias, batch_lazy=batch_lazy
        )


def _build_related_query(relation: Relation, alias: str) -> AnyQuery:
    if not relation.to_many:
        return build_unfiltered_query(relation.target, alias)
    made = build_default_manager_query(relation.target, alias)
    if later := split_prefetches(made._prefetches, alias)[1]:
        path = f"{relation.name}__{later[0].path}"
        raise FieldError(
            f"The manager of {relation.target.name} prefetches {later[0].path!r} from another "
            f"database than {alias!r}, which only a query of its own can; give that query to "
            f"Prefetch({relation.name!r}), or name Prefetch({path!r}) in the outer query"
        )
    return made


def fetch_related_by_key(
    relation: Relation, keys: list[Any], alias: str, *, batch_lazy: bool
) -> Operation[dict[Any, Instance]]:
    """Load the rows of a to-one relation; return them by the key that they are tied to."""
    field = relation.target_field
    query = filter_by_values(build_unfiltered_query(relation.target, alias), field, keys)
    found = yield from fetch_rows(query, batch_lazy=batch_lazy)
    return {getattr(item, field.attname): item for item in found}


def _load_forward_relation(
    instances: Sequence[Instance],
    relation: Relation,
    query: AnyQuery,
    attribute: str,
    *,
    batch_lazy: bool,
) -> Operation[None]:
    keys, field = _collect_source_keys(instances, relation), relation.target_field
    wanted = set(keys) - {None}
    found: list[Instance] = []
    if wanted:
        found = yield from fetch_rows(
            filter_by_values(query, field, list(wanted)), batch_lazy=batch_lazy
        )
    by_key = dict(zip(map(attrgetter(field.attname), found), found, strict=True))
    for instance, key in zip(instances, keys, strict=True):
        setattr(instance, attribute, by_key.get(key))


def _load_reverse_relation(
    instances: Sequence[Instance],
    relation: Relation,
    query: AnyQuery,
    attribute: str,
    *,
    batch_lazy: bool,
) -> Operation[None]:
    keys = _collect_source_keys(instances, relation)
    by_key: dict[Any, list[Instance]] = {key: [] for key in keys}
    field = relation.target_field
    if is_sliced(query):
        found = yield from _fetch_slice_per_key(query, field, list(by_key), batch_lazy=batch_lazy)
    else:
        found = yield from fetch_rows(
            filter_by_values(query, field, list(by_key)), batch_lazy=batch_lazy
        )
    for item, key in zip(found, map(attrgetter(field.attname), found), strict=True):
        by_key[key].append(item)
    back = f"_cached_{field.name}"
    # rows of one query are alike: where the first holds the way back, the query has loaded it
    if found and not hasattr(found[0], back):
        owners = dict(zip(keys, instances, strict=True))
        _refer_to_owners(owners, by_key, back, query._alias)
    for instance, key in zip(instances, keys, strict=True):
        held = by_key[key]
        setattr(instance, attribute, held if relation.to_many else (held[0] if held else None))


def _refer_to_owners(
    owners: Mapping[Any, Instance], by_key: Mapping[Any, list[Instance]], back: str, alias: str
) -> None:
    for key, items in by_key.items():
        owner = owners[key]
        # a row of another database keeps its way back, to a row with the same key there
        if not items or (owner._alias != alias and owner._row):
            continue
        reference = make_weak_owner_reference(owner, key, prefetched=True)
        for item in items:
            setattr(item, back, reference)


def _fetch_slice_per_key(
    query: AnyQuery, field: AnyField, keys: list[Any], *, batch_lazy: bool
) -> Operation[list[Instance]]:
    """The slice of the rows of each key."""
    whole = filter_by_values(query._replace_slice(0, None), field, keys)
    sliced = whole._replace_slice(query._low, query._high)
    plan, args = sliced._compile_partitioned_plan("parted", field, field)
    raw = yield Statement("rows", plan.sql, args)
    found = decode_rows(plan, raw, batch_lazy=batch_lazy)
    if query._prefetches:
        yield from prefetch_relations(found, query, batch_lazy=batch_lazy)
    if query._raises_lazy:
        disable_lazy_loading(found)
    return found


def _collect_source_keys(instances: Sequence[Instance], relation: Relation) -> list[Any]:
    """The values of the instances that their rows of the relation name."""
    source = relation.source.pk if relation.kind == "many" else relation.source_field
    return list(map(attrgetter(source.attname), instances))


def _load_many_to_many(
    instances: Sequence[Instance],
    relation: Relation,
    query: AnyQuery,
    attribute: str,
    alias: str,
    *,
    batch_lazy: bool,
) -> Operation[None]:
    keys = _collect_source_keys(instances, relation)
    by_key: dict[Any, list[Instance]] = {key: [] for key in keys}
    if _can_join_links(query):
        yield from _append_linked_rows_by_join(query, relation, by_key, batch_lazy=batch_lazy)
    elif is_sliced(query):
        raise FieldError(
            f"Prefetch({relation.name!r}) takes no slice of a query that annotates a window"
        )
    else:
        yield from _append_linked_rows_by_links(
            query, relation, by_key, alias, batch_lazy=batch_lazy
        )
    for instance, key in zip(instances, keys, strict=True):
        setattr(instance, attribute, by_key[key])


def _can_join_links(query: AnyQuery) -> bool:
    """Return True if a join of related rows to their owners leaves the rows as they are."""
    if query._max_rows is not None or query._has_step(Combine, DistinctOn, Lock):
        return False
    # a window would count a row once for each owner that the join repeats it for
    return not any(map(contains_window, (query._notes or {}).values()))


def _append_linked_rows_by_join(
    query: AnyQuery,
    relation: Relation,
    by_key: Mapping[Any, list[Instance]],
    *,
    batch_lazy: bool,
) -> Operation[None]:
    """Load the related rows of all owners by one statement, whose last column is the owner's key.

    | row of the statement | added to |
    |---|---|
    | `(4, "oak", 7)` | `by_key[7]` |
    | `(4, "oak", 9)` | `by_key[9]`, the same instance |
    """
    key = relation.source_field
    plan, args = query._compile_partitioned_plan("linked", key, relation, list(by_key))
    raw = yield Statement("rows", plan.sql, args)
    if not raw:
        return
    # counted from the front: Python looks up a negative place more slowly
    place, owner_place = plan.key_place, len(raw[0]) - 1
    unique = {row[place]: row for row in raw}
    found = decode_rows(plan, list(unique.values()), batch_lazy=batch_lazy)
    if query._prefetches:
        yield from prefetch_relations(found, query, batch_lazy=batch_lazy)
    if query._raises_lazy:
        disable_lazy_loading(found)
    items = dict(zip(unique, found, strict=True))
    decode = relation.source_field.decoder(database_for(query._alias).dialect.name)
    if decode is None:
        for row in raw:
            by_key[row[owner_place]].append(items[row[place]])
    else:
        for row in raw:
            by_key[decode(row[owner_place])].append(items[row[place]])


def _append_linked_rows_by_links(
    query: AnyQuery,
    relation: Relation,
    by_key: Mapping[Any, list[Instance]],
    alias: str,
    *,
    batch_lazy: bool,
) -> Operation[None]:
    """Load the links of all owners, and then the related rows by their keys."""
    assert relation.through is not None  # noqa: S101 - a many relation always has one
    first, second = relation.source_field, relation.target_field
    links = filter_by_values(build_unfiltered_query(relation.through, alias), first, list(by_key))
    wanted = links._select_values("tuples", (first.column, second.column), {})
    pairs = yield from fetch_rows(wanted, batch_lazy=False)
    owners: dict[Any, list[Any]] = {}
    for owner, key in dict.fromkeys(pairs):
        owners.setdefault(key, []).append(owner)
    if not owners:
        return
    found = yield from fetch_rows(filter_by_keys(query, list(owners)), batch_lazy=batch_lazy)
    for item in found:
        for owner in owners[item.pk]:
            by_key[owner].append(item)


def decode_rows(plan: Plan, rows: Sequence[Any], *, batch_lazy: bool) -> list[Any]:
    """Results of the rows of a statement."""
    found: list[Any] = (plan.decode_lazy if batch_lazy else plan.decode)(rows)
    if active.journal is not None:
        mark_read_in_transaction(found, active.journal)
    return found


def decode_row(plan: Plan, row: Any) -> Any:
    """The result of one row, alone in its result."""
    found = plan.decode_one(row)
    if active.journal is not None:
        mark_read_in_transaction([found], active.journal)
    return found


def mark_read_in_transaction(found: Sequence[Any], journal: Journal) -> None:
    """Note the transaction that rows were read in, where it has written before."""
    mark = journal.find_innermost_written_journal()
    # dictionaries and tuples of values() are never saved
    if mark is None or not found or not hasattr(found[0], "_read_in"):
        return
    joined = [name for name in found[0].__dict__ if name.startswith("_cached_")]
    for item in found:
        item._read_in = mark
    for name in joined:
        mark_read_in_transaction(
            [o for item in found if (o := item.__dict__[name]) is not None], mark
        )
