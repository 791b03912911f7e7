"""Functions that choose one of several values: Coalesce, Greatest, Least, NullIf, Case with When.

Their operands are brought to one type, by `build_case` and `build_same_type_function`. A name is a
field, text is a `Value`, and a bare value is checked by the type of the operands beside it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.conditions import resolve_condition
from treefold_orm._expressions.nodes import Expr
from treefold_orm._expressions.operands import (
    build_case,
    build_same_type_function,
    convert_to_output_type,
)
from treefold_orm._expressions.resolving import Resolvable, resolve_operands
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._terms.operators import Condition, Q
from treefold_orm._terms.values import F


class _Choice(Resolvable):
    name: ClassVar[str] = ""
    fewest: ClassVar[int] = 2

    def __init__(self, *expressions: object, output_field: AnyField | None = None) -> None:
        if len(expressions) < self.fewest:
            name = type(self).__name__
            raise FieldError(f"{name} must be given {self.fewest} operands, got {len(expressions)}")
        self.args = expressions
        self.output_field = output_field

    def resolve(self, scope: Scope) -> Expr:
        values = list(map(_convert_name_to_field, self.args))
        operands = resolve_operands(values, scope.enter_level(), self.output_field)
        made = build_same_type_function(self.name, operands)
        return (
            made if self.output_field is None else convert_to_output_type(made, self.output_field)
        )


class Coalesce(_Choice):
    """The first operand that is not NULL."""

    name = "coalesce"
    fewest = 1


class Greatest(_Choice):
    """The largest operand; NULL only where all are NULL."""

    name = "greatest"


class Least(_Choice):
    """The smallest operand; NULL only where all are NULL."""

    name = "least"


class NullIf(_Choice):
    """NULL where both operands are equal, else the first."""

    name = "nullif"

    def __init__(self, first: object, second: object) -> None:
        super().__init__(first, second)


class When:
    """A condition and its result, for `Case`: `When(n__gt=3, then=Value("many"))`; a text is the
    name of a field.
    """

    # a model may have a field that is called `self`
    def __init__(self, /, *conditions: Condition, then: object, **lookups: Any) -> None:
        self.condition = Q(*conditions, **lookups)
        if self.condition.empty:
            raise FieldError(
                "When() must have a condition, got none or an empty Q(); give a value for all "
                "other rows as default= of Case"
            )
        self.then = _convert_name_to_field(then)


class Case(Resolvable):
    """The result of the first `When` that is true, else `default`; a text names a field."""

    def __init__(
        self, *whens: When, default: Any = None, output_field: AnyField | None = None
    ) -> None:
        if not whens:
            raise FieldError("Case needs at least one When")
        self.whens = whens
        self.default = _convert_name_to_field(default)
        self.output_field = output_field

    def resolve(self, scope: Scope) -> Expr:
        conditions = [resolve_condition(when.condition, scope) for when in self.whens]
        results = [when.then for when in self.whens]
        if self.default is not None:
            results.append(self.default)
        values = list(resolve_operands(results, scope, self.output_field))
        # NULL needs no ELSE, and has no type to bring the other results to
        default = None if self.default is None else values.pop()
        return build_case(tuple(zip(conditions, values, strict=True)), default, self.output_field)


def _convert_name_to_field(operand: Any) -> Any:
    return F(operand) if isinstance(operand, str) else operand
