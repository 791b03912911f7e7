"""Range: two columns as one range of PostgreSQL, for constraints and comparisons in the schema.

Example, no two bookings of a room at one time:

    ExclusionConstraint([("room", "="), (Range("starts", "ends"), "&&")], name="one_at_a_time")

    EXCLUDE USING gist ("room" WITH =, (tstzrange("starts", "ends", '[)')) WITH &&)
"""

from __future__ import annotations

from typing import Literal

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.nodes import Expr, FuncNode
from treefold_orm._expressions.resolving import Resolvable, resolve
from treefold_orm._expressions.scope import Scope
from treefold_orm._terms.values import as_expression

_RANGE_TYPES = {
    "integer": "int8range",
    "bigint": "int8range",
    "decimal": "numrange",
    "date": "daterange",
    "datetime": "tstzrange",
}


class Range(Resolvable):
    """From `lower` to `upper`, names of fields or expressions (PostgreSQL only).

    `bounds` tells which ends belong to it, as in PostgreSQL: `[` and `]` do, `(` and `)` do not. A
    stay that ends on the day on which the next one begins is `[)`.
    A NULL at an end leaves that end open.
    """

    def __init__(
        self, lower: object, upper: object, bounds: Literal["[)", "[]", "()", "(]"] = "[)"
    ) -> None:
        if bounds not in {"[)", "[]", "()", "(]"}:
            raise FieldError(f"bounds must be '[)', '[]', '()' or '(]', got {bounds!r}")
        self.lower = lower
        self.upper = upper
        self.bounds = bounds

    def resolve(self, scope: Scope) -> Expr:
        nested = scope.enter_level()
        ends = tuple(resolve(as_expression(end), nested) for end in (self.lower, self.upper))
        fields = [end.field for end in ends]
        range_types = {None if f is None else _RANGE_TYPES.get(f.internal) for f in fields}
        range_type = range_types.pop()
        if range_types or range_type is None:
            raise FieldError("Range takes two integers, decimals, dates or datetimes of one kind")
        # no field has ranges: their SQL is for constraints, and no row gives one back
        return FuncNode(None, f"{range_type}{self.bounds}", ends)
