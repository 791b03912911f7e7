"""QuerySet and Manager: queries that can be run. Every call that runs exists twice, `x` and `ax`.

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
    Sequence,
)
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, cast, overload

from treefold_orm import _operations, _saving
from treefold_orm._calendar import CalendarQuery
from treefold_orm._conditions import Condition
from treefold_orm._expressions import Column, Expression
from treefold_orm._query import M, QueryBuilder, R
from treefold_orm._run import arun, check_blocking, run
from treefold_orm._statement import Operation

if TYPE_CHECKING:
    from treefold_orm._explaining import PlanStep
    from treefold_orm._model import Model
    from treefold_orm._paging import Page

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
N = TypeVar("N", bound="Model")


class BaseQuery(CalendarQuery[M, R], Generic[M, R]):
    """A query whose rows come back as `R`."""

    __slots__ = ()

    # -- one row ----------------------------------------------------------------------------------

    def get(self, /, *conditions: Condition, **lookups: Any) -> R:
        """Return the one row that matches.

        Raises the model's `DoesNotExist` or `MultipleObjectsReturned`.
        """
        if len(lookups) == 1 and not conditions:
            ready = self._by_one(lookups)
            if ready is not None:
                work = _operations.one(self._meta, ready[0], ready[1])
                return run(self._alias, work, "await aget()")
        query = self.filter(*conditions, **lookups) if conditions or lookups else self
        return run(query._alias, _operations.get(query, peers=True), "await aget()")

    def aget(self, /, *conditions: Condition, **lookups: Any) -> Coroutine[Any, Any, R]:
        """`get` for async code."""
        if len(lookups) == 1 and not conditions:
            ready = self._by_one(lookups)
            if ready is not None:
                return arun(self._alias, _operations.one(self._meta, ready[0], ready[1]))
        query = self.filter(*conditions, **lookups) if conditions or lookups else self
        return arun(query._alias, _operations.get(query, peers=False))

    def first(self) -> R | None:
        """Return the first row in the query's order (else by key), or None."""
        return run(self._alias, _operations.first(self, peers=True), "await afirst()")

    def afirst(self) -> Coroutine[Any, Any, R | None]:
        """`first` for async code."""
        return arun(self._alias, _operations.first(self, peers=False))

    def last(self) -> R | None:
        """Return the last row in the query's order (else by key), or None."""
        return run(self._alias, _operations.last(self, peers=True), "await alast()")

    def alast(self) -> Coroutine[Any, Any, R | None]:
        """`last` for async code."""
        return arun(self._alias, _operations.last(self, peers=False))

    # -- many rows --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[R]:
        if self._cache is None:
            self._cache = run(
                self._alias, _operations.rows(self, peers=True), "`async for`, or await the query"
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
            self._cache = await arun(self._alias, _operations.rows(self, peers=False))
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
        rows = list(self._sliced(index, index + 1))
        if not rows:
            raise IndexError(f"The query has no row {index!r}")
        return rows[0]

    def iterator(self, chunk_size: int = 2000) -> Generator[R]:
        """Yield rows from a database cursor, `chunk_size` at a time, without keeping them."""
        check_blocking("aiterator()")
        from treefold_orm._streaming import iterate

        return iterate(self, chunk_size)

    def aiterator(self, chunk_size: int = 2000) -> AsyncGenerator[R]:
        """`iterator` for async code."""
        from treefold_orm._streaming import aiterate

        return aiterate(self, chunk_size)

    def keyset(self, size: int, *, after: str | None = None, before: str | None = None) -> Page[R]:
        """Return the page of `size` rows after (or before) a cursor of another page; the first
        without.

        The order is the query's own, made total by the key. Unlike with slices, a page costs the
        same wherever it begins, and rows inserted meanwhile shift nothing. Cursors may come from
        a request: `FieldValueError` for one that is not of this ordering.
        """
        from treefold_orm import _paging

        work = _paging.keyset(self, size, after=after, before=before, peers=True)
        return run(self._alias, work, "await akeyset()")

    def akeyset(
        self, size: int, *, after: str | None = None, before: str | None = None
    ) -> Coroutine[Any, Any, Page[R]]:
        """`keyset` for async code."""
        from treefold_orm import _paging

        work = _paging.keyset(self, size, after=after, before=before, peers=False)
        return arun(self._alias, work)

    # -- numbers ----------------------------------------------------------------------------------

    def count(self) -> int:
        """Return the number of rows."""
        return run(self._alias, _operations.count(self), "await acount()")

    def acount(self) -> Coroutine[Any, Any, int]:
        """`count` for async code."""
        return arun(self._alias, _operations.count(self))

    def exists(self) -> bool:
        """Return whether there is any row."""
        return run(self._alias, _operations.exists(self), "await aexists()")

    def aexists(self) -> Coroutine[Any, Any, bool]:
        """`exists` for async code."""
        return arun(self._alias, _operations.exists(self))

    def contains(self, item: M) -> bool:
        """Return whether the query has this row."""
        return run(self._alias, _operations.contains(self, item), "await acontains()")

    def acontains(self, item: M) -> Coroutine[Any, Any, bool]:
        """`contains` for async code."""
        return arun(self._alias, _operations.contains(self, item))

    def aggregate(self, /, **aggregates: Expression) -> dict[str, Any]:
        """Return aggregates over all rows by name: `aggregate(n=Count("id"), top=Max("price"))`."""
        return run(self._alias, _operations.aggregate(self, aggregates), "await aaggregate()")

    def aaggregate(self, /, **aggregates: Expression) -> Coroutine[Any, Any, dict[str, Any]]:
        """`aggregate` for async code."""
        return arun(self._alias, _operations.aggregate(self, aggregates))

    @overload
    def explain(self, *, plan: Literal[False] = False, analyze: bool = False) -> str: ...
    @overload
    def explain(self, *, plan: Literal[True], analyze: bool = False) -> PlanStep: ...
    def explain(self, *, plan: bool = False, analyze: bool = False) -> Any:
        """Return the database's plan for this query as text, or with `plan` as a tree.

        `analyze` runs the query to measure it (PostgreSQL; SQLite raises `UnsupportedFeature`).
        """
        from treefold_orm import _explaining

        work = _explaining.explain(self, plan=plan, analyze=analyze)
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
        from treefold_orm import _explaining

        return arun(self._alias, _explaining.explain(self, plan=plan, analyze=analyze))

    # -- changes to all rows ----------------------------------------------------------------------

    def update(self, /, **values: Any) -> int:
        """Set columns of all rows to values or expressions; return how many rows matched.

        A sliced query changes exactly its rows.
        """
        return run(self._alias, _operations.update(self, values), "await aupdate()", write=True)

    def aupdate(self, /, **values: Any) -> Coroutine[Any, Any, int]:
        """`update` for async code."""
        return arun(self._alias, _operations.update(self, values), write=True)

    def delete(self) -> int:
        """Delete all rows; return how many. Related rows follow their `on_delete`, in the
        database.
        """
        return run(self._alias, _operations.delete(self), "await adelete()", write=True)

    def adelete(self) -> Coroutine[Any, Any, int]:
        """`delete` for async code."""
        return arun(self._alias, _operations.delete(self), write=True)

    # -- rows in other forms ----------------------------------------------------------------------

    def values(
        self, /, *names: str | Column[Any], **expressions: Expression | Condition
    ) -> BaseQuery[M, dict[str, Any]]:
        """Rows as dictionaries; without names all columns but sensitive ones."""
        return as_rows(self._rows_of("dicts", names, expressions))

    @overload  # the last overload takes what the others leave: untyped names
    def values_list(  # pyright: ignore[reportOverlappingOverload] - flat=True gives another shape
        self, name: Column[A], /, *, flat: Literal[True]
    ) -> BaseQuery[M, A]: ...
    @overload
    def values_list(self, name: str, /, *, flat: Literal[True]) -> BaseQuery[M, Any]: ...
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
        self, /, *names: str | Column[Any], flat: bool = False, named: bool = False
    ) -> BaseQuery[M, tuple[Any, ...]]: ...
    def values_list(
        self, /, *names: Any, flat: bool = False, named: bool = False
    ) -> BaseQuery[M, Any]:
        """Rows as tuples; `flat` gives the values of one column, `named` named tuples."""
        if flat and len(names) != 1:
            raise TypeError(f"values_list(flat=True) takes one name, not {len(names)}")
        return as_rows(self._rows_of("flat" if flat else "named" if named else "tuples", names, {}))


def as_rows(query: QueryBuilder[Any, Any]) -> BaseQuery[Any, Any]:
    """The same query without the methods of a custom manager, which return instances."""
    made = cast("BaseQuery[Any, Any]", object.__new__(cast("type[Any]", BaseQuery)))
    for name in QueryBuilder.__slots__:
        setattr(made, name, getattr(query, name))
    return made


class QuerySet(BaseQuery[M, M], Generic[M]):
    """A query for instances of a model, which can also make new ones."""

    __slots__ = ()

    def create(self, /, **values: Any) -> M:
        """Insert a row; return its instance."""
        return run(self._alias, self._inserted(values), "await acreate()", write=True)

    def acreate(self, /, **values: Any) -> Coroutine[Any, Any, M]:
        """`create` for async code."""
        return arun(self._alias, self._inserted(values), write=True)

    def _new(self, values: dict[str, Any]) -> M:
        return cast("M", self._meta.model(**values))

    def _inserted(self, values: dict[str, Any]) -> Operation[M]:
        return _saving.insert(self._new(values), self._alias)

    def get_or_create(
        self, defaults: Mapping[str, Any] | None = None, /, **lookups: Any
    ) -> tuple[M, bool]:
        """Return the matching row, or insert one from `lookups` and `defaults`; and whether it was
        inserted: `get_or_create(name="x", defaults={"age": 5})`.

        For a model with a field called `defaults`, give them first and without a name.
        """
        made = _operations.taken(defaults, lookups, "defaults") or {}
        work = _operations.get_or_create(self, lookups, made, peers=True)
        return run(self._alias, work, "await aget_or_create()", write=True, atomic=True)

    def aget_or_create(
        self, defaults: Mapping[str, Any] | None = None, /, **lookups: Any
    ) -> Coroutine[Any, Any, tuple[M, bool]]:
        """`get_or_create` for async code."""
        made = _operations.taken(defaults, lookups, "defaults") or {}
        work = _operations.get_or_create(self, lookups, made, peers=False)
        return arun(self._alias, work, write=True, atomic=True)

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
        made = _operations.taken(defaults, lookups, "defaults") or {}
        new = _operations.taken(create_defaults, lookups, "create_defaults")
        work = _operations.update_or_create(self, lookups, made, new, peers=True)
        return run(self._alias, work, "await aupdate_or_create()", write=True, atomic=True)

    def aupdate_or_create(
        self,
        defaults: Mapping[str, Any] | None = None,
        create_defaults: Mapping[str, Any] | None = None,
        /,
        **lookups: Any,
    ) -> Coroutine[Any, Any, tuple[M, bool]]:
        """`update_or_create` for async code."""
        made = _operations.taken(defaults, lookups, "defaults") or {}
        new = _operations.taken(create_defaults, lookups, "create_defaults")
        work = _operations.update_or_create(self, lookups, made, new, peers=False)
        return arun(self._alias, work, write=True, atomic=True)

    def bulk_create(
        self,
        instances: Sequence[M],
        *,
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: Sequence[str] = (),
        unique_fields: Sequence[str] = (),
    ) -> list[M]:
        """Insert many rows with few statements; generated keys are set on the instances.

        `ignore_conflicts` skips rows that exist (and sets no keys); `update_conflicts` names the
        columns to update instead where `unique_fields` are the same.
        """
        rows = list(instances)
        from treefold_orm import _bulk

        rule = _bulk.conflict(
            self._meta, ignore=ignore_conflicts, update=update_conflicts, unique=unique_fields
        )
        work = _bulk.create(self._meta, rows, self._alias, batch_size=batch_size, rule=rule)
        return run(self._alias, work, "await abulk_create()", write=True, atomic=True)

    async def abulk_create(
        self,
        instances: Sequence[M],
        *,
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: Sequence[str] = (),
        unique_fields: Sequence[str] = (),
    ) -> list[M]:
        """`bulk_create` for async code."""
        rows = list(instances)
        from treefold_orm import _bulk

        rule = _bulk.conflict(
            self._meta, ignore=ignore_conflicts, update=update_conflicts, unique=unique_fields
        )
        work = _bulk.create(self._meta, rows, self._alias, batch_size=batch_size, rule=rule)
        return await arun(
            self._alias, work, write=True, atomic=_bulk.several_statements(rows, batch_size)
        )

    def bulk_update(
        self, instances: Sequence[M], fields: Sequence[str], *, batch_size: int = 200
    ) -> int:
        """Write the named fields of many instances with few statements; return how many rows
        matched.

        Raises:
            StaleObject: one changed since it was read, and the model has a version field; then none
                is written.
        """
        from treefold_orm import _bulk

        work = _bulk.update(
            self._meta, list(instances), self._alias, fields=fields, batch_size=batch_size
        )
        return run(self._alias, work, "await abulk_update()", write=True, atomic=True)

    async def abulk_update(
        self, instances: Sequence[M], fields: Sequence[str], *, batch_size: int = 200
    ) -> int:
        """`bulk_update` for async code."""
        from treefold_orm import _bulk

        work = _bulk.update(
            self._meta, list(instances), self._alias, fields=fields, batch_size=batch_size
        )
        return await arun(self._alias, work, write=True, atomic=True)

    def in_bulk(self, keys: Sequence[Any] | None = None, *, field: str = "pk") -> dict[Any, M]:
        """Return the rows with these keys (without keys, all rows), by key; `field` may name
        another unique field.
        """
        return run(
            self._alias,
            _operations.in_bulk(self, keys, field=field, peers=True),
            "await ain_bulk()",
        )

    def ain_bulk(
        self, keys: Sequence[Any] | None = None, *, field: str = "pk"
    ) -> Coroutine[Any, Any, dict[Any, M]]:
        """`in_bulk` for async code."""
        return arun(self._alias, _operations.in_bulk(self, keys, field=field, peers=False))

    def raw(self, sql: Any, /, **values: Any) -> list[M]:
        """Return instances from SQL of your own: `raw("SELECT * FROM post WHERE n > :low",
        low=3)`.

        The text must be a literal of the code; values are bound by name. Columns are matched by
        name.
        """
        from treefold_orm._raw import select

        work = select(self._meta, self._alias, sql, values, peers=True)
        return run(self._alias, work, "await araw()")

    async def araw(self, sql: Any, /, **values: Any) -> list[M]:
        """`raw` for async code."""
        from treefold_orm._raw import select

        return await arun(self._alias, select(self._meta, self._alias, sql, values, peers=False))
