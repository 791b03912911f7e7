"""Windows, their frames and functions, and queries inside queries: Window, Rank, Subquery, Exists.

Of the frames, `RowRange` counts rows, `GroupRange` groups of rows that the ordering leaves equal,
`ValueRange` goes by the distance between values. Their bounds become values of the query.

Example, windows ordered by days with the values 1, 2, 2 and 5, at the second row:

| Frame | Its rows |
|---|---|
| `RowRange(-1, 0)` | 1, 2 |
| `GroupRange(-1, 0)` | 1, 2, 2 |
| `ValueRange(0, 3)` | 2, 2, 5 |
| `"all"` | 1, 2, 2, 5 |
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions import conversion, nodes
from treefold_orm._expressions.conditions import ResolvableCondition
from treefold_orm._expressions.ordering import resolve_order
from treefold_orm._expressions.resolving import QuerySource, Resolvable, resolve, resolve_operands
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.carriers import DURATION, FLOAT, INTEGER, make_decimal_field
from treefold_orm._functions.base import Function, require_integer_in_range
from treefold_orm._terms.operators import Expression, OrderBy
from treefold_orm._terms.values import F, Value, as_expression

Exclude = Literal["", "current", "group", "ties"]
EXCLUDES = ("", "current", "group", "ties")
_POINTS = frozenset({"date", "datetime", "time", "duration"})


class WindowFrame:
    """Base of frames: from `start` to `end`, both included.

    0 is the row itself (with `ValueRange` and `GroupRange` also those equal to it), a negative
    bound lies before it, a positive one after it, None is the end of the window. `exclude` leaves
    out the row ("current"), it and the rows equal to it ("group"), or only these ("ties").
    """

    kind: ClassVar[str] = ""

    def __init__(self, start: Any = None, end: Any = None, *, exclude: Exclude = "") -> None:
        if exclude not in EXCLUDES:
            raise FieldError(f"exclude must be one of {', '.join(EXCLUDES[1:])}, got {exclude!r}")
        for bound in (start, end):
            if bound is not None:
                self.check(bound)
        if start is not None and end is not None and start > end:
            name = type(self).__name__
            raise FieldError(f"{name} must not end before it starts, got {start!r} to {end!r}")
        self.start = start
        self.end = end
        self.exclude = exclude

    def check(self, bound: Any) -> None:
        """Raise `FieldError` for a value that cannot be a bound."""
        name = type(self).__name__
        require_integer_in_range(name, "bounds", bound, low=-(2**31) + 1)

    def resolve(self, scope: Scope, order: tuple[nodes.OrderNode, ...]) -> nodes.WindowFrameNode:
        """Return the node of the frame in a window with this ordering."""
        start = self._resolve_bound(scope, self.start, order)
        end = self._resolve_bound(scope, self.end, order)
        return nodes.WindowFrameNode(self.kind, start, end, self.exclude)

    def _resolve_bound(
        self, scope: Scope, bound: Any, order: tuple[nodes.OrderNode, ...]
    ) -> nodes.WindowFrameBound | None:
        if bound is None:
            return None
        # compared with the zero of its type: a timedelta does not compare with 0
        side = (bound > bound * 0) - (bound < bound * 0)
        return nodes.WindowFrameBound(
            side, self.build_offset_parameter(scope, abs(bound), order) if side else None
        )

    def build_offset_parameter(
        self, scope: Scope, value: Any, order: tuple[nodes.OrderNode, ...]
    ) -> nodes.Expr:
        """Return the node of a bound's distance from the row."""
        return scope.add_param(value, INTEGER)


class RowRange(WindowFrame):
    """Rows counted from the row itself: `RowRange(-6, 0)` is a row and the six before it."""

    kind = "rows"


class GroupRange(WindowFrame):
    """Groups of rows that the window's ordering leaves equal, counted from the row's own group."""

    kind = "groups"

    def resolve(self, scope: Scope, order: tuple[nodes.OrderNode, ...]) -> nodes.WindowFrameNode:
        # PostgreSQL refuses GROUPS without ORDER BY
        if not order:
            raise FieldError("GroupRange must have an order_by in its Window")
        return super().resolve(scope, order)


class ValueRange(WindowFrame):
    """Rows by the distance of their value in the window's ordering: `ValueRange(-10, 0)`, or of
    dates `ValueRange(dt.timedelta(days=-6), dt.timedelta(0))`.

    Bounds other than 0 and None take an ordering by one number, date or time.
    """

    kind = "range"

    def check(self, bound: Any) -> None:
        allowed = (int, float, decimal.Decimal, dt.timedelta)
        if isinstance(bound, bool) or not isinstance(bound, allowed):
            raise FieldError(f"ValueRange: bounds must be numbers or timedeltas, got {bound!r}")

    def build_offset_parameter(
        self, scope: Scope, value: Any, order: tuple[nodes.OrderNode, ...]
    ) -> nodes.Expr:
        # a distance is taken in one term: both databases refuse more
        if len(order) != 1:
            raise FieldError(
                f"ValueRange must have an order_by of one term in its Window, got {len(order)}"
            )
        field = _choose_range_offset_field(order[0].expr.field)
        if isinstance(value, int) and field is FLOAT:
            value = float(value)
        return scope.add_param(field.coerce(value), field)


def _choose_range_offset_field(field: AnyField | None) -> AnyField:
    kind = "" if field is None else conversion.classify_field(field)
    if kind == "decimal" and field is not None:
        return make_decimal_field(conversion.count_decimal_places(field))
    if kind in _POINTS:
        return DURATION
    if kind not in {"integer", "float"}:
        name = (
            "an expression of no known type" if field is None else conversion.describe_type(field)
        )
        raise FieldError(f"ValueRange must order its Window by a number or a date, got {name}")
    return INTEGER if kind == "integer" else FLOAT


class Subquery(Resolvable):
    """The one value of another query, which may look at this one through `OuterRef`."""

    def __init__(self, query: QuerySource) -> None:
        self.query = query

    def resolve(self, scope: Scope) -> nodes.SubqueryNode:
        return self.query._resolve_subquery(scope)


class Exists(ResolvableCondition):
    """True if another query, which may look at this one through `OuterRef`, has a row."""

    def __init__(self, query: QuerySource) -> None:
        self.query = query

    def resolve_condition(self, scope: Scope) -> nodes.Node:
        return nodes.ExistsNode(self.query._resolve_subquery(scope))


class WindowFunction(Function):
    """Base of functions that have a value in a window only."""

    def resolve(self, scope: Scope) -> nodes.Expr:
        name = type(self).__name__
        raise FieldError(
            f"{name}() must stand in a Window, as in Window({name}(...), order_by=[...])"
        )

    def resolve_without_window(self, scope: Scope) -> nodes.Expr:
        """Resolve against a model; return the node of the function without its window."""
        return super().resolve(scope)


class RowNumber(WindowFunction, names="row_number", output="integer"):
    """The row's number in its window."""


class Rank(WindowFunction, names="rank", output="integer"):
    """The rank, with gaps after ties."""


class DenseRank(WindowFunction, names="dense_rank", output="integer"):
    """The rank, without gaps."""


class Ntile(WindowFunction, names="ntile", output="integer"):
    """Which of `buckets` equal parts the row is in."""

    def __init__(self, buckets: int) -> None:
        require_integer_in_range("Ntile", "buckets", buckets, low=1)
        super().__init__(Value(buckets))


class _OffsetFunction(WindowFunction):
    def __init__(self, expression: Any, offset: int = 1, default: Any = None) -> None:
        require_integer_in_range(type(self).__name__, "offset", offset, low=1)
        super().__init__(expression, Value(offset))
        self.default = F(default) if isinstance(default, str) else default

    def resolve_without_window(self, scope: Scope) -> nodes.Expr:
        if self.default is None:
            return super().resolve_without_window(scope)
        nested = scope.enter_level()
        value, default = resolve_operands([as_expression(self.args[0]), self.default], nested)
        return self.build_node((value, resolve(self.args[1], nested), default))

    @classmethod
    def build_node(cls, args: tuple[nodes.Expr, ...], option: str = "") -> nodes.Expr:
        if len(args) == 2:
            return nodes.FuncNode(args[0].field, cls.names[0], args)
        value, offset, default = args
        field = conversion.find_common_expression_type([value, default])
        pair = conversion.convert_node(value, field), conversion.convert_node(default, field)
        return nodes.FuncNode(field, f"{cls.names[0]}_default", (pair[0], offset, pair[1]))


class Lag(_OffsetFunction, names="lag lag_default"):
    """The value `offset` rows before; where there is no such row `default`, or NULL.

    Args:
        expression: a field or expression.
        offset: a whole number of at least 1.
        default: a bare value or an expression; a name means a field.
    """


class Lead(_OffsetFunction, names="lead lead_default"):
    """The value `offset` rows after; where there is no such row `default`, or NULL.

    Args:
        expression: a field or expression.
        offset: a whole number of at least 1.
        default: a bare value or an expression; a name means a field.
    """


class NthValue(WindowFunction, names="nth_value"):
    """The value in the row `nth` of the window's frame, counted from 1; NULL where it has none.

    With an ordering the frame ends at the row itself: name `frame="all"` to mean all rows.
    """

    def __init__(self, expression: object, nth: int = 1) -> None:
        require_integer_in_range("NthValue", "nth", nth, low=1)
        super().__init__(expression, Value(nth))


class FirstValue(WindowFunction, names="first_value"):
    """The value in the window's first row."""


class LastValue(WindowFunction, names="last_value"):
    """The value in the window's last row; with an ordering, name `frame="all"` to mean the last of
    all rows.
    """


class PercentRank(WindowFunction, names="percent_rank", output="float"):
    """The rank as a part of the window, from 0 to 1."""


class CumeDist(WindowFunction, names="cume_dist", output="float"):
    """The part of the window's rows that are not after this one."""


class Window(Resolvable):
    """A function or aggregate over a window: `Window(Rank(), partition_by=["author"],
    order_by=["-n"])`.

    Args:
        expression: a function of windows, or an aggregate of the model's own rows.
        partition_by: fields or expressions, or one of them; each combination of their values is a
            window.
        order_by: as for `order_by()` of a query; one term or several.
        frame: "rows_to_current", "all", a `RowRange`, a `ValueRange` or a `GroupRange`. Without
            one, an ordering means the rows up to the current one and those equal to it.
    """

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
        self.partition_by = _ensure_sequence(partition_by)
        self.order_by = _ensure_sequence(order_by)
        self.frame = frame if isinstance(frame, WindowFrame) else _NAMED[frame]

    def resolve(self, scope: Scope) -> nodes.Expr:
        given = self.expression
        windowed = isinstance(given, WindowFunction)
        # a function of windows refuses to be resolved alone, which is how a missing Window is found
        function = given.resolve_without_window(scope) if windowed else resolve(given, scope)
        partition = tuple(resolve(as_expression(p), scope) for p in self.partition_by)
        order: tuple[nodes.OrderNode, ...] = resolve_order(scope, self.order_by)
        frame = None if self.frame is None else self.frame.resolve(scope, order)

        def wrap_in_window(node: nodes.Expr) -> nodes.Expr:
            # a default or another type is applied to the result of the window
            if isinstance(node, nodes.ConvertNode):
                return nodes.ConvertNode(node.field, wrap_in_window(node.arg), node.mode)
            if isinstance(node, nodes.FuncNode) and node.name == "coalesce":
                first = wrap_in_window(node.args[0])
                return nodes.FuncNode(node.field, node.name, (first, *node.args[1:]))
            return _check_window(nodes.WindowNode(node.field, node, partition, order, frame))

        return wrap_in_window(function)


def _ensure_sequence(given: Sequence[Any] | Expression | OrderBy) -> Sequence[Any]:
    return (given,) if isinstance(given, (str, Expression, OrderBy)) else given


def _check_window(node: nodes.WindowNode) -> nodes.WindowNode:
    function = node.function
    if isinstance(function, nodes.AggregateNode):
        if any(hop.to_many for hop in function.hops):
            raise FieldError("A window aggregates its own rows: it cannot go over a relation")
        # neither database has DISTINCT in a window
        if function.distinct:
            raise FieldError("A window cannot aggregate distinct values: use a Subquery")
        if function.order:
            raise FieldError(
                "A window cannot collect values in an order of their own: order the window"
            )
    elif not isinstance(function, nodes.FuncNode) or function.name not in nodes.WINDOW_FUNCTIONS:
        raise FieldError("Window must be given an aggregate or a function of windows")
    return node


_NAMED = {"": None, "rows_to_current": RowRange(None, 0), "all": RowRange()}
