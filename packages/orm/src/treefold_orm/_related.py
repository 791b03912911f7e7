"""The many side of relations on an instance: `author.posts`, `post.tags`.

A related manager is a query already narrowed to the instance; rows that were prefetched come
without a query.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from treefold_orm._errors import FieldError
from treefold_orm._managers import plain_query
from treefold_orm._meta import Relation
from treefold_orm._query import QueryBuilder
from treefold_orm._querysets import QuerySet
from treefold_orm._run import arun, run
from treefold_orm._statement import Operation

if TYPE_CHECKING:
    from treefold_orm._model import Model

M = TypeVar("M", bound="Model")


class RelatedSet(Generic[M]):
    """A to-many relation as seen on the class; use its name in lookups and aggregates."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation

    def __repr__(self) -> str:
        return f"<RelatedSet {self.relation.source.name}.{self.relation.name}>"


class RelatedManager(QuerySet[M], Generic[M]):
    """The rows that point to one instance."""

    __slots__ = ("_instance", "_relation")

    _instance: Model
    _relation: Relation

    def _clone(self) -> Self:
        made = super()._clone()
        made._instance = self._instance
        made._relation = self._relation
        return made

    def all(self) -> Self:
        """The related rows; those that were prefetched come without a query."""
        made = self._clone()
        made._cache = self._cache
        return made

    def _new(self, values: dict[str, Any]) -> M:
        return super()._new({self._relation.target_field.name: self._instance, **values})


class ManyRelated(RelatedManager[M], Generic[M]):
    """The rows connected to one instance through a many-to-many relation."""

    __slots__ = ()

    def _new(self, values: dict[str, Any]) -> M:
        return cast("M", self._relation.target.model(**values))

    def create(self, /, **values: Any) -> M:
        """Insert a row and connect it; return its instance."""
        work = self._inserted(values)
        return run(self._alias, work, "await acreate()", write=True, atomic=True)

    def acreate(self, /, **values: Any) -> Coroutine[Any, Any, M]:
        """`create` for async code."""
        return arun(self._alias, self._inserted(values), write=True, atomic=True)

    def add(self, *others: M | Any) -> None:
        """Connect instances or keys; those that are connected stay so."""
        run(self._alias, self._add(others), "await aadd()", write=True, atomic=True)

    async def aadd(self, *others: M | Any) -> None:
        """`add` for async code."""
        await arun(self._alias, self._add(others), write=True, atomic=True)

    def remove(self, *others: M | Any) -> int:
        """Disconnect instances or keys; return how many were connected."""
        return run(self._alias, self._remove(others), "await aremove()", write=True)

    async def aremove(self, *others: M | Any) -> int:
        """`remove` for async code."""
        return await arun(self._alias, self._remove(others), write=True)

    def clear(self) -> int:
        """Disconnect all; return how many were connected."""
        return run(self._alias, self._clear(), "await aclear()", write=True)

    async def aclear(self) -> int:
        """`clear` for async code."""
        return await arun(self._alias, self._clear(), write=True)

    def set(self, others: Sequence[M | Any]) -> None:
        """Connect exactly these instances or keys."""
        run(self._alias, self._set(others), "await aset()", write=True, atomic=True)

    async def aset(self, others: Sequence[M | Any]) -> None:
        """`set` for async code."""
        await arun(self._alias, self._set(others), write=True, atomic=True)

    # -- operations -------------------------------------------------------------------------------

    def _inserted(self, values: dict[str, Any]) -> Operation[M]:
        made = yield from super()._inserted(values)
        yield from self._add([made])
        return made

    def _links(self) -> QuerySet[Any]:
        relation = self._relation
        assert relation.through is not None  # noqa: S101 - a many relation always has one
        links = plain_query(relation.through, self._alias)
        return links.filter(**{relation.source_field.name: self._instance.pk})

    def _keys(self, others: Sequence[Any]) -> list[Any]:
        field = self._relation.target_field
        return list(dict.fromkeys(field.coerce(other) for other in others))

    def _add(self, others: Sequence[Any]) -> Operation[None]:
        from treefold_orm import _bulk

        relation = self._relation
        if not others:
            return
        assert relation.through is not None  # noqa: S101 - a many relation always has one
        first, second = relation.source_field, relation.target_field
        through = relation.through.model
        keys = self._keys(others)
        if not relation.through.auto_created:  # nothing in the table may keep a pair single
            present = yield from self._connected(
                self._links().filter(**{f"{second.name}__in": keys})
            )
            keys = [key for key in keys if key not in present]
        links = [through(**{first.attname: self._instance.pk, second.attname: key}) for key in keys]
        from treefold_orm._compile._writes import Conflict

        rule = Conflict((first, second)) if relation.through.auto_created else None
        yield from _bulk.create(
            relation.through, cast("list[Any]", links), self._alias, batch_size=None, rule=rule
        )
        self._forget()

    def _remove(self, others: Sequence[Any]) -> Operation[int]:
        from treefold_orm._operations import delete

        links = self._links().filter(
            **{f"{self._relation.target_field.name}__in": self._keys(others)}
        )
        count = yield from delete(links)
        self._forget()
        return count

    def _clear(self) -> Operation[int]:
        from treefold_orm._operations import delete

        count = yield from delete(self._links())
        self._forget()
        return count

    def _connected(self, links: QuerySet[Any]) -> Operation[set[Any]]:
        from treefold_orm._operations import rows

        keys = links.values_list(self._relation.target_field.attname, flat=True)
        return set((yield from rows(keys, peers=False)))

    def _set(self, others: Sequence[Any]) -> Operation[None]:
        from treefold_orm._operations import delete

        second = self._relation.target_field
        wanted = set(self._keys(others))
        present = yield from self._connected(self._links())
        if gone := present - wanted:
            yield from delete(self._links().filter(**{f"{second.name}__in": list(gone)}))
        yield from self._add(list(wanted - present))
        self._forget()

    def _forget(self) -> None:
        self._instance.__dict__.pop(f"_cached_{self._relation.name}", None)


def related_manager(instance: Model, relation: Relation) -> RelatedManager[Any]:
    """The manager of a to-many relation of one instance."""
    if instance.pk is None:
        raise FieldError(f"This {instance._meta.name} is not saved: it has no {relation.name} yet")
    kind: Any = ManyRelated if relation.kind == "many" else RelatedManager
    made: RelatedManager[Any] = object.__new__(kind)
    base = plain_query(relation.target, instance._alias)
    for name in QueryBuilder.__slots__:
        setattr(made, name, getattr(base, name))
    made._instance, made._relation = instance, relation
    narrowed = _narrowed(made, instance, relation)
    narrowed._cache = instance.__dict__.get(f"_cached_{relation.name}")
    return narrowed


def _narrowed(
    made: RelatedManager[Any], instance: Model, relation: Relation
) -> RelatedManager[Any]:
    if relation.kind == "reverse":
        return made.filter(**{relation.target_field.name: instance.pk})
    for name, back in relation.target.relations.items():
        if back.kind == "many" and back.source_field is relation.target_field:
            return made.filter(**{name: instance.pk})
    assert relation.through is not None  # noqa: S101 - a many relation always has one
    links = plain_query(
        relation.through, instance._alias
    )  # no way back is declared: go over the keys
    links = links.filter(**{relation.source_field.name: instance.pk})
    return made.filter(pk__in=links.values(relation.target_field.attname))


class RelationAccess:
    """The descriptor of a reverse or many-to-many relation."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation

    def __get__(self, instance: Model | None, owner: type[Any]) -> Any:
        relation = self._relation
        if instance is None:
            return RelatedSet[Any](relation)
        if relation.to_many:
            return related_manager(instance, relation)
        cached = f"_cached_{relation.name}"
        if cached not in instance.__dict__:
            from treefold_orm import _lazy

            _lazy.load_related(instance, relation)
        found = instance.__dict__[cached]
        if found is None:
            raise relation.target.model.DoesNotExist(
                f"This {instance._meta.name} has no {relation.name}"
            )
        return found

    def __set__(self, instance: Model, value: Any) -> None:
        name = self._relation.name
        raise FieldError(
            f"{instance._meta.name}.{name} cannot be assigned: use its add, set or create"
        )


class Reverse(Generic[M]):
    """Annotation for the name of a way back, for type checkers: `posts: Reverse["Post"]`."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type[Any]) -> RelatedSet[M]: ...
        @overload
        def __get__(self, instance: Model, owner: type[Any]) -> RelatedManager[M]: ...
        def __get__(self, instance: Model | None, owner: type[Any]) -> Any: ...
