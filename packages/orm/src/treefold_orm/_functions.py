"""Functions as expressions: text, numbers, dates.

The functions form a closed list: their names and options are words of this module, everything else
a caller gives is a resolved field or a bound value.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

from treefold_orm._carriers import DATE, DATETIME, FLOAT, INTEGER, TEXT
from treefold_orm._compile._nodes import Expr, FuncNode
from treefold_orm._errors import FieldError
from treefold_orm._expressions import Expression, Value, as_expression, freeze_value
from treefold_orm._fields._base import Field
from treefold_orm._scope import Scope
from treefold_orm._zones import ZONE, zoned

AnyField = Field[Any]
Unit = Literal["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
Part = Literal[
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "week_day",
    "hour",
    "minute",
    "second",
    "date",
    "time",
]
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_OUTPUTS = {"text": TEXT, "integer": INTEGER, "float": FLOAT, "datetime": DATETIME}
PARTS = (*UNITS, "week_day", "date", "time")


class Function(Expression):
    """Base of functions: a name of the closed list and its arguments."""

    __slots__ = ("args", "output_field")

    name = ""
    output = ""

    def __init__(self, *args: Any, output_field: AnyField | None = None) -> None:
        self.args = args
        self.output_field = output_field

    def freeze(self, scope: Scope) -> Expr:
        nodes = tuple(as_expression(arg).freeze(scope) for arg in self.args)
        field = (
            self.output_field
            or _OUTPUTS.get(self.output)
            or next((n.field for n in nodes if n.field is not None), None)
        )
        return FuncNode(field, self.name, nodes)


class _Text(Function):
    __slots__ = ()
    output = "text"

    def __init__(self, expression: Any) -> None:
        super().__init__(expression)


class Lower(_Text):
    """Text in lower case."""

    __slots__ = ()
    name = "lower"


class Upper(_Text):
    """Text in upper case."""

    __slots__ = ()
    name = "upper"


class Trim(_Text):
    """Text without spaces at both ends."""

    __slots__ = ()
    name = "trim"


class LTrim(_Text):
    """Text without spaces at its start."""

    __slots__ = ()
    name = "ltrim"


class RTrim(_Text):
    """Text without spaces at its end."""

    __slots__ = ()
    name = "rtrim"


class Position(Function):
    """Where `part` begins in `text`, counted from 1; 0 where it does not occur."""

    __slots__ = ()
    name = "position"
    output = "integer"

    def __init__(self, text: Any, part: Any) -> None:
        super().__init__(text, _bound(part))


class Length(Function):
    """Number of characters."""

    __slots__ = ()
    name = "length"
    output = "integer"

    def __init__(self, expression: Any) -> None:
        super().__init__(expression)


class Concat(Function):
    """Texts joined; NULL counts as empty."""

    __slots__ = ()
    name = "concat"
    output = "text"


class Replace(Function):
    """`text` with every `old` replaced by `new`."""

    __slots__ = ()
    name = "replace"
    output = "text"

    def __init__(self, text: Any, old: str, new: str) -> None:
        super().__init__(text, _bound(old), _bound(new))


class Substr(Function):
    """`length` characters from `start`, counted from 1."""

    __slots__ = ()
    name = "substr"
    output = "text"

    def __init__(self, text: Any, start: int, length: int) -> None:
        super().__init__(text, start, length)


class Coalesce(Function):
    """The first argument that is not NULL."""

    __slots__ = ()
    name = "coalesce"

    def freeze(self, scope: Scope) -> Expr:
        first = as_expression(self.args[0]).freeze(scope)
        rest = [freeze_value(arg, scope, first.field) for arg in self.args[1:]]
        return FuncNode(self.output_field or first.field, self.name, (first, *rest))


class Greatest(Function):
    """The largest argument."""

    __slots__ = ()
    name = "greatest"


class Least(Function):
    """The smallest argument."""

    __slots__ = ()
    name = "least"


class NullIf(Function):
    """NULL where both arguments are equal, else the first."""

    __slots__ = ()
    name = "nullif"

    def freeze(self, scope: Scope) -> Expr:
        first = as_expression(self.args[0]).freeze(scope)
        return FuncNode(
            first.field, self.name, (first, freeze_value(self.args[1], scope, first.field))
        )


class Abs(Function):
    """The absolute value."""

    __slots__ = ()
    name = "abs"


class Round(Function):
    """Rounded to a whole number."""

    __slots__ = ()
    name = "round"
    output = "float"

    def __init__(self, expression: Any) -> None:
        super().__init__(expression)


class Floor(Function):
    """The largest whole number that is not larger."""

    __slots__ = ()
    name = "floor"
    output = "integer"


class Ceil(Function):
    """The smallest whole number that is not smaller."""

    __slots__ = ()
    name = "ceil"
    output = "integer"


class Now(Function):
    """The time of the statement."""

    __slots__ = ()
    name = "now"
    output = "datetime"


class Cast(Function):
    """The value as another field's type."""

    __slots__ = ()
    name = "cast"

    def __init__(self, expression: Any, output_field: AnyField) -> None:
        super().__init__(expression, output_field=output_field)


class Extract(Expression):
    """A part of a date or time as a number: `Extract("created", "year")`."""

    __slots__ = ("expression", "part")

    def __init__(self, expression: Any, part: Part) -> None:
        if part not in PARTS:
            raise FieldError(
                f"{part!r} is no part of a date or time: use one of {', '.join(PARTS)}"
            )
        self.expression = expression
        self.part = part

    def freeze(self, scope: Scope) -> Expr:
        node = as_expression(self.expression).freeze(scope)
        if node.field is None or node.field.internal not in {"date", "datetime", "time"}:
            raise FieldError("Extract needs a date or time")
        field = DATE if self.part == "date" else INTEGER
        return FuncNode(field, "extract", (node,), self.part)


class Trunc(Expression):
    """A date or time cut down to a unit: `Trunc("created", "month")`.

    A datetime is cut in UTC, or in the zone that is given (and then comes back in it).
    """

    __slots__ = ("expression", "tzinfo", "unit")

    def __init__(self, expression: Any, unit: Unit, tzinfo: dt.tzinfo | None = None) -> None:
        if unit not in UNITS:
            raise FieldError(f"{unit!r} is no unit: use one of {', '.join(UNITS)}")
        self.expression = expression
        self.unit = unit
        self.tzinfo = None if tzinfo is dt.UTC else tzinfo

    def freeze(self, scope: Scope) -> Expr:
        node = as_expression(self.expression).freeze(scope)
        if node.field is None or node.field.internal not in {"date", "datetime"}:
            raise FieldError("Trunc needs a date or a datetime")
        if self.tzinfo is None:
            return FuncNode(node.field, "trunc", (node,), self.unit)
        if node.field.internal != "datetime":
            raise FieldError("Trunc takes a tzinfo for a datetime only: a date has no zone")
        zone = scope.param(ZONE.coerce(self.tzinfo), ZONE)
        return FuncNode(zoned(self.tzinfo), "trunc", (node, zone), self.unit)


def _bound(value: Any) -> Expression:
    return value if isinstance(value, Expression) else Value(value)
