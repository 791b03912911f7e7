"""Windows and their functions, and queries inside queries: Window, Rank, Subquery, Exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.conditions import Condition
from treefold_orm._expressions.conversion import common_type, converted
from treefold_orm._expressions.expressions import (
    Expression,
    F,
    OrderBy,
    Value,
    as_expression,
    freeze_operands,
)
from treefold_orm._expressions.frames import RowRange, WindowFrame
from treefold_orm._expressions.functions import Function, check_number
from treefold_orm._expressions.nodes import (
    WINDOW_FUNCTIONS,
    AggregateNode,
    ConvertNode,
    ExistsNode,
    Expr,
    FuncNode,
    Node,
    OrderNode,
    SubqueryNode,
    WindowNode,
)
from treefold_orm._expressions.ordering import freeze_order
from treefold_orm._expressions.scope import Scope

if TYPE_CHECKING:
    from treefold_orm._queries.query import QueryBuilder


class Subquery(Expression):
    """The one value of another query, which may look at this one through `OuterRef`."""

    __slots__ = ("query",)

    def __init__(self, query: QueryBuilder[Any, Any]) -> None:
        self.query = query

    def freeze(self, scope: Scope) -> SubqueryNode:
        return self.query._freeze_subquery(scope)


class Exists(Condition):
    """True if another query, which may look at this one through `OuterRef`, has a row."""

    __slots__ = ("query",)

    def __init__(self, query: QueryBuilder[Any, Any]) -> None:
        self.query = query

    def freeze_condition(self, scope: Scope) -> Node:
        return ExistsNode(self.query._freeze_subquery(scope))


class WindowFunction(Function):
    """Base of functions that have a value in a window only."""

    __slots__ = ()

    def freeze(self, scope: Scope) -> Expr:
        name = type(self).__name__
        raise FieldError(
            f"{name}() must stand in a Window, as in Window({name}(...), order_by=[...])"
        )

    def in_window(self, scope: Scope) -> Expr:
        """Resolve against a model; return the node of the function without its window."""
        return super().freeze(scope)


class RowNumber(WindowFunction):
    """The row's number in its window."""

    __slots__ = ()
    names = ("row_number",)
    output = "integer"


class Rank(WindowFunction):
    """The rank, with gaps after ties."""

    __slots__ = ()
    names = ("rank",)
    output = "integer"


class DenseRank(WindowFunction):
    """The rank, without gaps."""

    __slots__ = ()
    names = ("dense_rank",)
    output = "integer"


class Ntile(WindowFunction):
    """Which of `buckets` equal parts the row is in."""

    __slots__ = ()
    names = ("ntile",)
    output = "integer"

    def __init__(self, buckets: int) -> None:
        check_number("Ntile", "buckets", buckets, low=1)
        super().__init__(Value(buckets))


class _Neighbour(WindowFunction):
    __slots__ = ("default",)

    def __init__(self, expression: Any, offset: int = 1, default: Any = None) -> None:
        check_number(type(self).__name__, "offset", offset, low=1)
        super().__init__(expression, Value(offset))
        self.default = F(default) if isinstance(default, str) else default

    def in_window(self, scope: Scope) -> Expr:
        if self.default is None:
            return super().in_window(scope)
        nested = scope.nested()
        value, default = freeze_operands([as_expression(self.args[0]), self.default], nested)
        return self.node((value, self.args[1].freeze(nested), default))

    @classmethod
    def node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        if len(args) == 2:
            return FuncNode(args[0].field, cls.names[0], args)
        value, offset, default = args
        field = common_type([value, default])
        pair = converted(value, field), converted(default, field)
        return FuncNode(field, f"{cls.names[0]}_default", (pair[0], offset, pair[1]))


class Lag(_Neighbour):
    """The value `offset` rows before; where there is no such row `default`, or NULL.

    Args:
        expression: A field or expression.
        offset: A whole number of at least 1.
        default: A bare value or an expression; a name means a field.
    """

    __slots__ = ()
    names = ("lag", "lag_default")


class Lead(_Neighbour):
    """The value `offset` rows after; where there is no such row `default`, or NULL.

    Args:
        expression: A field or expression.
        offset: A whole number of at least 1.
        default: A bare value or an expression; a name means a field.
    """

    __slots__ = ()
    names = ("lead", "lead_default")


class NthValue(WindowFunction):
    """The value in the row `nth` of the window's frame, counted from 1; NULL where it has none.

    With an ordering the frame ends at the row itself: name `frame="all"` to mean all rows.
    """

    __slots__ = ()
    names = ("nth_value",)

    def __init__(self, expression: Any, nth: int = 1) -> None:
        check_number("NthValue", "nth", nth, low=1)
        super().__init__(expression, Value(nth))


class FirstValue(WindowFunction):
    """The value in the window's first row."""

    __slots__ = ()
    names = ("first_value",)


class LastValue(WindowFunction):
    """The value in the window's last row; with an ordering, name `frame="all"` to mean the last of
    all rows.
    """

    __slots__ = ()
    names = ("last_value",)


class PercentRank(WindowFunction):
    """The rank as a part of the window, from 0 to 1."""

    __slots__ = ()
    names = ("percent_rank",)
    output = "float"


class CumeDist(WindowFunction):
    """The part of the window's rows that are not after this one."""

    __slots__ = ()
    names = ("cume_dist",)
    output = "float"


class Window(Expression):
    """A function or aggregate over a window: `Window(Rank(), partition_by=["author"],
    order_by=["-n"])`.

    Args:
        expression: A function of windows, or an aggregate of the model's own rows.
        partition_by: Fields or expressions, or one of them; each combination of their values is a
            window.
        order_by: As for `order_by()` of a query; one term or several.
        frame: "rows_to_current", "all", a `RowRange`, a `ValueRange` or a `GroupRange`. Without
            one, an ordering means the rows up to the current one and those equal to it.
    """

    __slots__ = ("expression", "frame", "order_by", "partition_by")

    def __init__(
        self,
        expression: Expression,
        *,
        partition_by: Sequence[Any] | Expression | OrderBy = (),
        order_by: Sequence[Any] | Expression | OrderBy = (),
        frame: str | WindowFrame = "",
    ) -> None:
        if not isinstance(frame, WindowFrame) and frame not in _NAMED:
            raise FieldError(
                f"frame={frame!r} is not 'rows_to_current' or 'all', and no RowRange, ValueRange "
                "or GroupRange"
            )
        self.expression = expression
        self.partition_by = _terms(partition_by)
        self.order_by = _terms(order_by)
        self.frame = frame if isinstance(frame, WindowFrame) else _NAMED[frame]

    def freeze(self, scope: Scope) -> Expr:
        given = self.expression
        windowed = isinstance(given, WindowFunction)
        function = given.in_window(scope) if windowed else given.freeze(scope)
        partition = tuple(as_expression(p).freeze(scope) for p in self.partition_by)
        order: tuple[OrderNode, ...] = freeze_order(scope, self.order_by)
        frame = None if self.frame is None else self.frame.freeze(scope, order)

        def over(node: Expr) -> Expr:
            # a default or another type is applied to the result of the window
            if isinstance(node, ConvertNode):
                return ConvertNode(node.field, over(node.arg), node.mode)
            if isinstance(node, FuncNode) and node.name == "coalesce":
                return FuncNode(node.field, node.name, (over(node.args[0]), *node.args[1:]))
            return _checked(WindowNode(node.field, node, partition, order, frame))

        return over(function)


def _terms(given: Sequence[Any] | Expression | OrderBy) -> Sequence[Any]:
    return (given,) if isinstance(given, (str, Expression, OrderBy)) else given


def _checked(node: WindowNode) -> WindowNode:
    function = node.function
    if isinstance(function, AggregateNode):
        if any(hop.to_many for hop in function.hops):
            raise FieldError("A window aggregates its own rows: it cannot go over a relation")
        if function.distinct:
            raise FieldError("A window cannot aggregate distinct values: use a Subquery")
        if function.order:
            raise FieldError(
                "A window cannot collect values in an order of their own: order the window"
            )
    elif not isinstance(function, FuncNode) or function.name not in WINDOW_FUNCTIONS:
        raise FieldError("Window must be given an aggregate or a function of windows")
    return node


_NAMED = {"": None, "rows_to_current": RowRange(None, 0), "all": RowRange()}
