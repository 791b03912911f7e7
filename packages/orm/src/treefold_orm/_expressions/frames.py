"""Window frames: which rows around a row its window function sees.

`RowRange` counts rows, `GroupRange` groups of rows that the ordering leaves equal, `ValueRange`
goes by the distance between values. Their bounds become values of the query.
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any, ClassVar, Literal

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.conversion import describe, kind_of, places_of
from treefold_orm._expressions.functions import check_number
from treefold_orm._expressions.nodes import Expr, FrameBound, FrameNode, OrderNode
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import Field
from treefold_orm._fields.carriers import DURATION, FLOAT, INTEGER, decimal_carrier

AnyField = Field[Any]
Exclude = Literal["", "current", "group", "ties"]
EXCLUDES = ("", "current", "group", "ties")
_POINTS = frozenset({"date", "datetime", "time", "duration"})


class WindowFrame:
    """Base of frames: from `start` to `end`, both included.

    0 is the row itself (with `ValueRange` and `GroupRange` also those equal to it), a negative
    bound lies before it, a positive one after it, None is the end of the window. `exclude` leaves
    out the row ("current"), it and the rows equal to it ("group"), or only these ("ties").
    """

    __slots__ = ("end", "exclude", "start")

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
        """Raise `FieldError` for what cannot be a bound."""
        name = type(self).__name__
        check_number(name, "bounds", bound, low=-(2**31) + 1)

    def freeze(self, scope: Scope, order: tuple[OrderNode, ...]) -> FrameNode:
        """Return the node of the frame in a window with this ordering."""
        start, end = self._bound(scope, self.start, order), self._bound(scope, self.end, order)
        return FrameNode(self.kind, start, end, self.exclude)

    def _bound(self, scope: Scope, bound: Any, order: tuple[OrderNode, ...]) -> FrameBound | None:
        if bound is None:
            return None
        side = (bound > bound * 0) - (bound < bound * 0)
        return FrameBound(side, self.distance(scope, abs(bound), order) if side else None)

    def distance(self, scope: Scope, value: Any, order: tuple[OrderNode, ...]) -> Expr:
        """Return the node of a bound's distance from the row."""
        return scope.param(value, INTEGER)


class RowRange(WindowFrame):
    """Rows counted from the row itself: `RowRange(-6, 0)` is a row and the six before it."""

    __slots__ = ()
    kind = "rows"


class GroupRange(WindowFrame):
    """Groups of rows that the window's ordering leaves equal, counted from the row's own group."""

    __slots__ = ()
    kind = "groups"

    def freeze(self, scope: Scope, order: tuple[OrderNode, ...]) -> FrameNode:
        if not order:
            raise FieldError("GroupRange must have an order_by in its Window")
        return super().freeze(scope, order)


class ValueRange(WindowFrame):
    """Rows by the distance of their value in the window's ordering: `ValueRange(-10, 0)`, or of
    dates `ValueRange(dt.timedelta(days=-6), dt.timedelta(0))`.

    Bounds other than 0 and None take an ordering by one number, date or time.
    """

    __slots__ = ()
    kind = "range"

    def check(self, bound: Any) -> None:
        allowed = (int, float, decimal.Decimal, dt.timedelta)
        if isinstance(bound, bool) or not isinstance(bound, allowed):
            raise FieldError(f"ValueRange: bounds must be numbers or timedeltas, got {bound!r}")

    def distance(self, scope: Scope, value: Any, order: tuple[OrderNode, ...]) -> Expr:
        if len(order) != 1:
            raise FieldError(
                f"ValueRange must have an order_by of one term in its Window, got {len(order)}"
            )
        field = _distance_field(order[0].expr.field)
        if isinstance(value, int) and field is FLOAT:
            value = float(value)
        return scope.param(field.coerce(value), field)


def _distance_field(field: AnyField | None) -> AnyField:
    kind = "" if field is None else kind_of(field)
    if kind == "decimal" and field is not None:
        return decimal_carrier(places_of(field))
    if kind in _POINTS:
        return DURATION
    if kind not in {"integer", "float"}:
        name = "an expression of no known type" if field is None else describe(field)
        raise FieldError(f"ValueRange must order its Window by a number or a date, got {name}")
    return INTEGER if kind == "integer" else FLOAT
