"""Case and When: a value chosen by conditions."""

from __future__ import annotations

from typing import Any

from treefold_orm._compile._nodes import CaseNode, Expr, Node
from treefold_orm._conditions import Condition, Q
from treefold_orm._errors import FieldError
from treefold_orm._expressions import Expression, freeze_value
from treefold_orm._fields._base import Field
from treefold_orm._scope import Scope

AnyField = Field[Any]


class When:
    """A condition and its result, for `Case`: `When(n__gt=3, then=Value("many"))`."""

    __slots__ = ("condition", "then")

    def __init__(self, /, *conditions: Condition, then: Any, **lookups: Any) -> None:
        self.condition = Q(*conditions, **lookups)
        self.then = then


class Case(Expression):
    """The result of the first `When` that is true, else `default`."""

    __slots__ = ("default", "output_field", "whens")

    def __init__(
        self, *whens: When, default: Any = None, output_field: AnyField | None = None
    ) -> None:
        if not whens:
            raise FieldError("Case needs at least one When")
        self.whens = whens
        self.default = default
        self.output_field = output_field

    def freeze(self, scope: Scope) -> Expr:
        field = self.output_field
        pairs: list[tuple[Node, Expr]] = []
        for when in self.whens:
            condition = when.condition.freeze_condition(scope)
            result = freeze_value(when.then, scope, field)
            field = field or result.field
            pairs.append((condition, result))
        default = None if self.default is None else freeze_value(self.default, scope, field)
        return CaseNode(field, tuple(pairs), default)
