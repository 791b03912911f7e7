"""Relations on an instance without a column of its own: `author.posts`, `post.tags`, and the way
back of a one-to-one, `author.profile`.

A related manager makes queries that are narrowed to the instance, a new one for each call; rows
that were prefetched come without a query. The way back of a one-to-one gives the one row itself.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.journal import drop_cache_with_undo
from treefold_orm._base.statement import ATOMIC, CoroutineOf, Operation
from treefold_orm._building.own_rows import filter_by_keys, filter_by_value
from treefold_orm._building.starting import build_unfiltered_query, instantiate_query
from treefold_orm._expressions.lookups import Lookup, parse_lookup
from treefold_orm._expressions.steps import Filter
from treefold_orm._fields.meta import Instance, Relation
from treefold_orm._models import related_links, related_rows
from treefold_orm._models.related_rows import OwnedRelation
from treefold_orm._operations import lazy, saving
from treefold_orm._queries.managers import Manager, QuerySet
from treefold_orm._runtime.run import arun, run

M = TypeVar("M", bound=Instance)
T = TypeVar("T")


class RelatedSet(Generic[M]):
    """A to-many relation as seen on the class; use its name in lookups and aggregates."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation

    @property
    def through(self) -> type[Any]:
        """The model whose rows make a many-to-many relation: `Post.tags.through.objects`."""
        return _require_through_model(self.relation)

    def __repr__(self) -> str:
        return f"<RelatedSet {self.relation.source.name}.{self.relation.name}>"


class RelatedManager(Manager[M], Generic[M]):
    """The rows that point to one instance.

    Its queries begin with those of the other model's default manager, whose methods it has.
    """

    _instance: Instance
    _relation: Relation
    _owner: Lookup | None  # of a row of the relation: the row it belongs to
    _writes: Any = related_rows
    _defaults: Mapping[str, Any] | None = None

    def get_queryset(self) -> QuerySet[M]:
        """The related rows; those that were prefetched come without a query."""
        instance, relation, owner = self._instance, self._relation, self._owner
        if owner is not None and relation.target.default_manager is None:
            # what filter() makes of all rows: instances in a loop are often asked for theirs
            kind = cast("type[QuerySet[M]]", QuerySet)
            query: QuerySet[M] = instantiate_query(kind, self._meta, self._alias)
            query._key = (self._meta, Filter(0, (owner,)))
            key = instance.pk
            # a key that came from the database needs no check
            query._params = (key if instance._row is not None else owner.prepare_value(key)[1],)
        else:
            query = _filter_by_owner(super().get_queryset(), instance, relation, owner)
        query._parent = self
        query._cache = getattr(instance, f"_cached_{relation.name}", None)
        return query

    def add(self, *others: M | Any) -> None:
        """Point the rows of these instances or keys to this one.

        Raises:
            DoesNotExist: a row is not stored; then none is changed.
            FieldError: an instance is of another model or database, or was never saved.
        """
        run(self._alias, self._add_related(others), "await aadd()", write=True)

    async def aadd(self, *others: M | Any) -> None:
        """`add` for async code."""
        await arun(self._alias, self._add_related(others), write=True)

    def remove(self, *others: M | Any) -> int:
        """Set the foreign key of these instances or keys to NULL; return how many pointed here.

        Raises `FieldError` where the foreign key is not nullable.
        """
        return run(self._alias, self._remove_related(others), "await aremove()", write=True)

    async def aremove(self, *others: M | Any) -> int:
        """`remove` for async code."""
        return await arun(self._alias, self._remove_related(others), write=True)

    def clear(self) -> int:
        """Set the foreign key of every row that points here to NULL; return how many did.

        Raises `FieldError` where the foreign key is not nullable.
        """
        return run(self._alias, self._clear_related(), "await aclear()", write=True)

    async def aclear(self) -> int:
        """`clear` for async code."""
        return await arun(self._alias, self._clear_related(), write=True)

    def set(self, others: Iterable[M | Any], *, clear: bool = False) -> None:
        """Point exactly these instances, keys or rows of a query here; others get NULL.

        With `clear`, all present rows are removed first instead of only those that must go.
        """
        run(self._alias, self._replace_related(others, clear=clear), "await aset()", write=True)

    async def aset(self, others: Iterable[M | Any], *, clear: bool = False) -> None:
        """`set` for async code."""
        await arun(self._alias, self._replace_related(others, clear=clear), write=True)

    # -- operations -------------------------------------------------------------------------------

    @property
    def _cache_name(self) -> str:
        return f"_cached_{self._relation.name}"

    def _drop_cache_after(self, work: Operation[T]) -> Operation[T]:
        # first the work: where it fails, what was loaded is still true
        outcome = yield from work
        drop_cache_with_undo(self._instance, self._cache_name)
        return outcome

    def _build_related(self, values: dict[str, Any]) -> M:
        owner = self._relation.target_field.name
        return cast("M", self._relation.target.model(**{owner: self._instance, **values}))

    def _after_related_insert(self, made: M) -> Operation[None]:
        """Forget the prefetched rows, which lack an inserted one; many-to-many adds its link."""
        drop_cache_with_undo(self._instance, self._cache_name)
        yield from ()

    def _insert_related(self, values: dict[str, Any], alias: str) -> Operation[M]:
        made = yield from saving.insert_instance(self._build_related(values), alias)
        yield from self._after_related_insert(made)
        return made

    @property
    def _owned(self) -> OwnedRelation:
        return OwnedRelation(self._instance, self._relation, self._alias, self._defaults)

    def _add_related(self, others: Sequence[Any]) -> Operation[None]:
        return self._drop_cache_after(self._writes.add_related(self._owned, others))

    def _remove_related(self, others: Sequence[Any]) -> Operation[int]:
        return self._drop_cache_after(self._writes.remove_related(self._owned, others))

    def _clear_related(self) -> Operation[int]:
        return self._drop_cache_after(self._writes.clear_related(self._owned))

    def _replace_related(self, others: Any, *, clear: bool) -> Operation[None]:
        work = self._writes.replace_related(self._owned, others, clear_first=clear)
        return self._drop_cache_after(work)


class ManyRelated(RelatedManager[M], Generic[M]):
    """The rows connected to one instance through a many-to-many relation.

    `through_defaults` are values, or functions that give them, for new rows of the through model.
    """

    _writes = related_links

    @property
    def through(self) -> type[Any]:
        """The model whose rows make the relation."""
        return _require_through_model(self._relation)

    def add(self, *others: M | Any, through_defaults: Mapping[str, Any] | None = None) -> None:
        """Connect instances or keys; those that are connected stay so."""
        work = self._with_through_defaults(through_defaults)._add_related(others)
        run(self._alias, work, "await aadd()", write=True)

    async def aadd(
        self, *others: M | Any, through_defaults: Mapping[str, Any] | None = None
    ) -> None:
        """`add` for async code."""
        work = self._with_through_defaults(through_defaults)._add_related(others)
        await arun(self._alias, work, write=True)

    def remove(self, *others: M | Any) -> int:
        """Disconnect instances or keys; return how many were connected."""
        return super().remove(*others)

    def clear(self) -> int:
        """Disconnect all; return how many were connected."""
        return super().clear()

    def set(
        self,
        others: Iterable[M | Any],
        *,
        clear: bool = False,
        through_defaults: Mapping[str, Any] | None = None,
    ) -> None:
        """Connect exactly these instances, keys or rows of a query.

        Those that are connected stay so; with `clear`, all are disconnected first.
        """
        work = self._with_through_defaults(through_defaults)._replace_related(others, clear=clear)
        run(self._alias, work, "await aset()", write=True)

    async def aset(
        self,
        others: Iterable[M | Any],
        *,
        clear: bool = False,
        through_defaults: Mapping[str, Any] | None = None,
    ) -> None:
        """`set` for async code."""
        work = self._with_through_defaults(through_defaults)._replace_related(others, clear=clear)
        await arun(self._alias, work, write=True)

    def create(self, /, *, through_defaults: Mapping[str, Any] | None = None, **values: Any) -> M:
        """Insert a row and connect it; return its instance."""
        return self._with_through_defaults(through_defaults).get_queryset().create(**values)

    def acreate(
        self, /, *, through_defaults: Mapping[str, Any] | None = None, **values: Any
    ) -> CoroutineOf[M]:
        """`create` for async code."""
        return self._with_through_defaults(through_defaults).get_queryset().acreate(**values)

    def get_or_create(
        self,
        defaults: Mapping[str, Any] | None = None,
        /,
        *,
        through_defaults: Mapping[str, Any] | None = None,
        **lookups: Any,
    ) -> tuple[M, bool]:
        """As `get_or_create` of a query; a row that is inserted is connected."""
        query = self._with_through_defaults(through_defaults).get_queryset()
        return query.get_or_create(defaults, **lookups)

    def aget_or_create(
        self,
        defaults: Mapping[str, Any] | None = None,
        /,
        *,
        through_defaults: Mapping[str, Any] | None = None,
        **lookups: Any,
    ) -> CoroutineOf[tuple[M, bool]]:
        """`get_or_create` for async code."""
        query = self._with_through_defaults(through_defaults).get_queryset()
        return query.aget_or_create(defaults, **lookups)

    def update_or_create(
        self,
        defaults: Mapping[str, Any] | None = None,
        create_defaults: Mapping[str, Any] | None = None,
        /,
        *,
        through_defaults: Mapping[str, Any] | None = None,
        **lookups: Any,
    ) -> tuple[M, bool]:
        """As `update_or_create` of a query; a row that is inserted is connected."""
        query = self._with_through_defaults(through_defaults).get_queryset()
        return query.update_or_create(defaults, create_defaults, **lookups)

    def aupdate_or_create(
        self,
        defaults: Mapping[str, Any] | None = None,
        create_defaults: Mapping[str, Any] | None = None,
        /,
        *,
        through_defaults: Mapping[str, Any] | None = None,
        **lookups: Any,
    ) -> CoroutineOf[tuple[M, bool]]:
        """`update_or_create` for async code."""
        query = self._with_through_defaults(through_defaults).get_queryset()
        return query.aupdate_or_create(defaults, create_defaults, **lookups)

    # -- operations -------------------------------------------------------------------------------

    def _with_through_defaults(self, defaults: Mapping[str, Any] | None) -> Self:
        if defaults is None:
            return self
        made = copy.copy(self)
        made._defaults = defaults
        return made

    def _build_related(self, values: dict[str, Any]) -> M:
        return cast("M", self._relation.target.model(**values))

    def _after_related_insert(self, made: M) -> Operation[None]:
        return self._add_related([made])

    def _insert_related(self, values: dict[str, Any], alias: str) -> Operation[M]:
        yield ATOMIC
        return (yield from super()._insert_related(values, alias))


def _require_through_model(relation: Relation) -> type[Any]:
    if relation.through is None:
        raise AttributeError(
            f"{relation.source.name}.{relation.name} has no through model: it is the way back of "
            f"{relation.target.name}.{relation.target_field.name}"
        )
    return relation.through.model


def build_related_manager(
    instance: Instance, relation: Relation, owner_lookup: Lookup | None
) -> RelatedManager[Any]:
    """The manager of a to-many relation of one instance."""
    if instance.pk is None:
        raise FieldError(f"This {instance._meta.name} is not saved: it has no {relation.name} yet")
    kind: Any = ManyRelated if relation.kind == "many" else RelatedManager
    default = relation.target.default_manager
    if default is None:
        made: RelatedManager[Any] = object.__new__(kind)
        made._meta = relation.target
    else:
        made = object.__new__(_combine_manager_classes(kind, default.__class__))
        made.__dict__.update(default.__dict__)
    # plain, get() would go past get_queryset(), which narrows to this instance
    made._plain, made._alias = False, instance._alias
    made._instance, made._relation, made._owner = instance, relation, owner_lookup
    return made


@functools.cache
def _combine_manager_classes(kind: type[Any], default: type[Any]) -> type[Any]:
    return type(f"{kind.__name__}From{default.__name__}", (kind, default), {})


def _find_owner_lookup(relation: Relation) -> Lookup | None:
    """The lookup of a related row for the row it belongs to; None where no way back is declared, or
    where names do not reach the key because it is a secret.
    """
    if relation.source.pk.sensitive or relation.target_field.sensitive:
        return None
    if relation.kind == "reverse":
        return parse_lookup(relation.target, relation.target_field.name)
    for name, back in relation.target.relations.items():
        if back.kind == "many" and back.source_field is relation.target_field:
            return parse_lookup(relation.target, name)
    return None


def _filter_by_owner(
    query: QuerySet[Any], instance: Instance, relation: Relation, owner_lookup: Lookup | None
) -> QuerySet[Any]:
    if owner_lookup is not None:
        return query.filter(**{owner_lookup.name: instance.pk})
    if relation.kind == "reverse":
        return filter_by_value(query, relation.target_field, instance.pk)
    assert relation.through is not None  # noqa: S101 - a many relation always has one
    # no way back is declared, or its key is a secret: go over the keys
    links = build_unfiltered_query(relation.through, instance._alias)
    links = filter_by_value(links, relation.source_field, instance.pk)
    return filter_by_keys(query, links._select_values("dicts", (relation.target_field.column,), {}))


class RelationAccess:
    """The descriptor of a reverse or many-to-many relation."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        # in a tuple, since None is an answer too
        self._owner: tuple[Lookup | None] | None = None  # found at first use

    def __get__(self, instance: Instance | None, owner: type[Any]) -> Any:
        relation = self._relation
        if instance is None:
            return RelatedSet[Any](relation)
        if relation.to_many:
            if self._owner is None:
                self._owner = (_find_owner_lookup(relation),)
            return build_related_manager(instance, relation, self._owner[0])
        cached = f"_cached_{relation.name}"
        if cached not in instance.__dict__:
            lazy.load_related(instance, relation)
        found = instance.__dict__[cached]
        if found is None:
            raise relation.target.model.DoesNotExist(
                f"This {instance._meta.name} has no {relation.name}"
            )
        return found

    def __set__(self, instance: Instance, value: Any) -> None:
        relation, owner = self._relation, instance._meta
        if relation.to_many:
            raise FieldError(
                f"{owner.name}.{relation.name} cannot be assigned; use its add(), set() or create()"
            )
        if not isinstance(value, relation.target.model):
            raise FieldError(
                f"{owner.name}.{relation.name} takes a {relation.target.name}, not a "
                f"{type(value).__name__}"
            )
        setattr(value, relation.target_field.name, instance)  # it is saved with the other row
        instance.__dict__[f"_cached_{relation.name}"] = value
