"""Queries that can be run. Every call that runs exists twice, `x` and `ax`.

Each pair hands the same operation to a blocking and an awaiting runner; what they do is in the room
`operations`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, cast, overload

from treefold_orm._base.errors import FieldError
from treefold_orm._base.statement import CoroutineOf
from treefold_orm._building.latest_by import (
    DAYS,
    Day,
    Order,
    order_by_time,
    require_column_type,
    select_distinct_values,
)
from treefold_orm._building.query import AnyQuery, M, R
from treefold_orm._building.selecting import annotate_unnamed_expressions
from treefold_orm._building.set_operations import SetOperations
from treefold_orm._building.starting import compile_unfiltered_get_plan
from treefold_orm._building.steps import QuerySteps
from treefold_orm._fields.times import DateField, DateTimeField
from treefold_orm._operations import changing, fetching, loading, measuring
from treefold_orm._queries.delivering import arun_query, run_query
from treefold_orm._runtime.run import arun, require_blocking_allowed, run
from treefold_orm._terms.columns import AnyColumn, Column
from treefold_orm._terms.operators import Condition, Expression

if TYPE_CHECKING:
    from treefold_orm._functions.aggregates import Aggregate
    from treefold_orm._functions.dates import Unit
    from treefold_orm._operations.explaining import PlanStep
    from treefold_orm._operations.paging import Page

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class BaseQuery(SetOperations[M, R], Generic[M, R]):
    """A query whose rows come back as `R`."""

    __slots__ = ()

    # -- one row ----------------------------------------------------------------------------------

    def get(self, /, *conditions: Condition, **lookups: Any) -> R:
        """Return the one row that matches.

        Raises the model's `DoesNotExist` or `MultipleObjectsReturned`.
        """
        if len(lookups) == 1 and not conditions:
            ready = compile_unfiltered_get_plan(self, lookups)
            if ready is not None:
                work = fetching.fetch_row_by_plan(self._meta, ready[0], ready[1])
                return run(self._alias, work, "await aget()")
        query = self.filter(*conditions, **lookups) if conditions or lookups else self
        return run_query(query, fetching.fetch_row(query, batch_lazy=True), "await aget()")

    def aget(self, /, *conditions: Condition, **lookups: Any) -> CoroutineOf[R]:
        """`get` for async code."""
        if len(lookups) == 1 and not conditions:
            ready = compile_unfiltered_get_plan(self, lookups)
            if ready is not None:
                return arun(self._alias, fetching.fetch_row_by_plan(self._meta, ready[0], ready[1]))
        query = self.filter(*conditions, **lookups) if conditions or lookups else self
        return arun_query(query, fetching.fetch_row(query, batch_lazy=False))

    def first(self) -> R | None:
        """Return the first row in the query's order (else by key), or None.

        Raises `FieldError` for groups without an order.
        """
        return run_query(self, fetching.fetch_first_row(self, batch_lazy=True), "await afirst()")

    def afirst(self) -> CoroutineOf[R | None]:
        """`first` for async code."""
        return arun_query(self, fetching.fetch_first_row(self, batch_lazy=False))

    def last(self) -> R | None:
        """Return the last row in the query's order (else by key), or None."""
        return run_query(self, fetching.fetch_last_row(self, batch_lazy=True), "await alast()")

    def alast(self) -> CoroutineOf[R | None]:
        """`last` for async code."""
        return arun_query(self, fetching.fetch_last_row(self, batch_lazy=False))

    # -- many rows --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[R]:
        if self._cache is None:
            work = loading.fetch_rows(self, batch_lazy=True)
            self._cache = run_query(self, work, "`async for`, or await the query")
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
        return self._afetch_rows().__await__()

    async def _afetch_rows(self) -> list[R]:
        if self._cache is None:
            self._cache = await arun_query(self, loading.fetch_rows(self, batch_lazy=False))
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
            return self._slice_rows(part.start, part.stop)
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"A query takes an int or a slice, not {type(index).__name__}")
        if index < 0:
            raise ValueError(f"An index cannot count from the end, got {index!r}; use last()")
        if self._cache is not None:
            rows = self._cache[index : index + 1]
        else:
            rows = list(self._slice_rows(index, index + 1))
        if not rows:
            raise IndexError(f"The query has no row {index!r}")
        return rows[0]

    def iterator(self, chunk_size: int = 2000) -> Generator[R]:
        """Yield rows from a database cursor, `chunk_size` at a time, without keeping them."""
        require_blocking_allowed("aiterator()")
        from treefold_orm._queries.streaming import iterate_rows

        return iterate_rows(self, chunk_size)

    def aiterator(self, chunk_size: int = 2000) -> AsyncGenerator[R]:
        """`iterator` for async code."""
        from treefold_orm._queries.streaming import aiterate_rows

        return aiterate_rows(self, chunk_size)

    def keyset(self, size: int, *, after: str | None = None, before: str | None = None) -> Page[R]:
        """Return the page of `size` rows after (or before) a cursor of another page; the first
        without.

        The order is the query's own, made total by the key. Unlike with slices, a page costs the
        same wherever it begins, and rows inserted meanwhile shift nothing. Cursors may come from
        a request: `FieldValueError` for one that is not of this ordering.
        """
        from treefold_orm._operations import paging

        work = paging.fetch_page(self, size, after=after, before=before, batch_lazy=True)
        return run_query(self, work, "await akeyset()")

    def akeyset(
        self, size: int, *, after: str | None = None, before: str | None = None
    ) -> CoroutineOf[Page[R]]:
        """`keyset` for async code."""
        from treefold_orm._operations import paging

        work = paging.fetch_page(self, size, after=after, before=before, batch_lazy=False)
        return arun_query(self, work)

    # -- numbers ----------------------------------------------------------------------------------

    def count(self) -> int:
        """Return the number of rows."""
        return run(self._alias, measuring.count_rows(self), "await acount()")

    def acount(self) -> CoroutineOf[int]:
        """`count` for async code."""
        return arun(self._alias, measuring.count_rows(self))

    def exists(self) -> bool:
        """Return whether there is any row."""
        return run(self._alias, measuring.has_rows(self), "await aexists()")

    def aexists(self) -> CoroutineOf[bool]:
        """`exists` for async code."""
        return arun(self._alias, measuring.has_rows(self))

    def contains(self, item: M) -> bool:
        """Return whether the query has this row."""
        return run(self._alias, measuring.contains_instance(self, item), "await acontains()")

    def acontains(self, item: M) -> CoroutineOf[bool]:
        """`contains` for async code."""
        return arun(self._alias, measuring.contains_instance(self, item))

    def aggregate(self, /, *unnamed: Aggregate, **aggregates: Expression) -> dict[str, Any]:
        """Return aggregates over all rows by name: `aggregate(n=Count("id"), top=Max("price"))`.

        Without a name, `Max("price")` is called `price__max`.
        """
        work = measuring.compute_aggregates(self, unnamed, aggregates)
        return run(self._alias, work, "await aaggregate()")

    def aaggregate(
        self, /, *unnamed: Aggregate, **aggregates: Expression
    ) -> CoroutineOf[dict[str, Any]]:
        """`aggregate` for async code."""
        return arun(self._alias, measuring.compute_aggregates(self, unnamed, aggregates))

    @overload
    def explain(self, *, plan: Literal[False] = False, analyze: bool = False) -> str: ...
    @overload
    def explain(self, *, plan: Literal[True], analyze: bool = False) -> PlanStep: ...
    def explain(self, *, plan: bool = False, analyze: bool = False) -> Any:
        """Return the database's plan for this query as text, or with `plan` as a tree.

        `analyze` runs the query to measure it (PostgreSQL; SQLite raises `UnsupportedFeature`).
        """
        from treefold_orm._operations import explaining

        work = explaining.explain_query(self, as_tree=plan, analyze=analyze)
        return run(self._alias, work, "await aexplain()")

    @overload
    def aexplain(
        self, *, plan: Literal[False] = False, analyze: bool = False
    ) -> CoroutineOf[str]: ...
    @overload
    def aexplain(self, *, plan: Literal[True], analyze: bool = False) -> CoroutineOf[PlanStep]: ...
    def aexplain(self, *, plan: bool = False, analyze: bool = False) -> Any:
        """`explain` for async code."""
        from treefold_orm._operations import explaining

        return arun(self._alias, explaining.explain_query(self, as_tree=plan, analyze=analyze))

    # -- changes to all rows ----------------------------------------------------------------------

    def update(self, /, **values: Any) -> int:
        """Set columns of all rows to values or expressions; return how many rows matched.

        A sliced query changes exactly its rows.
        """
        return run(self._alias, changing.update_rows(self, values), "await aupdate()", write=True)

    def aupdate(self, /, **values: Any) -> CoroutineOf[int]:
        """`update` for async code."""
        return arun(self._alias, changing.update_rows(self, values), write=True)

    def delete(self) -> int:
        """Delete all rows; return how many. Related rows follow their `on_delete`, in the
        database.
        """
        return run(self._alias, changing.delete_rows(self), "await adelete()", write=True)

    def adelete(self) -> CoroutineOf[int]:
        """`delete` for async code."""
        return arun(self._alias, changing.delete_rows(self), write=True)

    # -- rows in other forms ----------------------------------------------------------------------

    def values(
        self, /, *names: str | AnyColumn, **expressions: Expression | Condition
    ) -> BaseQuery[M, dict[str, Any]]:
        """Rows as dictionaries; without names all columns but sensitive ones.

        An expression may take the name of a field: `values(author=F("author__name"))`. In calls
        that follow, the name means that value.
        """
        return as_base_query(self._select_values("dicts", names, expressions))

    @overload  # the last overload takes what the others leave: untyped names
    def values_list(  # pyright: ignore[reportOverlappingOverload] - flat=True gives another shape
        self, name: Column[A], /, *, flat: Literal[True]
    ) -> BaseQuery[M, A]: ...
    @overload
    def values_list(
        self, name: str | Expression | Condition, /, *, flat: Literal[True]
    ) -> BaseQuery[M, Any]: ...
    @overload
    def values_list(self, a: Column[A], /) -> BaseQuery[M, tuple[A]]: ...
    @overload
    def values_list(self, a: Column[A], b: Column[B], /) -> BaseQuery[M, tuple[A, B]]: ...
    @overload
    def values_list(
        self, a: Column[A], b: Column[B], c: Column[C], /
    ) -> BaseQuery[M, tuple[A, B, C]]: ...
    @overload
    def values_list(
        self, a: Column[A], b: Column[B], c: Column[C], d: Column[D], /
    ) -> BaseQuery[M, tuple[A, B, C, D]]: ...
    @overload
    def values_list(
        self, /, *names: str | Expression | Condition, flat: bool = False, named: bool = False
    ) -> BaseQuery[M, tuple[Any, ...]]: ...
    def values_list(
        self, /, *names: Any, flat: bool = False, named: bool = False
    ) -> BaseQuery[M, Any]:
        """Rows as tuples of columns and expressions; `flat` gives the values of one of them.

        With `named` they are named tuples, in which an expression has the name of its class and
        its place: `lower1`.
        """
        if flat and len(names) != 1:
            raise TypeError(f"values_list(flat=True) takes one name, not {len(names)}")
        if flat and named:
            raise TypeError("values_list() cannot be both flat=True and named=True; drop one")
        kind = "flat" if flat else "named" if named else "tuples"
        query, names = annotate_unnamed_expressions(self, names)
        return as_base_query(query._select_values(kind, names, {}))

    # -- time -------------------------------------------------------------------------------------

    def latest(self, *fields: str | AnyColumn) -> R:
        """Return the row that is last by `fields`, or by `Meta.get_latest_by` without any.

        Rows where a field is NULL come after all others. Raises the model's `DoesNotExist`.
        """
        ordered = order_by_time(self, fields, latest=True)
        work = fetching.fetch_first_or_raise(ordered, batch_lazy=True)
        return run_query(self, work, "await alatest()")

    def alatest(self, *fields: str | AnyColumn) -> CoroutineOf[R]:
        """`latest` for async code."""
        ordered = order_by_time(self, fields, latest=True)
        return arun_query(self, fetching.fetch_first_or_raise(ordered, batch_lazy=False))

    def earliest(self, *fields: str | AnyColumn) -> R:
        """Return the row that is first by `fields`, or by `Meta.get_latest_by` without any.

        Rows where a field is NULL come after all others. Raises the model's `DoesNotExist`.
        """
        ordered = order_by_time(self, fields, latest=False)
        work = fetching.fetch_first_or_raise(ordered, batch_lazy=True)
        return run_query(self, work, "await aearliest()")

    def aearliest(self, *fields: str | AnyColumn) -> CoroutineOf[R]:
        """`earliest` for async code."""
        ordered = order_by_time(self, fields, latest=False)
        return arun_query(self, fetching.fetch_first_or_raise(ordered, batch_lazy=False))

    def dates(
        self, field: str | AnyColumn, kind: Day, order: Order = "ASC"
    ) -> BaseQuery[M, dt.date]:
        """The different years, months, weeks or days of a date field, each as its first day."""
        if kind not in DAYS:
            raise FieldError(f"{kind!r} is not a unit of days: use one of {', '.join(DAYS)}")
        from treefold_orm._functions.dates import Trunc

        require_column_type(self, field, DateField, "dates()", "datetimes()")
        return as_base_query(select_distinct_values(self, field, Trunc(field, kind), order))

    def datetimes(
        self,
        field: str | AnyColumn,
        kind: Unit,
        order: Order = "ASC",
        tzinfo: dt.tzinfo | None = None,
    ) -> BaseQuery[M, dt.datetime]:
        """The different years, months, ... or seconds of a datetime field, each as its begin.

        With `tzinfo` (a `zoneinfo.ZoneInfo` or `datetime.timezone`) they begin, and come back, in
        that zone; else in UTC.
        """
        from treefold_orm._functions.dates import Trunc

        require_column_type(self, field, DateTimeField, "datetimes()", "dates()")
        return as_base_query(select_distinct_values(self, field, Trunc(field, kind, tzinfo), order))


def as_base_query(query: AnyQuery) -> BaseQuery[Any, Any]:
    """The same query without the methods of a custom manager, which return instances."""
    made = cast("BaseQuery[Any, Any]", object.__new__(cast("type[Any]", BaseQuery)))
    for name in QuerySteps.__slots__:
        setattr(made, name, getattr(query, name))
    return made
