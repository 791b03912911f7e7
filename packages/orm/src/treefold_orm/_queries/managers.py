"""Manager: the way from a model to its queries, bound to each model when the model is defined.

A manager holds its model and an alias, never rows: every access and every call makes a new query by
`get_queryset`. The methods of a query exist on it as delegates, made once when this module loads.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from treefold_orm._base.errors import ModelError
from treefold_orm._fields.meta import Meta
from treefold_orm._queries import operations
from treefold_orm._queries.query import M
from treefold_orm._queries.querysets import QuerySet
from treefold_orm._queries.starting import one_exact, start
from treefold_orm._queries.steps import QuerySource
from treefold_orm._runtime.run import arun, run

if TYPE_CHECKING:
    from treefold_orm._expressions.conditions import Condition
    from treefold_orm._expressions.nodes import SubqueryNode
    from treefold_orm._expressions.scope import Scope
    from treefold_orm._models.model import Model
    from treefold_orm._queries.manager_types import ManagerMethods

N = TypeVar("N", bound="Model")
Q = TypeVar("Q", bound=QuerySet[Any])


def plain_query(meta: Meta, alias: str) -> QuerySet[Any]:
    """A query for all rows of a model, whatever its own managers would leave out."""
    return start(cast("type[QuerySet[Any]]", QuerySet), meta, alias)


def default_query(meta: Meta, alias: str) -> QuerySet[Any]:
    """The query of the model's default manager: the first that the model declares, else a plain
    one.
    """
    manager = meta.default_manager
    return plain_query(meta, alias) if manager is None else manager.db_manager(alias).get_queryset()


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
        unbound: Manager[Any] = Manager()
        manager = unbound.bound_to(owner._meta)
        type.__setattr__(owner, "objects", manager)
        return manager


if not TYPE_CHECKING:  # the delegates are made below

    class ManagerMethods(QuerySource, Generic[M]):
        """The methods of a query, each on a new query."""


class Manager(ManagerMethods[M], Generic[M]):
    """The way from a model to its queries.

    Subclass it to add methods, or to narrow what all its queries see in `get_queryset`, which runs
    for every query. Methods of a query class come in with `from_queryset`.
    """

    _meta: Meta = cast("Meta", None)
    _alias: str = "default"
    _plain = False  # get_queryset() gives all rows, as a QuerySet
    _query_class: type[QuerySet[Any]] = QuerySet

    def __init__(self) -> None:
        """Make a manager; the model that declares it gives it its place."""

    def get_queryset(self) -> QuerySet[M]:
        """The query all others start from, a new one each time; override it to narrow what this
        manager sees.
        """
        if self._meta is None:  # pyright: ignore[reportUnnecessaryComparison] - None until it is bound
            raise ModelError(
                f"{type(self).__name__} must be an attribute of a model before it is used; declare "
                "it in the class body"
            )
        return self._query_class(self._meta.model, using=self._alias)

    @classmethod
    def from_queryset(cls, queryset_class: type[Q], class_name: str | None = None) -> type[Q]:
        """Return a subclass of this manager whose queries are of `queryset_class`, with its
        methods.

        Left out are private methods and those with `queryset_only = True`. Type checkers see the
        methods: to them the manager is a query of that class.
        """
        if not issubclass(cast("type[Any]", queryset_class), QuerySet):
            raise ModelError(
                f"from_queryset() takes a subclass of QuerySet, got {queryset_class!r}"
            )
        body: dict[str, Any] = {"_query_class": queryset_class, "__module__": cls.__module__}
        for name, function in _functions(queryset_class):
            only = getattr(function, "queryset_only", None)
            if not hasattr(cls, name) and not (only or (only is None and name.startswith("_"))):
                body[name] = _delegate(name, function)
        name = class_name or f"{cls.__name__}From{queryset_class.__name__}"
        return cast("type[Q]", type(name, (cls,), body))

    def bound_to(self, meta: Meta) -> Self:
        """This manager for one model."""
        made = copy.copy(self)
        made._meta = meta
        own = type(self).get_queryset is not cast("Any", Manager).get_queryset
        made._plain = not (own or self._query_class is not QuerySet or meta.abstract)
        return made

    def db_manager(self, using: str) -> Self:
        """This manager for the database behind another alias."""
        made = copy.copy(self)
        made._alias = using
        return made

    @property
    def model(self) -> type[M]:
        """The model whose rows these are."""
        return cast("type[M]", self._meta.model)

    @property
    def db(self) -> str:
        """The alias of the database that is asked."""
        return self._alias

    _db = db

    # -- calls that need no query of their own ----------------------------------------------------

    def get(self, /, *conditions: Condition, **lookups: Any) -> M:
        if self._plain and len(lookups) == 1 and not conditions:
            ready = one_exact(self._meta, self._alias, lookups)
            if ready is not None:
                work = operations.one(self._meta, ready[0], ready[1])
                return run(self._alias, work, "await aget()")
        return self.get_queryset().get(*conditions, **lookups)

    def aget(self, /, *conditions: Condition, **lookups: Any) -> Coroutine[Any, Any, M]:
        if self._plain and len(lookups) == 1 and not conditions:
            ready = one_exact(self._meta, self._alias, lookups)
            if ready is not None:
                return arun(self._alias, operations.one(self._meta, ready[0], ready[1]))
        return self.get_queryset().aget(*conditions, **lookups)

    def all(self) -> QuerySet[M]:
        """A new query for all rows that this manager sees."""
        return self.get_queryset()

    # -- Python's own protocols -------------------------------------------------------------------

    def __iter__(self) -> Iterator[M]:
        return iter(self.get_queryset())

    def __aiter__(self) -> AsyncIterator[M]:
        return self.get_queryset().__aiter__()

    def __await__(self) -> Generator[Any, Any, list[M]]:
        return self.get_queryset().__await__()

    if not TYPE_CHECKING:

        def __getitem__(self, index):
            return self.get_queryset()[index]

    def __and__(self, other: Any) -> QuerySet[M]:
        return self.get_queryset() & other

    def __or__(self, other: Any) -> QuerySet[M]:
        return self.get_queryset() | other

    def __len__(self) -> int:  # a TypeError, which list() passes over
        raise TypeError(f"{self!r} has no length: call count(), or len() of a query as in all()")

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} has no truth value: call exists()")

    def __get__(self, instance: Any, owner: type[Any]) -> Self:
        if instance is not None:
            raise AttributeError("A manager belongs to the model class, not to an instance")
        return self

    def _freeze_subquery(self, scope: Scope) -> SubqueryNode:
        return self.get_queryset()._freeze_subquery(scope)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._meta.name if self._meta else 'no model'}>"


def no_attribute(query: QuerySet[Any], name: str) -> AttributeError:
    """The error for an attribute that a query does not have, though a manager of its model may."""
    kind, model = type(query).__name__, query._meta.model
    for title, value in vars(model).items():
        own = isinstance(value, Manager) and not hasattr(Manager, name)
        if own and not name.startswith("_") and hasattr(cast("Any", value), name):
            return AttributeError(
                f"{name!r} is a method of the manager {model.__name__}.{title}, not of its "
                "queries; put it on a QuerySet class, and use as_manager() or "
                "Manager.from_queryset()"
            )
    return AttributeError(f"{kind!r} object has no attribute {name!r}")


def _delegate(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.get_queryset(), name)(*args, **kwargs)

    return method


def _functions(kind: type[Any]) -> list[tuple[str, FunctionType]]:
    named = [(name, getattr(kind, name)) for name in dir(kind)]
    return [(name, value) for name, value in named if isinstance(value, FunctionType)]


for _name, _function in _functions(QuerySet):
    if not _name.startswith("_"):
        setattr(ManagerMethods, _name, _delegate(_name, _function))
