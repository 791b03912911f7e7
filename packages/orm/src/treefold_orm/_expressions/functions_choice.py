"""Functions that choose one of several values: Coalesce, Greatest, Least, NullIf.

Their operands are brought to one type, as `operands.chosen` says. A name is a field, text is a
`Value`, and a bare value is checked by the type of the operands beside it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.expressions import Expression, F, freeze_operands
from treefold_orm._expressions.nodes import Expr
from treefold_orm._expressions.operands import as_output, chosen
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import Field

AnyField = Field[Any]


class _Choice(Expression):
    __slots__ = ("args", "output_field")

    name: ClassVar[str] = ""
    fewest: ClassVar[int] = 2

    def __init__(self, *expressions: Any, output_field: AnyField | None = None) -> None:
        if len(expressions) < self.fewest:
            name = type(self).__name__
            raise FieldError(f"{name} must be given {self.fewest} operands, got {len(expressions)}")
        self.args = expressions
        self.output_field = output_field

    def freeze(self, scope: Scope) -> Expr:
        values = [F(arg) if isinstance(arg, str) else arg for arg in self.args]
        made = chosen(self.name, freeze_operands(values, scope.nested(), self.output_field))
        return made if self.output_field is None else as_output(made, self.output_field)


class Coalesce(_Choice):
    """The first operand that is not NULL."""

    __slots__ = ()
    name = "coalesce"
    fewest = 1


class Greatest(_Choice):
    """The largest operand; NULL only where all are NULL."""

    __slots__ = ()
    name = "greatest"


class Least(_Choice):
    """The smallest operand; NULL only where all are NULL."""

    __slots__ = ()
    name = "least"


class NullIf(_Choice):
    """NULL where both operands are equal, else the first."""

    __slots__ = ()
    name = "nullif"

    def __init__(self, first: Any, second: Any) -> None:
        super().__init__(first, second)
