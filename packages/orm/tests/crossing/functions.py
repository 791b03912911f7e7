"""A function of one value: the types it takes, what it gives and how it computes.

`functions` applies some to every column in every form; the `cases_*` modules hold the functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from crossing import kinds, oracle
from crossing.kinds import Kind
from crossing.terms import LEFT_FORMS, Term, beside, constant, offered, operand
from crossing.values import NAMES, Row


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one argument: the types it takes, what it gives, and how it computes."""

    label: str
    build: Callable[[Any], Any]
    kind: Callable[[Kind], Kind | None]
    value: Callable[[Any, Kind, str], Any]
    also: Callable[[Kind], tuple[Kind, ...]] = lambda kind: ()
    needs: Kind | None = None  # the type that a JSON value has here
    open: Callable[[Kind], bool] = lambda kind: False  # whether the rules leave the result open


def applied(function: Function, argument: Term) -> Term | None:
    """A function of an operand; None where the rules leave the result open."""
    assert argument.kind is not None
    kind = argument.kind
    if argument.document:
        seen = None if function.needs is None else beside(argument, function.needs)
        if seen is None:
            return None
        argument, kind = seen, seen.kind or kind
    result = function.kind(kind)
    if kind == kinds.JSON and function.needs is not None:
        if function.needs.family not in kinds.SCALARS:
            return None
        result = function.kind(function.needs)
    if result is None and function.open(kind):
        return None

    def value(row: Row, engine: str) -> Any:
        found = oracle.base(argument.value(row, engine))
        missing = found is None or kind == kinds.JSON  # a document is no number and no text
        return None if missing else function.value(found, kind, engine)

    return Term(
        f"{function.label}({argument.label})",
        result,
        lambda: function.build(argument.build()),
        value,
        needs=argument.needs,
        inner=argument.inner,
        late=argument.late,
        unstated=kind.members is not None or kind.family == "json",
        kinds=(*function.also(kind), *([kind] if kind.members is not None else [])),
    )


def functions(which: list[Function]) -> Iterator[Term]:
    """Every function of every column in every form."""
    forms = (*LEFT_FORMS, "outer", "outnote", "value")
    for function, name, form in itertools.product(which, NAMES, forms):
        if form != "value" and not offered(form, name):
            continue
        argument = constant(name) if form == "value" else operand(form, name)
        made = applied(function, argument)
        if made is not None:
            yield made
