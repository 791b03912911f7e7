"""QuerySet: queries that can be run. Every call that runs exists twice, `x` and `ax`.

Each pair hands the same operation to a blocking and an awaiting runner; what they do is in
`_operations`.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, cast, overload

from treefold_orm._base.errors import FieldError, ModelError
from treefold_orm._base.statement import Operation
from treefold_orm._expressions.conditions import Condition
from treefold_orm._expressions.expressions import Expression
from treefold_orm._queries import operations, saving
from treefold_orm._queries.bulk_queries import BulkQuery
from treefold_orm._queries.calendar import CalendarQuery
from treefold_orm._queries.query import M, R
from treefold_orm._queries.set_operations import SetOperations
from treefold_orm._queries.starting import begin, by_one
from treefold_orm._runtime.run import arun, check_blocking, run

if TYPE_CHECKING:
    from treefold_orm._expressions.aggregates import Aggregate
    from treefold_orm._models.model import Model
    from treefold_orm._queries.explaining import PlanStep
    from treefold_orm._queries.paging import Page

N = TypeVar("N", bound="Model")


class BaseQuery(CalendarQuery[M, R], SetOperations[M, R], Generic[M, R]):
    """A query whose rows come back as `R`."""

    __slots__ = ()

    # -- one row ----------------------------------------------------------------------------------

    def get(self, /, *conditions: Condition, **lookups: Any) -> R:
        """Return the one row that matches.

        Raises the model's `DoesNotExist` or `MultipleObjectsReturned`.
        """
        if len(lookups) == 1 and not conditions:
            ready = by_one(self, lookups)
            if ready is not None:
                work = operations.one(self._meta, ready[0], ready[1])
                return run(self._alias, work, "await aget()")
        query = self.filter(*conditions, **lookups) if conditions or lookups else self
        return run(query._alias, operations.get(query, batch_lazy=True), "await aget()")

    def aget(self, /, *conditions: Condition, **lookups: Any) -> Coroutine[Any, Any, R]:
        """`get` for async code."""
        if len(lookups) == 1 and not conditions:
            ready = by_one(self, lookups)
            if ready is not None:
                return arun(self._alias, operations.one(self._meta, ready[0], ready[1]))
        query = self.filter(*conditions, **lookups) if conditions or lookups else self
        return arun(query._alias, operations.get(query, batch_lazy=False))

    def first(self) -> R | None:
        """Return the first row in the query's order (else by key), or None."""
        return run(self._alias, operations.first(self, batch_lazy=True), "await afirst()")

    def afirst(self) -> Coroutine[Any, Any, R | None]:
        """`first` for async code."""
        return arun(self._alias, operations.first(self, batch_lazy=False))

    def last(self) -> R | None:
        """Return the last row in the query's order (else by key), or None."""
        return run(self._alias, operations.last(self, batch_lazy=True), "await alast()")

    def alast(self) -> Coroutine[Any, Any, R | None]:
        """`last` for async code."""
        return arun(self._alias, operations.last(self, batch_lazy=False))

    # -- many rows --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[R]:
        if self._cache is None:
            self._cache = run(
                self._alias,
                operations.rows(self, batch_lazy=True),
                "`async for`, or await the query",
            )
        return iter(self._cache)

    def __len__(self) -> int:
        iter(self)
        return len(self._cache)

    def __bool__(self) -> bool:
        return len(self) > 0

    async def __aiter__(self) -> AsyncIterator[R]:
        for row in await self:
            yield row

    def __await__(self) -> Generator[Any, Any, list[R]]:
        return self._afetch().__await__()

    async def _afetch(self) -> list[R]:
        if self._cache is None:
            self._cache = await arun(self._alias, operations.rows(self, batch_lazy=False))
        return self._cache

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = cast("slice[Any, Any, Any]", index)
            if part.step is not None:
                raise TypeError(f"A query cannot be sliced in steps of {part.step!r}")
            return self._sliced(part.start, part.stop)
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"A query takes an int or a slice, not {type(index).__name__}")
        if self._cache is not None and index >= 0:
            rows = self._cache[index : index + 1]
        else:
            rows = list(self._sliced(index, index + 1))
        if not rows:
            raise IndexError(f"The query has no row {index!r}")
        return rows[0]

    def iterator(self, chunk_size: int = 2000) -> Generator[R]:
        """Yield rows from a database cursor, `chunk_size` at a time, without keeping them."""
        check_blocking("aiterator()")
        from treefold_orm._queries.streaming import iterate

        return iterate(self, chunk_size)

    def aiterator(self, chunk_size: int = 2000) -> AsyncGenerator[R]:
        """`iterator` for async code."""
        from treefold_orm._queries.streaming import aiterate

        return aiterate(self, chunk_size)

    def keyset(self, size: int, *, after: str | None = None, before: str | None = None) -> Page[R]:
        """Return the page of `size` rows after (or before) a cursor of another page; the first
        without.

        The order is the query's own, made total by the key. Unlike with slices, a page costs the
        same wherever it begins, and rows inserted meanwhile shift nothing. Cursors may come from
        a request: `FieldValueError` for one that is not of this ordering.
        """
        from treefold_orm._queries import paging

        work = paging.keyset(self, size, after=after, before=before, batch_lazy=True)
        return run(self._alias, work, "await akeyset()")

    def akeyset(
        self, size: int, *, after: str | None = None, before: str | None = None
    ) -> Coroutine[Any, Any, Page[R]]:
        """`keyset` for async code."""
        from treefold_orm._queries import paging

        work = paging.keyset(self, size, after=after, before=before, batch_lazy=False)
        return arun(self._alias, work)

    # -- numbers ----------------------------------------------------------------------------------

    def count(self) -> int:
        """Return the number of rows."""
        return run(self._alias, operations.count(self), "await acount()")

    def acount(self) -> Coroutine[Any, Any, int]:
        """`count` for async code."""
        return arun(self._alias, operations.count(self))

    def exists(self) -> bool:
        """Return whether there is any row."""
        return run(self._alias, operations.exists(self), "await aexists()")

    def aexists(self) -> Coroutine[Any, Any, bool]:
        """`exists` for async code."""
        return arun(self._alias, operations.exists(self))

    def contains(self, item: M) -> bool:
        """Return whether the query has this row."""
        return run(self._alias, operations.contains(self, item), "await acontains()")

    def acontains(self, item: M) -> Coroutine[Any, Any, bool]:
        """`contains` for async code."""
        return arun(self._alias, operations.contains(self, item))

    def aggregate(self, /, *unnamed: Aggregate, **aggregates: Expression) -> dict[str, Any]:
        """Return aggregates over all rows by name: `aggregate(n=Count("id"), top=Max("price"))`.

        Without a name, `Max("price")` is called `price__max`.
        """
        work = operations.aggregate(self, unnamed, aggregates)
        return run(self._alias, work, "await aaggregate()")

    def aaggregate(
        self, /, *unnamed: Aggregate, **aggregates: Expression
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """`aggregate` for async code."""
        return arun(self._alias, operations.aggregate(self, unnamed, aggregates))

    @overload
    def explain(self, *, plan: Literal[False] = False, analyze: bool = False) -> str: ...
    @overload
    def explain(self, *, plan: Literal[True], analyze: bool = False) -> PlanStep: ...
    def explain(self, *, plan: bool = False, analyze: bool = False) -> Any:
        """Return the database's plan for this query as text, or with `plan` as a tree.

        `analyze` runs the query to measure it (PostgreSQL; SQLite raises `UnsupportedFeature`).
        """
        from treefold_orm._queries import explaining

        work = explaining.explain(self, plan=plan, analyze=analyze)
        return run(self._alias, work, "await aexplain()")

    @overload
    def aexplain(
        self, *, plan: Literal[False] = False, analyze: bool = False
    ) -> Coroutine[Any, Any, str]: ...
    @overload
    def aexplain(
        self, *, plan: Literal[True], analyze: bool = False
    ) -> Coroutine[Any, Any, PlanStep]: ...
    def aexplain(self, *, plan: bool = False, analyze: bool = False) -> Any:
        """`explain` for async code."""
        from treefold_orm._queries import explaining

        return arun(self._alias, explaining.explain(self, plan=plan, analyze=analyze))

    # -- changes to all rows ----------------------------------------------------------------------

    def update(self, /, **values: Any) -> int:
        """Set columns of all rows to values or expressions; return how many rows matched.

        A sliced query changes exactly its rows.
        """
        return run(self._alias, operations.update(self, values), "await aupdate()", write=True)

    def aupdate(self, /, **values: Any) -> Coroutine[Any, Any, int]:
        """`update` for async code."""
        return arun(self._alias, operations.update(self, values), write=True)

    def delete(self) -> int:
        """Delete all rows; return how many. Related rows follow their `on_delete`, in the
        database.
        """
        return run(self._alias, operations.delete(self), "await adelete()", write=True)

    def adelete(self) -> Coroutine[Any, Any, int]:
        """`delete` for async code."""
        return arun(self._alias, operations.delete(self), write=True)


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
        begin(self, meta, using or "default")

    @classmethod
    def as_manager(cls) -> Self:
        """Return a manager whose queries are of this class, with its methods.

        Type checkers see the methods: to them the manager is a query of this class.
        """
        from treefold_orm._queries.managers import Manager  # it stands for queries

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
        def __get__(self, instance: None, owner: type[Any]) -> Self: ...
        @overload
        def __get__(self, instance: Model, owner: type[Any]) -> Any: ...
        def __get__(self, instance: Model | None, owner: type[Any]) -> Any: ...

    else:

        def __getattr__(self, name):
            from treefold_orm._queries.managers import no_attribute

            raise no_attribute(self, name)

    def create(self, /, **values: Any) -> M:
        """Insert a row; return its instance.

        A `save()` that the model overrides is what inserts it, here and in `get_or_create` and
        `update_or_create`; in their async twins it is `asave()`.
        """
        if self._meta.own_saves:
            from treefold_orm._queries import own_saves

            return own_saves.create(self, values)
        return run(self._alias, self._inserted(values), "await acreate()", write=True)

    def acreate(self, /, **values: Any) -> Coroutine[Any, Any, M]:
        """`create` for async code."""
        if self._meta.own_saves:
            from treefold_orm._queries import own_saves

            return own_saves.acreate(self, values)
        return arun(self._alias, self._inserted(values), write=True)

    def _inserted(self, values: dict[str, Any]) -> Operation[M]:
        if self._parent is not None:
            return self._parent._insert_related(values, self._alias)
        return saving.insert(cast("M", self._meta.model(**values)), self._alias)

    def get_or_create(
        self, defaults: Mapping[str, Any] | None = None, /, **lookups: Any
    ) -> tuple[M, bool]:
        """Return the matching row, or insert one from `lookups` and `defaults`; and whether it was
        inserted: `get_or_create(name="x", defaults={"age": 5})`.

        For a model with a field called `defaults`, give them first and without a name.
        """
        made = operations.taken(defaults, lookups, "defaults") or {}
        if self._meta.own_saves:
            from treefold_orm._queries import own_saves

            return own_saves.get_or_create(self, lookups, made)
        work = operations.get_or_create(self, lookups, made, batch_lazy=True)
        return run(self._alias, work, "await aget_or_create()", write=True)

    def aget_or_create(
        self, defaults: Mapping[str, Any] | None = None, /, **lookups: Any
    ) -> Coroutine[Any, Any, tuple[M, bool]]:
        """`get_or_create` for async code."""
        made = operations.taken(defaults, lookups, "defaults") or {}
        if self._meta.own_saves:
            from treefold_orm._queries import own_saves

            return own_saves.aget_or_create(self, lookups, made)
        work = operations.get_or_create(self, lookups, made, batch_lazy=False)
        return arun(self._alias, work, write=True)

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
        made = operations.taken(defaults, lookups, "defaults") or {}
        new = operations.taken(create_defaults, lookups, "create_defaults")
        if self._meta.own_saves:
            from treefold_orm._queries import own_saves

            return own_saves.update_or_create(self, lookups, made, new)
        work = operations.update_or_create(self, lookups, made, new, batch_lazy=True)
        return run(self._alias, work, "await aupdate_or_create()", write=True)

    def aupdate_or_create(
        self,
        defaults: Mapping[str, Any] | None = None,
        create_defaults: Mapping[str, Any] | None = None,
        /,
        **lookups: Any,
    ) -> Coroutine[Any, Any, tuple[M, bool]]:
        """`update_or_create` for async code."""
        made = operations.taken(defaults, lookups, "defaults") or {}
        new = operations.taken(create_defaults, lookups, "create_defaults")
        if self._meta.own_saves:
            from treefold_orm._queries import own_saves

            return own_saves.aupdate_or_create(self, lookups, made, new)
        work = operations.update_or_create(self, lookups, made, new, batch_lazy=False)
        return arun(self._alias, work, write=True)
