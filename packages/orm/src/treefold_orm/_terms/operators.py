"""Expressions and conditions, and the operators that combine them.

They hold names and values, and say nothing about models: the room `expressions` resolves them.
Arithmetic makes expressions, comparisons make conditions, and `& | ^ ~` join conditions.
"""

from __future__ import annotations

from typing import Any

from treefold_orm._base.errors import FieldError


class Expression:
    """Base of everything that has a value in a query.

    Arithmetic gives expressions; comparisons give conditions for `filter`.
    """

    __slots__ = ()

    def __add__(self, other: object) -> Combined:
        return Combined("+", self, other)

    def __radd__(self, other: object) -> Combined:
        return Combined("+", other, self)

    def __sub__(self, other: object) -> Combined:
        return Combined("-", self, other)

    def __rsub__(self, other: object) -> Combined:
        return Combined("-", other, self)

    def __mul__(self, other: object) -> Combined:
        return Combined("*", self, other)

    def __rmul__(self, other: object) -> Combined:
        return Combined("*", other, self)

    def __truediv__(self, other: object) -> Combined:
        return Combined("/", self, other)

    def __rtruediv__(self, other: object) -> Combined:
        return Combined("/", other, self)

    def __mod__(self, other: object) -> Combined:
        return Combined("%", self, other)

    def __rmod__(self, other: object) -> Combined:
        return Combined("%", other, self)

    def __pow__(self, other: object) -> Combined:
        return Combined("**", self, other)

    def __rpow__(self, other: object) -> Combined:
        return Combined("**", other, self)

    def __neg__(self) -> Combined:
        return Combined("*", self, -1)

    def __gt__(self, other: object) -> Condition:
        return Comparison(self, "gt", other)

    def __ge__(self, other: object) -> Condition:
        return Comparison(self, "gte", other)

    def __lt__(self, other: object) -> Condition:
        return Comparison(self, "lt", other)

    def __le__(self, other: object) -> Condition:
        return Comparison(self, "lte", other)

    def asc(
        self, *, nulls: str = "", nulls_first: bool | None = None, nulls_last: bool | None = None
    ) -> OrderBy:
        """Order by this, smallest first; `nulls` is "first" or "last", as `nulls_first=True` or
        `nulls_last=True`.
        """
        nulls = _resolve_nulls_position(nulls, nulls_first, nulls_last)
        return OrderBy(self, descending=False, nulls=nulls)

    def desc(
        self, *, nulls: str = "", nulls_first: bool | None = None, nulls_last: bool | None = None
    ) -> OrderBy:
        """Order by this, largest first; `nulls` is "first" or "last", as `nulls_first=True` or
        `nulls_last=True`.
        """
        nulls = _resolve_nulls_position(nulls, nulls_first, nulls_last)
        return OrderBy(self, descending=True, nulls=nulls)


def _resolve_nulls_position(nulls: str, first: bool | None, last: bool | None) -> str:
    given = [
        word for word, wanted in ((nulls, bool(nulls)), ("first", first), ("last", last)) if wanted
    ]
    if len(given) > 1:
        raise FieldError(f"nulls must stand in one place, got {' and '.join(given)}")
    return given[0] if given else ""


class OrderBy:
    """One term of an ordering, as made by `asc()` and `desc()`."""

    __slots__ = ("descending", "expression", "nulls")

    def __init__(self, expression: Expression, *, descending: bool, nulls: str) -> None:
        if nulls not in {"", "first", "last"}:
            raise FieldError(f"nulls={nulls!r} is not 'first' or 'last'")
        self.expression = expression
        self.descending = descending
        self.nulls = nulls


class Combined(Expression):
    """Two operands and an arithmetic operator."""

    __slots__ = ("left", "op", "right")

    def __init__(self, op: str, left: object, right: object) -> None:
        self.op = op
        self.left = left
        self.right = right


class Condition:
    """Base of everything `filter` takes; combined with `&`, `|`, `^` and `~`."""

    __slots__ = ()

    @property
    def empty(self) -> bool:
        """True for a `Q` without any condition: it adds nothing, wherever it stands."""
        return False

    def __and__(self, other: Condition) -> Q:
        return Q.joined("and", (self, _require_condition(other)))

    def __or__(self, other: Condition) -> Q:
        return Q.joined("or", (self, _require_condition(other)))

    def __xor__(self, other: Condition) -> Q:
        if self.empty or _require_condition(other).empty:
            return self | other
        # `<>` between conditions is unknown where one of them is; `~` takes that for false
        return (self & ~other) | (~self & other)

    def __invert__(self) -> Condition:
        return Negated(self)

    def __bool__(self) -> bool:
        # `a == 1 and b == 2` would be the second condition alone, without a word
        raise FieldError(
            "A condition has no truth value here: combine with &, | and ~ instead of and, or, not"
        )


def _require_condition(value: object) -> Condition:
    if not isinstance(value, Condition):
        raise FieldError(f"{type(value).__name__} is not a condition: give a Q or a comparison")
    return value


_NESTED = 16
"""Levels of a chain of conditions from which on it stays flat."""


class Q(Condition):
    """Lookups by keyword that can be combined: `Q(name="x") | Q(n__gt=3)`; several are joined by
    AND.

    There are no control keywords: every keyword is a lookup. `Q()` is empty: it adds nothing to
    what it is combined with, and `~Q()` is empty too.
    """

    __slots__ = ("_levels", "children", "connector")

    children: tuple[Any, ...]
    connector: str

    # positional-only, since a model may have a field that is called `self`
    def __init__(self, /, *conditions: Condition, **lookups: Any) -> None:
        given = (
            [c for c in map(_require_condition, conditions) if not c.empty] if conditions else ()
        )
        self.children = (*given, *lookups.items())
        self.connector = "and"
        self._levels = 0

    @classmethod
    def joined(cls, connector: str, children: tuple[Condition, ...]) -> Q:
        """Join conditions by "and" or "or"; those that are empty are left out."""
        made = cls.__new__(cls)
        made.connector = connector
        given = [child for child in children if not child.empty]
        made.children = tuple([part for child in given for part in made._flatten_operand(child)])
        inner = [part._levels for part in made.children if isinstance(part, Q)]
        made._levels = 1 + max(inner, default=0)
        return made

    def _flatten_operand(self, condition: Condition) -> tuple[Any, ...]:
        """Return the parts of one side; a long chain, as a loop makes it, grows no deeper.

        A short one stays as it is nested: its text is in the checks of databases.
        """
        if (
            isinstance(condition, Q)
            and condition.__class__ is Q  # a subclass may mean more than its parts
            and condition.connector == self.connector
            and condition._levels >= _NESTED
        ):
            return condition.children
        return (condition,)

    @property
    def empty(self) -> bool:
        return not self.children

    def __invert__(self) -> Condition:
        return self if self.empty else Negated(self)


class Negated(Condition):
    """The rows that a condition does not select, those where it is unknown included."""

    __slots__ = ("inner",)

    def __init__(self, inner: Condition) -> None:
        self.inner = inner

    def __invert__(self) -> Condition:
        # selects the same rows: those for which it is unknown are in neither
        return self.inner


class Comparison(Condition):
    """An expression compared with a value, another expression or a query."""

    __slots__ = ("left", "op", "right")

    def __init__(self, left: Expression, op: str, right: object) -> None:
        self.left = left
        self.op = op
        self.right = right
