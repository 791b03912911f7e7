"""Lists and ranges of expressions, and what single instances are given."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from crossing import kinds, oracle
from crossing.cases_operators import PAIRS, arithmetic, choice
from crossing.kinds import BOOL
from crossing.terms import Term, bare, operand
from crossing.values import Row
from treefold_orm import Q

# -- lists and ranges -----------------------------------------------------------------------------


def listed(left: Term, others: tuple[Term, ...], op: str) -> Term:
    """Return True if a value is one of a list, or lies between two."""
    assert left.kind is not None
    pairs = [(left.kind, other.kind) for other in others if other.kind is not None]
    common = [kinds.common(*pair) for pair in pairs]

    def value(row: Row, engine: str) -> bool:
        found = left.value(row, engine)
        met: list[bool] = []
        unsure = False
        tests = ("gte", "lte") if op == "range" else ("exact",) * len(others)
        for test, other, pair, wanted in zip(tests, others, pairs, common, strict=True):
            assert wanted is not None
            sides = found, other.value(row, engine)
            a, b, open_question = oracle.both(*sides, pair=pair, wanted=wanted, engine=engine)
            met.append(oracle.compare(test, a, b))
            unsure = unsure or open_question
        made = all(met) if op == "range" else any(met)
        if unsure:
            raise oracle.Unsure(made)
        return made

    return Term(
        f"{left.label} {op} ({', '.join(other.label for other in others)})",
        None if None in common else BOOL,
        lambda: Q(**{f"{left.name}__{op}": [other.build() for other in others]}),
        value,
        needs=left.needs,
        unstated=any(kinds.unstated_common(*pair) for pair in pairs)
        or left.kind.family in kinds.UNORDERED,
    )


def lists() -> Iterator[Term]:
    """Lists and ranges of columns, and of columns and bare values."""
    for form, (first, second) in itertools.product(("column", "note", "case"), PAIRS):
        if "doc" in {first, second}:
            continue
        left = operand(form, first, named=True)
        other, own = operand("column", second), bare(first)
        yield listed(left, (other, own), "in")
        yield listed(left, (other, operand("related", second)), "in")
        yield listed(left, (other, own), "range")
        yield listed(left, (own, other), "range")


# -- writes of instances --------------------------------------------------------------------------


def written() -> Iterator[tuple[str, Term]]:
    """What a single instance may be given: columns, arithmetic and choices of several types."""
    from crossing.cases_roles import stored

    for target, name in PAIRS:
        yield from _stored(target, stored(target, operand("column", name)))
    numbers = ("num", "real", "money", "fine")
    for target, first, second in itertools.product(numbers, numbers, numbers):
        one, two = operand("column", first), operand("column", second)
        for term in (arithmetic("/", one, two), choice("coalesce", one, two)):
            yield from _stored(target, stored(target, term))


def _stored(target: str, made: Term | None) -> Iterator[tuple[str, Term]]:
    if made is not None and made.kind is not None and not made.unstated:
        yield target, made
