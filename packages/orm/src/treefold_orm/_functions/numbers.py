"""Functions of numbers.

Decimals stay decimals and exact, integers stay integers, and functions with real results
only give floats. A number without a result is a `DataError` when its row is met, on both databases.
"""

from __future__ import annotations

from treefold_orm._expressions.arguments import (
    make_constant,
    read_constant,
    require_float_argument,
    require_number_argument,
)
from treefold_orm._expressions.conversion import classify_field, count_decimal_places
from treefold_orm._expressions.nodes import Expr, FuncNode
from treefold_orm._fields.carriers import FLOAT, INTEGER, make_decimal_field
from treefold_orm._functions.base import Constant, Function, OneArgument, require_integer_in_range


class _Number(OneArgument):
    """A function of one number whose SQL depends on the number's type."""

    arity = 1

    @classmethod
    def build_node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        number = require_number_argument(cls.__name__, args[0])
        # without a type yet, as of an OuterRef: the name is one that the dialects do not have
        if number.field is None:
            return FuncNode(None, cls.names[0], (number, *args[1:]))
        match classify_field(number.field):
            case "integer":
                return cls.build_integer_node(number, args[1:])
            case "decimal":
                return cls.build_decimal_node(number, args[1:], count_decimal_places(number.field))
            case _:
                return cls.build_float_node(number, args[1:])

    @classmethod
    def build_integer_node(cls, number: Expr, rest: tuple[Expr, ...]) -> Expr:
        """Return the node for an integer."""
        return number

    @classmethod
    def build_decimal_node(cls, number: Expr, rest: tuple[Expr, ...], places: int) -> Expr:
        """Return the node for a decimal of so many places."""
        name = f"{cls.names[0]}_decimal"
        return FuncNode(make_decimal_field(0), name, (number, make_constant(places)))

    @classmethod
    def build_float_node(cls, number: Expr, rest: tuple[Expr, ...]) -> Expr:
        """Return the node for a float."""
        # an int as in Python; one that 64 bits do not hold is an error of its row
        return FuncNode(INTEGER, f"{cls.names[0]}_float", (number,))


class Abs(_Number, names="abs abs_integer abs_decimal abs_float"):
    """The absolute value."""

    @classmethod
    def build_integer_node(cls, number: Expr, rest: tuple[Expr, ...]) -> Expr:
        return FuncNode(INTEGER, "abs_integer", (number,))

    @classmethod
    def build_decimal_node(cls, number: Expr, rest: tuple[Expr, ...], places: int) -> Expr:
        return FuncNode(make_decimal_field(places), "abs_decimal", (number,))

    @classmethod
    def build_float_node(cls, number: Expr, rest: tuple[Expr, ...]) -> Expr:
        return FuncNode(FLOAT, "abs_float", (number,))


class Sign(OneArgument, names="sign"):
    """-1, 0 or 1, as the number is below, at or above zero."""

    @classmethod
    def build_node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        return FuncNode(INTEGER, "sign", (require_number_argument("Sign", args[0]),))


class Round(_Number, names="round round_integer round_decimal round_float"):
    """The number rounded to `places` after the point, half away from zero.

    A float is rounded as it is written: `Round(2.675, 2)` is 2.68.

    Args:
        expression: a field or expression.
        places: a whole number; a negative one rounds to tens, hundreds and so on.
    """

    arity = 2

    def __init__(self, expression: object, places: int = 0) -> None:
        super().__init__(expression)
        require_integer_in_range("Round", "places", places, low=-30, high=30)
        self.args = (expression, Constant(places))

    @classmethod
    def build_integer_node(cls, number: Expr, rest: tuple[Expr, ...]) -> Expr:
        if read_constant(rest[0]) >= 0:
            return number
        return FuncNode(INTEGER, "round_integer", (number, *rest))

    @classmethod
    def build_decimal_node(cls, number: Expr, rest: tuple[Expr, ...], places: int) -> Expr:
        kept = read_constant(rest[0])
        # nothing to round: the value keeps its places instead of getting zeros behind them
        if kept >= places:
            return number
        field = make_decimal_field(max(kept, 0))
        return FuncNode(field, "round_decimal", (number, *rest, make_constant(places)))

    @classmethod
    def build_float_node(cls, number: Expr, rest: tuple[Expr, ...]) -> Expr:
        return FuncNode(FLOAT, "round_float", (number, *rest))


class Floor(_Number, names="floor floor_decimal floor_float"):
    """The largest whole number that is not larger."""


class Ceil(_Number, names="ceil ceil_decimal ceil_float"):
    """The smallest whole number that is not smaller."""


class _Real(Function):
    """A function of floats."""

    @classmethod
    def build_node(cls, args: tuple[Expr, ...], option: str = "") -> Expr:
        function = cls.__name__
        floats = tuple(require_float_argument(function, arg) for arg in args)
        return FuncNode(FLOAT, cls.names[0], floats)


class Power(_Real, names="power"):
    """`base` to the power of `exponent`, as a float; also written `F("n") ** 2`.

    `DataError` for a row where it is no real number or leaves the range of a float.
    """

    def __init__(self, base: object, exponent: object) -> None:
        super().__init__(base, exponent)


class Sqrt(_Real, OneArgument, names="sqrt"):
    """The square root, as a float; `DataError` for a row with a number below zero."""


class Exp(_Real, OneArgument, names="exp"):
    """e to the power of the number, as a float; `DataError` where it leaves a float's range."""


class Ln(_Real, OneArgument, names="ln"):
    """The natural logarithm, as a float; `DataError` for a row without a number above zero."""


class Log(_Real, names="log"):
    """The logarithm of `expression` to `base`, as a float: `Log(10, "n")`.

    `DataError` for a row where one of them is not above zero, or the base is 1.
    """

    def __init__(self, base: object, expression: object) -> None:
        super().__init__(base, expression)


class Random(Function, names="random", output="float"):
    """A random float from 0 to below 1, another one for each row and each place where it stands.

    No two statements give the same numbers, and none of them are secret.
    """

    def __init__(self) -> None:
        super().__init__()
