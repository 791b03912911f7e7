"""Functions as expressions: the base of all families.

The functions form a closed list: their names and options are words of these modules, everything
else a caller gives is a resolved field or a bound value. A function whose SQL depends on the type
of its argument gets one name for each type when it is resolved (`round_float`, `round_integer`), so
that the dialects hold templates and no decisions. Arguments that a function does not take are
refused here.
"""

from __future__ import annotations

from typing import Any, ClassVar

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.arguments import make_constant
from treefold_orm._expressions.nodes import Expr, FuncNode
from treefold_orm._expressions.operands import FUNCTION_RULES
from treefold_orm._expressions.resolving import Resolvable, resolve
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.carriers import FLOAT, INTEGER, TEXT
from treefold_orm._terms.operators import Expression
from treefold_orm._terms.values import Value, as_expression

_OUTPUTS = {"text": TEXT, "integer": INTEGER, "float": FLOAT}
_MOST = 2**31 - 1  # the databases count characters and rows with 32 bits


class Function(Resolvable):
    """Base of functions: names of the closed list and their arguments.

    A name given as an argument means a field. `build_node` makes a node of resolved arguments, and
    does so again where an `OuterRef` among these learns its type.

    Example, `Round("price", 1)`, where `price` is a DecimalField of two places, becomes

        FuncNode(<DecimalField of one place>, "round_decimal", (<column price>, <1>, <2>), "")

    The last argument, the places of `price`, is added by `build_node`. If `price` were a field of
    an outer query, `_rebuild_node` would keep the first two, the `arity` of `Round`, and build the
    node once more.

    Attributes:
        names: the names of the function in nodes, given with the class.
        arity: how many arguments a caller gives; None where a node has no others.
        output: "text", "integer" or "float", the type of the result, given with the class; empty
            for that of the first argument that has one.
    """

    names: ClassVar[tuple[str, ...]] = ()
    arity: ClassVar[int | None] = None
    output: ClassVar[str] = ""

    def __init__(self, *args: Any) -> None:
        self.args = args
        self.option = ""

    def __init_subclass__(cls, *, names: str = "", output: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.names = tuple(names.split()) or cls.names
        cls.output = output or cls.output
        # all names lead to the class: with the type of an OuterRef, `round` becomes `round_decimal`
        FUNCTION_RULES.update(dict.fromkeys(cls.names, cls._rebuild_node))

    @classmethod
    def _rebuild_node(cls, args: tuple[Expr, ...], option: str) -> Expr:
        # what a rule has added behind, such as the places of a decimal, belongs to the former type
        return cls.build_node(args[: cls.arity], option)

    def resolve(self, scope: Scope) -> Expr:
        nested = scope.enter_level()
        args = tuple(resolve(as_expression(arg), nested) for arg in self.args)
        return self.build_node(args, self.option)

    @classmethod
    def build_node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        """Return the node over resolved arguments; `FieldError` for types it does not take."""
        field = _OUTPUTS.get(cls.output)
        if field is None:
            field = next((arg.field for arg in args if arg.field is not None), None)
        return FuncNode(field, cls.names[0], args, option)


class OneArgument(Function):
    """Base of functions of one argument."""

    def __init__(self, expression: object) -> None:
        super().__init__(expression)


def make_text_argument(function: str, argument_name: str, value: object) -> Expression:
    """Return an argument that is text unless it is an expression."""
    if isinstance(value, Expression):
        return value
    if not isinstance(value, str):
        raise FieldError(f"{function}: {argument_name} must be text, got {value!r}")
    return Value(value)


def make_integer_argument(
    function: str, argument_name: str, value: object, *, low: int = -_MOST
) -> Expression:
    """Return an argument that is a whole number of at least `low` unless it is an expression."""
    if isinstance(value, Expression):
        return value
    require_integer_in_range(function, argument_name, value, low=low)
    return Value(value)


def require_integer_in_range(
    function: str,
    argument_name: str,
    value: object,
    *,
    low: int,
    high: int = _MOST,
    remedy: str = "",
) -> int:
    """Return a plain whole number between two bounds; `FieldError` for everything else."""
    # True is an int to Python
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        bound = f"of at least {low}" if high == _MOST else f"from {low} to {high}"
        raise FieldError(
            f"{function}: {argument_name} must be a whole number {bound}, got {value!r}{remedy}"
        )
    return value


class Constant(Resolvable):
    """A plain whole number that belongs to the shape of a query; bound all the same."""

    def __init__(self, value: int) -> None:
        self.value = value

    def resolve(self, scope: Scope) -> Expr:
        return make_constant(self.value)
