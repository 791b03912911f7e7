"""SQL that differs between the two databases: placeholders, casts, text search, dates, JSON,
functions.

`Dialect` is the contract; `sqlite.py` and `postgres.py` implement it. A dialect gets finished
`SQL` pieces and returns `SQL`; it knows no models, queries or connections.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from treefold_orm._dialects.sql import SQL, Encoder

if TYPE_CHECKING:
    from treefold_orm._expressions.nodes import OrderNode
    from treefold_orm._fields.base import AnyField, Fields

Bind = Callable[[Any], SQL]

OPERATORS: dict[str, SQL] = {
    "exact": SQL("{} = {}"),
    "gt": SQL("{} > {}"),
    "gte": SQL("{} >= {}"),
    "lt": SQL("{} < {}"),
    "lte": SQL("{} <= {}"),
}

UNIT_WORDS: dict[str, SQL] = {
    word: SQL(word)
    for word in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
}


class JSONPaths(Protocol):
    """Values at JSON paths, and tests of them."""

    def build_path_value(self, document: SQL, keys: tuple[str, ...], bind: Bind) -> SQL:
        """The JSON value at a path, NULL where there is none; `bind` marks a key's place."""
        ...

    def build_json_path_condition(
        self,
        test_name: str,
        document: SQL,
        keys: tuple[str, ...],
        *,
        bind: Bind,
        right: list[SQL],
        build_text_lookup: Callable[[str, SQL, SQL], SQL],
    ) -> SQL:
        """A test of the value at a path, named as in `_expressions/json_lookups.py`;
        `build_text_lookup` writes text lookups.
        """
        ...

    def build_path_order_value(
        self, kind: str, document: SQL, keys: tuple[str, ...], bind: Bind
    ) -> SQL:
        """What the value at a path is ordered by: a number for its "type", its "number", its
        "text".
        """
        ...

    def select_json_test_encoder(self, test: str) -> Encoder | None:
        """The encoder of the value of a JSON test: one parameter, or two for a range."""
        ...


class Arithmetic(Protocol):
    """Operators, sums and means of numbers, spans and points in time."""

    def build_arithmetic(
        self, op: str, left: SQL, right: SQL, fields: tuple[Any, Any, Any], *, checked: bool
    ) -> SQL:
        """`left op right`; `fields` are those of left, right and result. Without `checked` the
        caller sees to results that are too large.
        """
        ...

    def build_checked_sum(self, value: SQL, field: AnyField | None) -> SQL:
        """A sum as `field`, which is an error where it is too large."""
        ...

    def build_mean(
        self,
        build_call: Callable[[str], SQL],
        argument_field: AnyField | None,
        result_field: AnyField | None,
        *,
        distinct: bool,
    ) -> SQL:
        """A mean of what `argument_field` holds as `result_field`; `build_call` writes
        the aggregates sum, count and avg of it, `distinct` where they take each value once.
        """
        ...


class Dialect(ABC):
    """One database's way of saying things; `json` and `numbers` are modules of their own."""

    name: ClassVar[str]
    reuses: ClassVar[bool]
    distinct_on: ClassVar[bool]
    json: ClassVar[JSONPaths]
    numbers: ClassVar[Arithmetic]
    regex = False

    @abstractmethod
    def format_placeholder(self, position: int) -> SQL:
        """The mark for the parameter at a position, counted from 1."""

    @abstractmethod
    def cast(self, value: SQL, field: AnyField | None) -> SQL:
        """`value` with its type made plain, where the database would otherwise have to guess."""

    @abstractmethod
    def cast_function_result(self, value: SQL, field: AnyField | None) -> SQL:
        """The result of a function or aggregate as the type its field expects."""

    @abstractmethod
    def build_cast(self, value: SQL, source: AnyField | None, field: AnyField) -> SQL:
        """`value`, which travels as `source`, cast to another type of number by the caller."""

    @abstractmethod
    def build_conversion(self, value: SQL, source: AnyField, target: AnyField, mode: str) -> SQL:
        """The value of a `ConvertNode`: `value`, which travels as `source`, as `target` does."""

    @abstractmethod
    def build_in_list(self, left: SQL, param: SQL, field: AnyField) -> SQL:
        """`left` is one of the values of a parameter encoded by `list_encoder`."""

    @abstractmethod
    def list_encoder(self, field: AnyField) -> Encoder:
        """The encoder from a list of checked values to one parameter."""

    @abstractmethod
    def build_key_rows_query(self, parts: Fields, bind: Callable[[Encoder], SQL]) -> SQL:
        """A query for the rows of a parameter that is a list of tuples of `parts`.

        `bind` gives a placeholder for the encoded list.
        """

    @abstractmethod
    def text(self, op: str, left: SQL, right: SQL) -> SQL:
        """A text lookup; `right` is escaped here where the database has wildcards."""

    @abstractmethod
    def extract(self, part: str, value: SQL, field: AnyField) -> SQL:
        """A part of a date, time or text."""

    @abstractmethod
    def trunc(self, kind: str, value: SQL, field: AnyField, zone: SQL | None = None) -> SQL:
        """A date or time cut down to a unit, in a time zone where one is given."""

    @abstractmethod
    def build_null_safe_equality(self, left: SQL, right: SQL) -> SQL:
        """Compare two values for equality, NULL being equal to NULL."""

    @abstractmethod
    def build_json_equality(self, left: SQL, right: SQL) -> SQL:
        """Compare two JSON values for equality."""

    @abstractmethod
    def build_array_comparison(self, op: str, left: SQL, right: SQL) -> SQL:
        """A comparison of arrays."""

    @abstractmethod
    def build_function_call(self, name: str, args: list[SQL]) -> SQL:
        """A function of the closed list."""

    @abstractmethod
    def aggregate(self, name: str, value: SQL, *, distinct: bool) -> SQL:
        """An aggregate of one value."""

    @abstractmethod
    def build_ordered_aggregate(
        self, name: str, args: list[SQL], terms: list[tuple[SQL, OrderNode]], *, distinct: bool
    ) -> SQL:
        """An aggregate that collects values, in the order of `terms`."""

    def build_window_aggregate(
        self, name: str, args: list[SQL], *, where: SQL | None, over: SQL, empty: bool
    ) -> SQL | None:
        """An aggregate over a window where this is not written as a call with clauses after it,
        else None. `empty` says whether a frame may have no row.
        """
        return None

    @abstractmethod
    def build_range_frame_key(self, value: SQL, field: AnyField) -> SQL:
        """A value in the ordering of a window whose frame goes by distances."""

    @abstractmethod
    def build_limit_clause(self, limit: SQL | None, offset: SQL | None) -> SQL:
        """The LIMIT and OFFSET clause, with a leading space."""

    @abstractmethod
    def build_lock_clause(self, *, of: SQL, skip_locked: bool, nowait: bool, strength: str) -> SQL:
        """The clause that locks selected rows, with a leading space; `strength` is "share",
        "no_key" or empty.
        """


def build_plain_comparison(op: str, left: SQL, right: SQL) -> SQL:
    """One of the plain comparisons."""
    return OPERATORS[op].fill_template([left, right])
