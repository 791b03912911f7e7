"""Expressions inside expressions, from recipes that hypothesis draws.

A recipe is a nested tuple: an operand, an operator, a choice or a function with the recipes of what
stands inside. Terms that must be refused end a recipe: nothing is built on them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from crossing import cases_casts, cases_functions, cases_operators, functions, oracle
from crossing.kinds import FLOAT, INT
from crossing.terms import LEFT_FORMS, Term, beside, constant, offered, operand
from crossing.values import NAMES, Row

FUNCTIONS = {
    function.label: function
    for function in (
        *cases_functions.TEXTS,
        *cases_functions.NUMBERS,
        *cases_functions.DATES,
        *cases_casts.CASTS,
    )
}
_NUMBERS = ("small", "num", "big", "real", "money", "fine")
_TIMES = ("day", "moment", "clock", "span")
_ALL = tuple(name for name in NAMES if name not in {"uid", "blob", "doc", "flag"})
_CASTS = [function.label for function in cases_casts.CASTS]
_TO_NUMBERS = _CASTS[:6]
_SHARP = {"Cast to text", "Ln", "Log"}  # they show the last digit of what they are given


def _recipes(names: tuple[str, ...], labels: list[str]) -> st.SearchStrategy[Any]:
    forms = st.sampled_from((*LEFT_FORMS, "column", "outer"))
    operands = st.one_of(
        st.tuples(st.just("operand"), forms, st.sampled_from(names)),
        st.tuples(st.just("constant"), st.sampled_from(names), st.integers(0, 3)),
    )
    return st.recursive(
        operands,
        lambda inner: st.one_of(
            st.tuples(
                st.just("arithmetic"), st.sampled_from(cases_operators.OPERATORS), inner, inner
            ),
            st.tuples(st.just("choice"), st.sampled_from(cases_operators.CHOICES), inner, inner),
            st.tuples(st.just("function"), st.sampled_from(labels), inner),
            st.tuples(st.just("join"), inner, inner),
        ),
        max_leaves=6,
    )


recipes = st.one_of(
    _recipes(_NUMBERS, [*(f.label for f in cases_functions.NUMBERS), *_TO_NUMBERS]),
    _recipes(_TIMES, [*(f.label for f in cases_functions.DATES), "Cast to date"]),
    _recipes(("text", "num", "money", "day"), [f.label for f in cases_functions.TEXTS]),
    _recipes(_ALL, sorted(FUNCTIONS)),
)


def term_of(recipe: Any) -> Term | None:
    """The term of a recipe; None where the rules leave something of it open."""
    match recipe:
        case ("operand", form, name):
            return operand(form, name) if form == "outer" or offered(form, name) else None
        case ("constant", name, place):
            return constant(name, place)
        case ("function", label, inner):
            made = _stated(term_of(inner))
            if made is None or (label in _SHARP and _rounded(inner, made)):
                return None
            return functions.applied(FUNCTIONS[label], made)
        case ("arithmetic", op, *sides):
            pair = _pair(*sides)
            return None if pair is None else cases_operators.arithmetic(op, *pair)
        case ("choice", what, *sides):
            pair = _pair(*sides)
            return None if pair is None else _choice(what, *pair)
        case ("join", *sides):
            pair = _pair(*sides, texts=True)
            if pair is None or not _has_text(*pair) or any(map(_rounded, sides, pair)):
                return None
            return cases_casts.joined(*pair)
        case _:
            raise AssertionError(recipe)


def _choice(what: str, left: Term, other: Term) -> Term:
    made = cases_operators.choice(what, left, other)
    if made.kind == INT and (left.document or other.document):
        return replace(made, kinds=(*made.kinds, FLOAT))  # a JSON number may go on as a float
    return made


def _stated(term: Term | None) -> Term | None:
    if term is None or term.kind is None or term.unstated or term.kinds:
        return None
    if term.kind.members is not None:
        return None

    def value(row: Row, engine: str) -> Any:
        try:
            return term.value(row, engine)
        except oracle.Unsure:
            raise oracle.Unsure(oracle.ANYTHING) from None
        except oracle.Fault:
            if engine == "sqlite" and term.kind is not None and term.kind.family == "decimal":
                # of the 19 digits that 64 bits may hold, a value on the way to another may use all
                raise oracle.Unsure(oracle.ANYTHING) from None
            raise

    return replace(term, value=value)


def _pair(one: Any, two: Any, *, texts: bool = False) -> tuple[Term, Term] | None:
    left, right = _stated(term_of(one)), _stated(term_of(two))
    if left is None or right is None or (left.document and right.document):
        return None
    if (left.inner or right.inner) and (left.needs or right.needs):
        return None  # the annotations are those of the outer query
    if texts:
        return left, right
    assert left.kind is not None
    assert right.kind is not None
    seen = beside(left, right.kind), beside(right, left.kind)
    return None if seen[0] is None or seen[1] is None else (seen[0], seen[1])


def _rounded(recipe: Any, term: Term) -> bool:
    """Return True if the last digit in the text of a value depends on the engine."""
    return recipe[0] not in {"operand", "constant"} and term.kind == FLOAT


def _has_text(left: Term, right: Term) -> bool:
    families = {term.kind.family for term in (left, right) if term.kind is not None}
    return families <= cases_casts.JOINED
