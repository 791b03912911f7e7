"""Windows and their functions, and queries inside queries: Window, Rank, Subquery, Exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._compile._nodes import (
    AggregateNode,
    ExistsNode,
    Expr,
    Node,
    OrderNode,
    SubqueryNode,
    WindowNode,
)
from treefold_orm._conditions import Condition
from treefold_orm._errors import FieldError
from treefold_orm._expressions import Expression, as_expression
from treefold_orm._functions import Function
from treefold_orm._ordering import freeze_order
from treefold_orm._scope import Scope

if TYPE_CHECKING:
    from treefold_orm._query import QueryBuilder


class Subquery(Expression):
    """The one value of another query, which may look at this one through `OuterRef`."""

    __slots__ = ("query",)

    def __init__(self, query: QueryBuilder[Any, Any]) -> None:
        self.query = query

    def freeze(self, scope: Scope) -> SubqueryNode:
        return self.query._freeze_subquery(scope)


class Exists(Condition):
    """Whether another query, which may look at this one through `OuterRef`, has a row."""

    __slots__ = ("query",)

    def __init__(self, query: QueryBuilder[Any, Any]) -> None:
        self.query = query

    def freeze_condition(self, scope: Scope) -> Node:
        return ExistsNode(self.query._freeze_subquery(scope))


class RowNumber(Function):
    """The row's number in its window."""

    __slots__ = ()
    name = "row_number"
    output = "integer"


class Rank(Function):
    """The rank, with gaps after ties."""

    __slots__ = ()
    name = "rank"
    output = "integer"


class DenseRank(Function):
    """The rank, without gaps."""

    __slots__ = ()
    name = "dense_rank"
    output = "integer"


class Ntile(Function):
    """Which of `buckets` equal parts the row is in."""

    __slots__ = ()
    name = "ntile"
    output = "integer"


class Lag(Function):
    """The value `offset` rows before."""

    __slots__ = ()
    name = "lag"

    def __init__(self, expression: Any, offset: int = 1) -> None:
        super().__init__(expression, offset)


class Lead(Function):
    """The value `offset` rows after."""

    __slots__ = ()
    name = "lead"

    def __init__(self, expression: Any, offset: int = 1) -> None:
        super().__init__(expression, offset)


class FirstValue(Function):
    """The value in the window's first row."""

    __slots__ = ()
    name = "first_value"


class LastValue(Function):
    """The value in the window's last row; with an ordering, name `frame="all"` to mean the last of
    all rows.
    """

    __slots__ = ()
    name = "last_value"


class PercentRank(Function):
    """The rank as a part of the window, from 0 to 1."""

    __slots__ = ()
    name = "percent_rank"
    output = "float"


class CumeDist(Function):
    """The part of the window's rows that are not after this one."""

    __slots__ = ()
    name = "cume_dist"
    output = "float"


class Window(Expression):
    """A function or aggregate over a window: `Window(Rank(), partition_by=["author"],
    order_by=["-n"])`.

    `frame` is "rows_to_current" or "all"; without it the database's default holds.
    """

    __slots__ = ("frame", "function", "order_by", "partition_by")

    def __init__(
        self,
        function: Expression,
        *,
        partition_by: Sequence[Any] = (),
        order_by: Sequence[Any] = (),
        frame: str = "",
    ) -> None:
        if frame not in {"", "rows_to_current", "all"}:
            raise FieldError(f"frame={frame!r} is not 'rows_to_current' or 'all'")
        self.function = function
        self.partition_by = partition_by
        self.order_by = order_by
        self.frame = frame

    def freeze(self, scope: Scope) -> Expr:
        function = self.function.freeze(scope)
        if isinstance(function, AggregateNode) and function.hops:
            raise FieldError("A window aggregates its own rows: it cannot go over a relation")
        partition = tuple(as_expression(p).freeze(scope) for p in self.partition_by)
        order: tuple[OrderNode, ...] = freeze_order(scope, self.order_by)
        return WindowNode(function.field, function, partition, order, self.frame)
