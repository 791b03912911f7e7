"""QuerySet: queries for instances; Manager: the way from a model to its queries.

A manager is bound to each model when the model is defined. It holds its model and an alias, never
rows: every access and every call makes a new query by `get_queryset`. The methods of a query exist
on it as delegates, made once when this module loads.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from treefold_orm._base.databases import DEFAULT, Home
from treefold_orm._base.errors import FieldError, ModelError
from treefold_orm._base.statement import CoroutineOf
from treefold_orm._building.query import M
from treefold_orm._building.starting import compile_exact_get_plan, initialize_query
from treefold_orm._expressions.resolving import QuerySource
from treefold_orm._fields.meta import Instance, Meta
from treefold_orm._operations import creating, fetching
from treefold_orm._queries.base_query import BaseQuery
from treefold_orm._queries.bulk_queries import BulkQuery
from treefold_orm._queries.delivering import aprefetch_elsewhere, prefetch_elsewhere
from treefold_orm._runtime.run import arun, run
from treefold_orm._terms.operators import Condition, Expression

if TYPE_CHECKING:
    from treefold_orm._building.joins import Joinable
    from treefold_orm._building.query import AnyQuery
    from treefold_orm._building.sources import Prefetch
    from treefold_orm._expressions.nodes import SubqueryNode
    from treefold_orm._expressions.scope import Scope
    from treefold_orm._functions.aggregates import Aggregate
    from treefold_orm._terms.columns import AnyColumn, Shaped

N = TypeVar("N", bound=Instance)
Q = TypeVar("Q", bound="QuerySet[Any]")


class QuerySet(BaseQuery[M, M], BulkQuery[M], Generic[M]):
    """A query for instances of a model, which can also make new ones.

    Subclass it to add methods that follow each other, and make a manager of it with `as_manager`:

        class BookQuery(QuerySet["Book"]):
            def long(self) -> Self:
                return self.filter(pages__gte=500)

        class Book(Model):
            objects = BookQuery.as_manager()

    A subclass that keeps values of its own copies them in `_clone`.
    """

    __slots__ = ()

    def __init__(self, model: type[M] | None = None, using: str | None = None) -> None:
        """Query all rows of `model`, in the database behind the alias `using`."""
        meta: Any = getattr(model, "_meta", None)
        if meta is None:
            raise FieldError(f"{type(self).__name__}() takes a model, got {model!r}")
        if meta.abstract:
            raise ModelError(f"{meta.name} is abstract: query a model that inherits from it")
        initialize_query(self, meta, using or meta.database)

    @classmethod
    def as_manager(cls) -> Self:
        """Return a manager whose queries are of this class, with its methods.

        Type checkers see the methods: to them the manager is a query of this class.
        """
        return Manager.from_queryset(cls)()

    @property
    def model(self) -> type[M]:
        """The model whose rows these are."""
        return cast("type[M]", self._meta.model)

    @property
    def db(self) -> str:
        """The alias of the database that is asked."""
        return self._alias

    if TYPE_CHECKING:  # for a manager made by as_manager(), as an attribute of its model

        @overload
        def __get__(self, instance: None, owner: type[object]) -> Self: ...
        @overload
        def __get__(self, instance: Instance, owner: type[object]) -> Any: ...
        def __get__(self, instance: Instance | None, owner: type[object]) -> Any: ...

    else:

        def __getattr__(self, name):
            raise build_attribute_error(self, name)

    def create(self, /, **values: Any) -> M:
        """Insert a row; return its instance.

        A `save()` that the model overrides is what inserts it, here and in `get_or_create` and
        `update_or_create`; in their async twins it is `asave()`.
        """
        return _run_write(self, "create", creating.create_row, values)

    def acreate(self, /, **values: Any) -> CoroutineOf[M]:
        """`create` for async code."""
        return _arun_write(self, "acreate", creating.create_row, values)

    def get_or_create(
        self, defaults: Mapping[str, Any] | None = None, /, **lookups: Any
    ) -> tuple[M, bool]:
        """Return the matching row, or insert one from `lookups` and `defaults`; and whether it was
        inserted: `get_or_create(name="x", defaults={"age": 5})`.

        For a model with a field called `defaults`, give them first and without a name.
        """
        made = creating.pop_defaults(defaults, lookups, "defaults") or {}
        return _run_write(self, "get_or_create", creating.get_or_create, lookups, made)

    def aget_or_create(
        self, defaults: Mapping[str, Any] | None = None, /, **lookups: Any
    ) -> CoroutineOf[tuple[M, bool]]:
        """`get_or_create` for async code."""
        made = creating.pop_defaults(defaults, lookups, "defaults") or {}
        return _arun_write(self, "aget_or_create", creating.get_or_create, lookups, made)

    def update_or_create(
        self,
        defaults: Mapping[str, Any] | None = None,
        create_defaults: Mapping[str, Any] | None = None,
        /,
        **lookups: Any,
    ) -> tuple[M, bool]:
        """Set `defaults` on the matching row, or insert one from `lookups` and `create_defaults`
        (`defaults` where there are none); and whether it was inserted.

        Both are given by name, or for a model with such fields by place.
        """
        made = creating.pop_defaults(defaults, lookups, "defaults") or {}
        new = creating.pop_defaults(create_defaults, lookups, "create_defaults")
        return _run_write(self, "update_or_create", creating.update_or_create, lookups, made, new)

    def aupdate_or_create(
        self,
        defaults: Mapping[str, Any] | None = None,
        create_defaults: Mapping[str, Any] | None = None,
        /,
        **lookups: Any,
    ) -> CoroutineOf[tuple[M, bool]]:
        """`update_or_create` for async code."""
        made = creating.pop_defaults(defaults, lookups, "defaults") or {}
        new = creating.pop_defaults(create_defaults, lookups, "create_defaults")
        return _arun_write(self, "aupdate_or_create", creating.update_or_create, lookups, made, new)


def _run_write(query: QuerySet[Any], name: str, operation: Callable[..., Any], *args: Any) -> Any:
    """Run a call that may insert, in the sync half; the model's own `save()` goes first."""
    if query._meta.own_saves:
        found = _find_custom_save_function(name)(query, *args)
    else:
        work = operation(query, *args, batch_lazy=True)
        found = run(query._alias, work, f"await a{name}()", write=True)
    if query._prefetches:
        prefetch_elsewhere(query, _list_found_rows(found), f"await a{name}()")
    return found


def _arun_write(query: QuerySet[Any], name: str, operation: Callable[..., Any], *args: Any) -> Any:
    if query._meta.own_saves:
        work = _find_custom_save_function(name)(query, *args)
    else:
        work = arun(query._alias, operation(query, *args, batch_lazy=False), write=True)
    return _await_relations(query, work) if query._prefetches else work


async def _await_relations(query: QuerySet[Any], work: CoroutineOf[Any]) -> Any:
    found = await work
    await aprefetch_elsewhere(query, _list_found_rows(found))
    return found


def _list_found_rows(found: Any) -> list[Any]:
    """The row that `get_or_create` or `update_or_create` has found; a new one has no relations."""
    return [found[0]] if isinstance(found, tuple) and not found[1] else []


def _find_custom_save_function(name: str) -> Callable[..., Any]:
    from treefold_orm._queries import own_saves  # few models have a save() of their own

    return getattr(own_saves, name)


class ManagerAccess:
    """`Model.objects` before any manager is declared: gives each model its own `Manager`."""

    __slots__ = ()

    @overload
    def __get__(self, instance: None, owner: type[N]) -> Manager[N]: ...
    @overload
    def __get__(self, instance: Instance, owner: type[object]) -> Any: ...
    def __get__(self, instance: Instance | None, owner: type[Any]) -> Any:
        if instance is not None:
            raise AttributeError("A manager belongs to the model class, not to an instance")
        if "_meta" not in owner.__dict__ or owner._meta.abstract:
            raise ModelError(f"{owner.__name__} is abstract: query a model that inherits from it")
        unbound: Manager[Any] = Manager()
        manager = unbound.bind_to_model(owner._meta)
        # found in the class itself from then on, without this descriptor
        type.__setattr__(owner, "objects", manager)
        return manager


if TYPE_CHECKING:
    # what type checkers see: the methods of a query, where those that build give a query
    class ManagerMethods(QuerySet[M], ManagerAccess, Generic[M]):
        """The methods of a query, each on a new query."""

        def __init__(self) -> None: ...
        @overload
        def __getitem__(self, index: int) -> M: ...
        @overload
        def __getitem__(self, index: slice) -> QuerySet[M]: ...
        def __getitem__(self, index: Any) -> Any: ...
        def none(self) -> QuerySet[M]: ...
        def filter(self, /, *conditions: Condition, **lookups: Any) -> QuerySet[M]: ...
        def exclude(self, /, *conditions: Condition, **lookups: Any) -> QuerySet[M]: ...
        def order_by(self, *terms: Any) -> QuerySet[M]: ...
        def reverse(self) -> QuerySet[M]: ...
        def distinct(self, *fields: str | Expression) -> QuerySet[M]: ...
        def using(self, alias: str) -> QuerySet[M]: ...
        def limit_rows(self, max_rows: int) -> QuerySet[M]: ...
        def raiseload(self) -> QuerySet[M]: ...
        def annotate(
            self, /, *aggregates: Aggregate, **expressions: Expression | Condition
        ) -> QuerySet[M]: ...
        def only(self, *names: str | AnyColumn | type[Shaped]) -> QuerySet[M]: ...
        def defer(self, *names: str | AnyColumn | None) -> QuerySet[M]: ...
        def select_related(self, *paths: str | None) -> QuerySet[M]: ...
        def prefetch_related(self, *lookups: str | Prefetch | None) -> QuerySet[M]: ...
        def union(self, *others: AnyQuery, all: bool = False) -> QuerySet[M]: ...
        def intersection(self, *others: AnyQuery) -> QuerySet[M]: ...
        def difference(self, *others: AnyQuery) -> QuerySet[M]: ...
        def select_for_update(
            self,
            *,
            skip_locked: bool = False,
            nowait: bool = False,
            share: bool = False,
            no_key: bool = False,
            of: Sequence[str] = ("self",),
        ) -> QuerySet[M]: ...
        def __and__(self, other: AnyQuery) -> QuerySet[M]: ...
        def __or__(self, other: AnyQuery) -> QuerySet[M]: ...
        def alias(
            self, /, *aggregates: Aggregate, **expressions: Expression | Condition
        ) -> QuerySet[M]: ...
        def join(self, cte: Joinable, /, **on: Any) -> QuerySet[M]: ...
        def left_join(self, cte: Joinable, /, **on: Any) -> QuerySet[M]: ...

else:  # the delegates are made below

    class ManagerMethods(QuerySource, Generic[M]):
        """The methods of a query, each on a new query."""


class Manager(ManagerMethods[M], Generic[M]):
    """The way from a model to its queries.

    Subclass it to add methods, or to narrow what all its queries see in `get_queryset`, which runs
    for every query. Methods of a query class come in with `from_queryset`.
    """

    _meta: Meta = cast("Meta", None)
    _alias: str = Home(DEFAULT)
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
        for name, function in _list_methods(queryset_class):
            only = getattr(function, "queryset_only", None)
            if not hasattr(cls, name) and not (only or (only is None and name.startswith("_"))):
                body[name] = _make_delegate(name, function)
        name = class_name or f"{cls.__name__}From{queryset_class.__name__}"
        return cast("type[Q]", type(name, (cls,), body))

    def bind_to_model(self, meta: Meta) -> Self:
        """This manager for one model."""
        made = copy.copy(self)
        made._meta = meta
        if isinstance(made._alias, Home) and made._alias != meta.database:
            made._alias = meta.database
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
            ready = compile_exact_get_plan(self._meta, self._alias, lookups)
            if ready is not None:
                work = fetching.fetch_row_by_plan(self._meta, ready[0], ready[1])
                return run(self._alias, work, "await aget()")
        return self.get_queryset().get(*conditions, **lookups)

    def aget(self, /, *conditions: Condition, **lookups: Any) -> CoroutineOf[M]:
        if self._plain and len(lookups) == 1 and not conditions:
            ready = compile_exact_get_plan(self._meta, self._alias, lookups)
            if ready is not None:
                return arun(self._alias, fetching.fetch_row_by_plan(self._meta, ready[0], ready[1]))
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

    def _resolve_subquery(self, scope: Scope) -> SubqueryNode:
        return self.get_queryset()._resolve_subquery(scope)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._meta.name if self._meta else 'no model'}>"


def build_attribute_error(query: QuerySet[Any], name: str) -> AttributeError:
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


def _make_delegate(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call_on_queryset(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.get_queryset(), name)(*args, **kwargs)

    return call_on_queryset


def _list_methods(kind: type[Any]) -> list[tuple[str, FunctionType]]:
    named = [(name, getattr(kind, name)) for name in dir(kind)]
    return [(name, value) for name, value in named if isinstance(value, FunctionType)]


for _name, _function in _list_methods(QuerySet):
    if not _name.startswith("_"):
        setattr(ManagerMethods, _name, _make_delegate(_name, _function))
