"""Queries by time: the latest and the earliest row, and the days, months or years there are.

Building only, but for `latest` and `earliest`, which run like every terminal method: in two halves.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._expressions.columns import Column
from treefold_orm._expressions.conditions import Q
from treefold_orm._expressions.expressions import Expression, F
from treefold_orm._expressions.lookups import walk
from treefold_orm._fields.times import DateField, DateTimeField
from treefold_orm._queries import operations
from treefold_orm._queries.forms import RowForms, as_rows
from treefold_orm._queries.query import M, R
from treefold_orm._runtime.run import arun, run

if TYPE_CHECKING:
    from treefold_orm._expressions.functions_dates import Unit
    from treefold_orm._queries.querysets import BaseQuery

Day = Literal["year", "month", "week", "day"]
Order = Literal["ASC", "DESC"]
_DAYS = ("year", "month", "week", "day")


class CalendarQuery(RowForms[M, R], Generic[M, R]):
    """The part of a query that knows what time is."""

    __slots__ = ()

    def latest(self, *fields: str | Column[Any]) -> R:
        """Return the row that is last by `fields`, or by `Meta.get_latest_by` without any.

        Rows where a field is NULL come after all others. Raises the model's `DoesNotExist`.
        """
        work = operations.first_or_raise(self._by_time(fields, latest=True), batch_lazy=True)
        return run(self._alias, work, "await alatest()")

    def alatest(self, *fields: str | Column[Any]) -> Coroutine[Any, Any, R]:
        """`latest` for async code."""
        work = operations.first_or_raise(self._by_time(fields, latest=True), batch_lazy=False)
        return arun(self._alias, work)

    def earliest(self, *fields: str | Column[Any]) -> R:
        """Return the row that is first by `fields`, or by `Meta.get_latest_by` without any.

        Rows where a field is NULL come after all others. Raises the model's `DoesNotExist`.
        """
        work = operations.first_or_raise(self._by_time(fields, latest=False), batch_lazy=True)
        return run(self._alias, work, "await aearliest()")

    def aearliest(self, *fields: str | Column[Any]) -> Coroutine[Any, Any, R]:
        """`earliest` for async code."""
        work = operations.first_or_raise(self._by_time(fields, latest=False), batch_lazy=False)
        return arun(self._alias, work)

    def _by_time(self, fields: Sequence[str | Column[Any]], *, latest: bool) -> Any:
        what = "latest()" if latest else "earliest()"
        self._open(what)
        names = fields or self._meta.latest_by
        if not names:
            raise FieldError(f"{what} needs a field, or Meta.get_latest_by in {self._meta.name}")
        terms: list[Any] = []
        for name in names:
            term: Expression
            if isinstance(name, Column):
                term, descending = name, latest
            else:
                check_untainted(name)
                term, descending = F(name.removeprefix("-")), name.startswith("-") is not latest
            terms.append(term.desc(nulls="last") if descending else term.asc(nulls="last"))
        return self.order_by(*terms)

    def dates(
        self, field: str | Column[Any], kind: Day, order: Order = "ASC"
    ) -> BaseQuery[M, dt.date]:
        """The different years, months, weeks or days of a date field, each as its first day."""
        if kind not in _DAYS:
            raise FieldError(f"{kind!r} is no unit of days: use one of {', '.join(_DAYS)}")
        from treefold_orm._expressions.functions_dates import Trunc

        self._check_time(field, DateField, "dates()", "datetimes()")
        return self._different(field, Trunc(field, kind), order)

    def datetimes(
        self,
        field: str | Column[Any],
        kind: Unit,
        order: Order = "ASC",
        tzinfo: dt.tzinfo | None = None,
    ) -> BaseQuery[M, dt.datetime]:
        """The different years, months, ... or seconds of a datetime field, each as its begin.

        With `tzinfo` (a `zoneinfo.ZoneInfo` or `datetime.timezone`) they begin, and come back, in
        that zone; else in UTC.
        """
        from treefold_orm._expressions.functions_dates import Trunc

        self._check_time(field, DateTimeField, "datetimes()", "dates()")
        return self._different(field, Trunc(field, kind, tzinfo), order)

    def _check_time(self, field: str | Column[Any], kind: type[Any], what: str, other: str) -> None:
        path = field.path if isinstance(field, Column) else field
        _, column, rest = walk(self._meta, path)
        if rest or not isinstance(column, kind):
            raise FieldError(
                f"{what} takes a {kind.__name__}, and {path!r} is none: {other} or values()"
            )

    def _different(self, field: str | Column[Any], unit: Expression, order: Order) -> Any:
        if order not in {"ASC", "DESC"}:
            raise FieldError(f"order={order!r} is not 'ASC' or 'DESC'")
        label = next(n for n in ("unit", "unit0", "unit00") if not self._knows(n))
        known = (
            field.is_null(False) if isinstance(field, Column) else Q(**{f"{field}__isnull": False})
        )
        found = self.filter(known)._rows_of("flat", (), {label: unit})
        return as_rows(found.distinct().order_by(label if order == "ASC" else f"-{label}"))

    def _knows(self, name: str) -> bool:
        return (
            name in (self._notes or {})
            or self._meta.find(name) is not None
            or hasattr(self._meta.model, name)
        )
