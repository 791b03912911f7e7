"""What the two databases say differently: placeholders, casts, text search, dates, JSON,
functions.

`Dialect` is the contract; `_sqlite` and `_postgres` fill it. A dialect gets finished `SQL` pieces
and returns `SQL`; it knows no models, queries or connections.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from treefold_orm._compile._sql import SQL, Encoder
from treefold_orm._errors import FieldError

if TYPE_CHECKING:
    from treefold_orm._fields._base import Field

Bind = Callable[[Any], SQL]

OPERATORS: dict[str, SQL] = {
    "exact": SQL("{} = {}"),
    "gt": SQL("{} > {}"),
    "gte": SQL("{} >= {}"),
    "lt": SQL("{} < {}"),
    "lte": SQL("{} <= {}"),
}

FUNCTIONS: dict[str, SQL] = {
    "lower": SQL("LOWER({})"),
    "upper": SQL("UPPER({})"),
    "length": SQL("LENGTH({})"),
    "trim": SQL("TRIM({})"),
    "ltrim": SQL("LTRIM({})"),
    "rtrim": SQL("RTRIM({})"),
    "replace": SQL("REPLACE({}, {}, {})"),
    "substr": SQL("SUBSTR({}, {}, {})"),
    "nullif": SQL("NULLIF({}, {})"),
    "abs": SQL("ABS({})"),
    "row_number": SQL("ROW_NUMBER()"),
    "rank": SQL("RANK()"),
    "dense_rank": SQL("DENSE_RANK()"),
    "percent_rank": SQL("PERCENT_RANK()"),
    "cume_dist": SQL("CUME_DIST()"),
    "ntile": SQL("NTILE({})"),
    "first_value": SQL("FIRST_VALUE({})"),
    "last_value": SQL("LAST_VALUE({})"),
}

UNIT_WORDS: dict[str, SQL] = {
    "year": SQL("year"),
    "quarter": SQL("quarter"),
    "month": SQL("month"),
    "week": SQL("week"),
    "day": SQL("day"),
    "hour": SQL("hour"),
    "minute": SQL("minute"),
    "second": SQL("second"),
}


class Dialect(ABC):
    """One database's way of saying things."""

    name: ClassVar[str]
    reuses: ClassVar[bool]
    distinct_on: ClassVar[bool]
    regex = False

    @abstractmethod
    def placeholder(self, position: int) -> SQL:
        """The mark for the parameter at a position, counted from 1."""

    @abstractmethod
    def cast(self, value: SQL, field: Field[Any] | None) -> SQL:
        """`value` with its type made plain, where the database would otherwise have to guess."""

    @abstractmethod
    def typed(self, value: SQL, field: Field[Any] | None) -> SQL:
        """The result of a function or aggregate as the type its field expects."""

    @abstractmethod
    def convert(self, value: SQL, field: Field[Any]) -> SQL:
        """An explicit CAST written by the caller."""

    @abstractmethod
    def in_list(self, left: SQL, param: SQL, field: Field[Any]) -> SQL:
        """`left` is one of the values of a parameter encoded by `list_encoder`."""

    @abstractmethod
    def list_encoder(self, field: Field[Any]) -> Encoder:
        """What turns a list of checked values into one parameter."""

    @abstractmethod
    def text(self, op: str, left: SQL, right: SQL) -> SQL:
        """A text lookup; `right` is escaped here where the database has wildcards."""

    @abstractmethod
    def extract(self, part: str, value: SQL, field: Field[Any]) -> SQL:
        """A part of a date, time or text."""

    @abstractmethod
    def trunc(self, kind: str, value: SQL, field: Field[Any], zone: SQL | None = None) -> SQL:
        """A date or time cut down to a unit, in a time zone where one is given."""

    @abstractmethod
    def json_path(self, document: SQL, keys: tuple[str, ...], bind: Bind) -> SQL:
        """The JSON value at a path, NULL where there is none; `bind` marks a key's place."""

    @abstractmethod
    def json_test(
        self, name: str, document: SQL, keys: tuple[str, ...], *, bind: Bind, right: list[SQL]
    ) -> SQL:
        """A test of the value at a path, named as in `_json_lookups`."""

    @abstractmethod
    def json_encoder(self, name: str) -> Encoder | None:
        """What turns the value of a JSON test into one parameter, or into two for a range."""

    @abstractmethod
    def json_equal(self, left: SQL, right: SQL) -> SQL:
        """Whether two JSON values are equal."""

    @abstractmethod
    def array_test(self, op: str, left: SQL, right: SQL) -> SQL:
        """A comparison of arrays."""

    @abstractmethod
    def arithmetic(self, op: str, left: SQL, right: SQL, fields: tuple[Any, Any, Any]) -> SQL:
        """`left op right`; `fields` are those of left, right and result."""

    @abstractmethod
    def function(self, name: str, args: list[SQL]) -> SQL:
        """A function of the closed list."""

    @abstractmethod
    def mean(self, value: SQL, field: Field[Any] | None) -> SQL:
        """A mean of what `field` holds, as a float (or a duration)."""

    @abstractmethod
    def limit(self, limit: SQL | None, offset: SQL | None) -> SQL:
        """The LIMIT and OFFSET clause, with a leading space."""

    @abstractmethod
    def lock(self, *, of: SQL, skip_locked: bool, nowait: bool, share: bool) -> SQL:
        """The clause that locks selected rows, with a leading space."""

    def plain_function(self, name: str, args: list[SQL]) -> SQL:
        """A function both databases have under one name."""
        template = FUNCTIONS.get(name)
        if template is None:
            raise FieldError(f"{name!r} is no known function")
        return template.filled(args)


def operator(op: str, left: SQL, right: SQL) -> SQL:
    """One of the plain comparisons."""
    return OPERATORS[op].filled([left, right])
