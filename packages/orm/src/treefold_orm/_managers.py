"""Manager: the way from a model to its queries, bound to each model when the model is defined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from treefold_orm._errors import ModelError
from treefold_orm._meta import Meta
from treefold_orm._query import M, QueryBuilder
from treefold_orm._querysets import QuerySet

if TYPE_CHECKING:
    from treefold_orm._model import Model

N = TypeVar("N", bound="Model")


def plain_query(meta: Meta, alias: str) -> QuerySet[Any]:
    """A query for all rows of a model, whatever its own managers would leave out."""
    manager: Manager[Any] = Manager[Any]().bound_to(meta)
    return manager.using(alias)


class ManagerAccess:
    """`Model.objects` before any manager is declared: gives each model its own `Manager`."""

    __slots__ = ()

    @overload
    def __get__(self, instance: None, owner: type[N]) -> Manager[N]: ...
    @overload
    def __get__(self, instance: Model, owner: type[Any]) -> Any: ...
    def __get__(self, instance: Model | None, owner: type[Any]) -> Any:
        if instance is not None:
            raise AttributeError("A manager belongs to the model class, not to an instance")
        if "_meta" not in owner.__dict__ or owner._meta.abstract:
            raise ModelError(f"{owner.__name__} is abstract: query a model that inherits from it")
        manager = Manager[Any]().bound_to(owner._meta)
        type.__setattr__(owner, "objects", manager)
        return manager


class Manager(QuerySet[M], ManagerAccess, Generic[M]):
    """The way from a model to its queries; subclass it to add methods or narrow `get_queryset`."""

    __slots__ = ()

    def __init__(self) -> None:
        self._meta = cast("Meta", None)
        self._key = ()

    def get_queryset(self) -> QuerySet[M]:
        """The query all others start from; override it to narrow what this manager sees."""
        return self

    def bound_to(self, meta: Meta) -> Self:
        """A manager of the same class for one model."""
        made = object.__new__(self.__class__)
        made._meta = meta
        made._key = (meta,)
        made._params = ()
        made._notes = None
        made._alias = "default"
        made._prefetches = ()
        made._low, made._high, made._max_rows, made._cache = 0, None, None, None
        kind: Any = type(self)
        if kind.get_queryset is not cast("Any", Manager).get_queryset and not meta.abstract:
            narrowed = made.get_queryset()
            for name in QueryBuilder.__slots__:
                setattr(made, name, getattr(narrowed, name))
        return made

    def __get__(self, instance: Any, owner: type[Any]) -> Self:
        if instance is not None:
            raise AttributeError("A manager belongs to the model class, not to an instance")
        return self
