"""Case and When: a value chosen by conditions."""

from __future__ import annotations

from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.conditions import Condition, Q
from treefold_orm._expressions.expressions import Expression, F, freeze_operands
from treefold_orm._expressions.nodes import Expr
from treefold_orm._expressions.operands import chosen_case
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import Field

AnyField = Field[Any]


class When:
    """A condition and its result, for `Case`: `When(n__gt=3, then=Value("many"))`; a text is the
    name of a field.
    """

    __slots__ = ("condition", "then")

    def __init__(self, /, *conditions: Condition, then: Any, **lookups: Any) -> None:
        self.condition = Q(*conditions, **lookups)
        if self.condition.empty:
            raise FieldError(
                "When() must have a condition, got none or an empty Q(); give a value for all "
                "other rows as default= of Case"
            )
        self.then = _field_or_value(then)


class Case(Expression):
    """The result of the first `When` that is true, else `default`; a text names a field."""

    __slots__ = ("default", "output_field", "whens")

    def __init__(
        self, *whens: When, default: Any = None, output_field: AnyField | None = None
    ) -> None:
        if not whens:
            raise FieldError("Case needs at least one When")
        self.whens = whens
        self.default = _field_or_value(default)
        self.output_field = output_field

    def freeze(self, scope: Scope) -> Expr:
        conditions = [when.condition.freeze_condition(scope) for when in self.whens]
        results = [when.then for when in self.whens]
        if self.default is not None:
            results.append(self.default)
        values = list(freeze_operands(results, scope, self.output_field))
        default = None if self.default is None else values.pop()
        return chosen_case(tuple(zip(conditions, values, strict=True)), default, self.output_field)


def _field_or_value(result: Any) -> Any:
    return F(result) if isinstance(result, str) else result
