"""Functions of dates and times: Now, Extract, Trunc."""

from __future__ import annotations

import datetime as dt
from typing import Literal

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.conversion import (
    choose_matching_datetime_field,
    classify_field,
    describe_type,
)
from treefold_orm._expressions.nodes import Expr, FuncNode
from treefold_orm._expressions.operands import FUNCTION_RULES
from treefold_orm._expressions.resolving import Resolvable, resolve
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.carriers import DATE, DATETIME, INTEGER, TIME
from treefold_orm._fields.zones import ZONE, make_zoned_field
from treefold_orm._functions.base import Function
from treefold_orm._terms.values import as_expression

Unit = Literal["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
Part = Literal[Unit, "iso_year", "week_day", "iso_week_day", "date", "time"]
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
PARTS = (*UNITS, "iso_year", "week_day", "iso_week_day", "date", "time")
_CLOCK = frozenset({"hour", "minute", "second"})
_PARTS_OF = {
    "datetime": frozenset(PARTS),
    "date": frozenset(PARTS) - _CLOCK - {"time"},
    "time": _CLOCK | {"time"},
}


class Now(Function, names="now"):
    """The time of the statement, to the microsecond: one for all of its rows."""

    def __init__(self) -> None:
        super().__init__()

    @classmethod
    def build_node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        return FuncNode(DATETIME, "now", ())


class Extract(Resolvable):
    """A part of a date or time: `Extract("created", "year")`.

    Parts are numbers, but for "date" and "time". Those of a datetime are taken in UTC, or as the
    clocks of the zone that is given show them: `Extract("created", "hour",
    tzinfo=ZoneInfo("Europe/Berlin"))`. "week" is the ISO week and "iso_year" the year that it
    belongs to; "week_day" counts from 1 on Sunday, "iso_week_day" from 1 on Monday; "second" is
    whole.
    """

    def __init__(self, expression: object, part: Part, tzinfo: dt.tzinfo | None = None) -> None:
        if part not in PARTS:
            raise FieldError(f"Extract: part must be one of {', '.join(PARTS)}, got {part!r}")
        self.expression = expression
        self.part = part
        # times are in UTC anyway: no conversion, and the plan of Extract() without a zone
        self.tzinfo = None if tzinfo is dt.UTC else tzinfo

    def resolve(self, scope: Scope) -> Expr:
        node = resolve(as_expression(self.expression), scope.enter_level())
        if self.tzinfo is not None:
            _require_aware_datetime("Extract", node)
            # a value like others, so that all zones share one plan
            zone = scope.add_param(ZONE.coerce(self.tzinfo), ZONE)
            # the time on the clocks of the zone, as if it were one in UTC
            node = FuncNode(DATETIME, "clock_in_zone", (node, zone))
        return _build_extract((node,), self.part)


def _require_aware_datetime(name: str, node: Expr) -> None:
    if (
        node.field is None
        or classify_field(node.field) != "datetime"
        or choose_matching_datetime_field(node.field) != DATETIME
    ):
        given = "an OuterRef" if node.field is None else describe_type(node.field)
        raise FieldError(f"{name} with a tzinfo must be given a datetime, got {given}")


def _build_extract(args: tuple[Expr, ...], part: str) -> Expr:
    given = args[0].field
    if given is not None:
        kind = classify_field(given)
        if kind not in _PARTS_OF:
            raise FieldError(f"Extract must be given a date or time, got {describe_type(given)}")
        if part not in _PARTS_OF[kind]:
            needed = "a time" if kind == "date" else "a date"
            raise FieldError(
                f"Extract of {part!r} must be given {needed}, got {describe_type(given)}"
            )
    field = {"date": DATE, "time": TIME}.get(part, INTEGER)
    return FuncNode(field, "extract", args[:1], part)


class Trunc(Resolvable):
    """A date or time cut down to a unit: `Trunc("created", "month")`.

    A datetime is cut in UTC, or in the zone that is given (and then comes back in it).
    """

    def __init__(self, expression: object, unit: Unit, tzinfo: dt.tzinfo | None = None) -> None:
        if unit not in UNITS:
            raise FieldError(f"Trunc: unit must be one of {', '.join(UNITS)}, got {unit!r}")
        self.expression = expression
        self.unit = unit
        self.tzinfo = None if tzinfo is dt.UTC else tzinfo

    def resolve(self, scope: Scope) -> Expr:
        node = resolve(as_expression(self.expression), scope.enter_level())
        if self.tzinfo is None:
            return _build_trunc((node,), self.unit)
        _require_aware_datetime("Trunc", node)
        # rows come back in the zone, which the type says: each zone has a plan of its own
        zone = scope.add_param(ZONE.coerce(self.tzinfo), ZONE)
        return FuncNode(make_zoned_field(self.tzinfo), "trunc_in_zone", (node, zone), self.unit)


def _build_trunc(args: tuple[Expr, ...], unit: str) -> Expr:
    given = args[0].field
    if given is None:
        return FuncNode(None, "trunc", args, unit)
    kind = classify_field(given)
    if kind not in {"date", "datetime"}:
        raise FieldError(f"Trunc must be given a date or a datetime, got {describe_type(given)}")
    if kind == "date" and unit in _CLOCK:
        raise FieldError(
            f"Trunc with {unit!r} must be given a datetime, got {describe_type(given)}"
        )
    return FuncNode(
        DATE if kind == "date" else choose_matching_datetime_field(given), "trunc", args, unit
    )


FUNCTION_RULES.update(extract=_build_extract, trunc=_build_trunc)
