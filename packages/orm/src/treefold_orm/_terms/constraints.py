"""Constraints and indexes as declared in `Meta`: data for the schema, and names for errors.

A term is the name of a field, or an expression over fields of the same row. What a constraint is
called in the database, and which fields it speaks of, is known here to the schema and to errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from treefold_orm._base.errors import ModelError
from treefold_orm._terms.operators import Condition, Expression, OrderBy

Deferrable = Literal["deferred", "immediate"]
Term = str | Expression | OrderBy

_OPCLASS = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class RangeOperators:
    """Operators of an `ExclusionConstraint`: no two rows may have terms of which all hold."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    OVERLAPS = "&&"
    CONTAINS = "@>"
    CONTAINED_BY = "<@"
    FULLY_LT = "<<"
    FULLY_GT = ">>"
    NOT_LT = "&>"
    NOT_GT = "&<"
    ADJACENT_TO = "-|-"


OPERATORS = frozenset(v for k, v in vars(RangeOperators).items() if k.isupper())


@dataclass(frozen=True)
class Constraint:
    """Base of `UniqueConstraint`, `CheckConstraint` and `ExclusionConstraint`."""

    name: str


@dataclass(frozen=True, init=False)
class UniqueConstraint(Constraint):
    """Rows are unique over names of fields or over expressions: `UniqueConstraint("shop",
    "number")`, `UniqueConstraint(Lower("email"), name="one_email")`.

    With `condition`, only among the rows that meet it. `nulls_distinct=False` counts NULL as equal
    to NULL. `deferrable` is "deferred" (checked at the end of the transaction) or "immediate" (at
    each statement unless a transaction defers it); it needs PostgreSQL, as `include` (columns kept
    in the index) and `opclasses` do, which SQLite leaves out.
    """

    fields: tuple[str, ...]
    expressions: tuple[Term, ...]
    condition: Condition | None
    deferrable: Deferrable | None
    nulls_distinct: bool
    include: tuple[str, ...]
    opclasses: tuple[str, ...]

    def __init__(
        self,
        *terms: Term | Sequence[Term],
        fields: Sequence[str] = (),
        name: str = "",
        condition: Condition | None = None,
        deferrable: Deferrable | None = None,
        nulls_distinct: bool | None = None,
        include: Sequence[str] = (),
        opclasses: Sequence[str] = (),
    ) -> None:
        given = _normalize_terms("UniqueConstraint", terms, fields)
        plain = all(isinstance(term, str) for term in given)
        if not plain and not name:
            raise ModelError("UniqueConstraint over expressions needs a name")
        if deferrable is not None:
            _check_deferrable("UniqueConstraint", deferrable)
            if not plain or condition is not None or opclasses:
                raise ModelError(
                    "UniqueConstraint(deferrable=...) takes names of fields alone, without "
                    "expressions, condition and opclasses: PostgreSQL defers no index"
                )
        if any(isinstance(term, str) and term.startswith("-") for term in given):
            raise ModelError("UniqueConstraint takes names without '-': it has no order")
        _check_and_set_attributes(
            self,
            name=name,
            fields=given if plain else (),
            expressions=() if plain else given,
            condition=condition,
            deferrable=deferrable,
            nulls_distinct=nulls_distinct is not False,
            include=tuple(include),
            opclasses=_check_opclasses(opclasses, given),
        )


@dataclass(frozen=True, init=False)
class CheckConstraint(Constraint):
    """Every row meets `condition`; the values in it must be constants of the code."""

    condition: Condition

    def __init__(self, condition: Condition, *, name: str) -> None:
        if not name:
            raise ModelError("CheckConstraint needs a name: it is what an error will show")
        if not isinstance(cast("Any", condition), Condition):
            raise ModelError(
                f"CheckConstraint {name!r} takes a condition such as Q(n__gte=0), got {condition!r}"
            )
        _check_and_set_attributes(self, name=name, condition=condition)


@dataclass(frozen=True, init=False)
class ExclusionConstraint(Constraint):
    """No two rows may have terms that compare true with all operators (PostgreSQL only).

    `expressions` are pairs of a term and an operator of `RangeOperators`:

        ExclusionConstraint(
            [("room", "="), (Range("begins", "ends"), "&&")], name="one_booking_at_a_time"
        )

    With `condition`, only among the rows that meet it; `deferrable` as in `UniqueConstraint`.
    """

    expressions: tuple[tuple[Term, str], ...]
    condition: Condition | None
    deferrable: Deferrable | None

    def __init__(
        self,
        expressions: Sequence[tuple[Term, str]],
        *,
        name: str,
        condition: Condition | None = None,
        deferrable: Deferrable | None = None,
    ) -> None:
        if not name:
            raise ModelError("ExclusionConstraint needs a name: it is what an error will show")
        pairs = tuple((term, operator) for term, operator in expressions)
        _normalize_terms("ExclusionConstraint", [term for term, _ in pairs], ())
        for _, operator in pairs:
            if operator not in OPERATORS:
                raise ModelError(
                    f"ExclusionConstraint {name!r} cannot use the operator {operator!r}: use one "
                    f"of {' '.join(sorted(OPERATORS))}"
                )
        if deferrable is not None:
            _check_deferrable("ExclusionConstraint", deferrable)
        _check_and_set_attributes(
            self, name=name, expressions=pairs, condition=condition, deferrable=deferrable
        )


@dataclass(frozen=True, init=False)
class Index:
    """An index over names of fields (`-name`: descending) or expressions: `Index("shop", "-paid")`,
    `Index(Lower("email"), name="by_email")`.

    `condition` makes it partial. `include` (columns kept beside the key) and `opclasses` (one name
    for each term) are PostgreSQL's; SQLite leaves them out.
    """

    fields: tuple[Term, ...]
    name: str
    condition: Condition | None
    include: tuple[str, ...]
    opclasses: tuple[str, ...]

    def __init__(
        self,
        *terms: Term | Sequence[Term],
        fields: Sequence[Term] = (),
        name: str = "",
        condition: Condition | None = None,
        include: Sequence[str] = (),
        opclasses: Sequence[str] = (),
    ) -> None:
        given = _normalize_terms("Index", terms, fields)
        if not name and not all(isinstance(term, str) for term in given):
            raise ModelError("Index over expressions needs a name")
        _check_and_set_attributes(
            self,
            fields=given,
            name=name,
            condition=condition,
            include=tuple(include),
            opclasses=_check_opclasses(opclasses, given),
        )


def _check_and_set_attributes(declared: Any, **values: Any) -> None:
    condition = values.get("condition")
    if isinstance(condition, Condition) and condition.empty:
        raise ModelError(
            f"{type(declared).__name__} {values['name']!r} must have a condition, got an empty "
            "Q(); every row meets that"
        )
    for name, value in values.items():
        # frozen dataclasses whose own __init__ takes terms in several forms
        object.__setattr__(declared, name, value)


def _normalize_terms(kind: str, terms: Sequence[Any], fields: Sequence[Any]) -> tuple[Any, ...]:
    # `fields="shop"` would be four names of one letter
    if isinstance(fields, str):
        raise ModelError(f"{kind}(fields=...) must be a list of names, got {fields!r}")
    given = tuple(terms)
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = tuple(cast("Sequence[Any]", given[0]))
    if given and fields:
        raise ModelError(f"{kind} takes its terms by position or as fields=, not both")
    given = given or tuple(fields)
    if not given:
        raise ModelError(f"{kind} needs at least one field or expression")
    for term in given:
        if not isinstance(term, (str, Expression, OrderBy)):
            raise ModelError(f"{kind} takes names of fields and expressions, got {term!r}")
    return given


def _check_opclasses(opclasses: Sequence[str], terms: Sequence[Any]) -> tuple[str, ...]:
    given = tuple(opclasses)
    if given and len(given) != len(terms):
        raise ModelError(
            f"opclasses must have one name for each of the {len(terms)} terms, got {given!r}"
        )
    for name in given:
        # it becomes a part of the CREATE INDEX as it stands
        if _OPCLASS.fullmatch(name) is None:
            raise ModelError(f"opclasses must be plain names such as 'text_ops', got {name!r}")
    return given


def _check_deferrable(kind: str, value: object) -> None:
    if value not in {"deferred", "immediate"}:
        raise ModelError(f"{kind}(deferrable=...) must be 'deferred' or 'immediate', got {value!r}")
