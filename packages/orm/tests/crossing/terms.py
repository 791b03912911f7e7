"""An expression of the table: how it is written in the ORM, its type, and its value in a row.

`needs` names the annotations that the query must have first; `name` is set where a lookup can start
with the term; `inner` where it holds an `OuterRef` and has to be wrapped in a subquery.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from crossing import kinds
from crossing.kinds import Kind
from crossing.values import COLUMNS, CONSTANTS, Cross, Row, carrier
from treefold_orm import (
    CTE,
    Case,
    F,
    FirstValue,
    Max,
    OuterRef,
    Subquery,
    Value,
    When,
    Window,
)

Compute = Callable[[Row, str], Any]


@dataclass(frozen=True, slots=True)
class Term:
    """One expression; `kind` is None where the query must be refused."""

    label: str
    kind: Kind | None
    build: Callable[[], Any]
    value: Compute
    needs: tuple[str, ...] = ()
    name: str = ""
    inner: bool = False
    unstated: bool = False  # may be refused too
    late: bool = False  # a refusal may come when the query is compiled
    kinds: tuple[Kind, ...] = ()  # other types that the value may have
    form: str = ""
    document: bool = False  # a value of a JSON document, of the type that its neighbour needs


JSON_KEYS = ("small", "num", "big", "real", "text", "flag")
LEFT_FORMS = ("column", "related", "note", "sub", "win", "case", "agg", "cte", "json")
RIGHT_FORMS = (
    "column", "value", "sub", "note", "related", "outer", "win", "case", "agg", "cte", "json",
    "outnote", "typed",
)  # fmt: skip
OUTER_FORMS = frozenset({"outer", "outnote"})  # of the query around the one that asks


def offered(form: str, name: str) -> bool:
    """Return True if a column can be written in this form."""
    if form == "json":
        return name in JSON_KEYS
    return form != "agg" or COLUMNS[name].family not in kinds.UNORDERED


def _expression(form: str, name: str) -> Any:
    match form:
        case "note":
            return F(name)
        case "sub":
            return Subquery(Cross.objects.filter(id=OuterRef("id")).values(name))
        case "win":
            return Window(FirstValue(name), partition_by=["id"])
        case "case":
            return Case(When(id__gt=0, then=F(name)))
        case "agg":
            return Max(f"mine__{name}")
        case "json":
            return F(f"doc__{name}")
        case _:
            raise AssertionError(form)


def operand(form: str, name: str, *, named: bool = False) -> Term:
    """A column's value in one of the forms; `named` where a lookup has to start with it."""
    return replace(_operand(form, name, named=named), form=form)


def _operand(form: str, name: str, *, named: bool) -> Term:
    kind = COLUMNS[name]

    def value(row: Row, engine: str) -> Any:
        return row[name]

    label = f"{form}:{name}"
    match form:
        case "column":
            return Term(label, kind, lambda: F(name), value, name=name)
        case "related":
            return Term(label, kind, lambda: F(f"me__{name}"), value, name=f"me__{name}")
        case "outer":
            return Term(label, kind, lambda: OuterRef(name), value, inner=True, late=True)
        case "outnote":
            alias = f"note_{name}"
            return Term(
                label, kind, lambda: OuterRef(alias), value, (alias,), inner=True, late=True
            )
        case "typed":
            return Term(label, kind, lambda: getattr(Cross, name), value, name=name)
        case "cte" | "note":
            alias = f"{form}_{name}"
            return Term(label, kind, lambda: F(alias), value, (alias,), alias)
        case "json" if named:
            named_path = f"doc__{name}"
            return Term(label, kind, lambda: F(named_path), value, name=named_path, document=True)
        case _ if named:
            alias = f"{form}_{name}"
            return Term(label, kind, lambda: F(alias), value, (alias,), alias)
        case _:
            document = form == "json"
            return Term(label, kind, lambda: _expression(form, name), value, document=document)


def _nothing(row: Row, engine: str) -> Any:
    return None


def _float_of(term: Term) -> Compute:
    def value(row: Row, engine: str) -> Any:
        found = term.value(row, engine)
        return None if found is None else float(found)

    return value


def beside(term: Term, kind: Kind) -> Term | None:
    """A JSON value as the type that its neighbour needs; None where the rules say nothing."""
    assert term.kind is not None
    found = term.kind.family
    if not term.document:
        return term
    if found == "float" and kind.family == "int":
        return None  # a fraction where a whole number is needed
    if kind.family not in kinds.SCALARS or kind.members is not None:
        return None
    if found == kind.family:
        return term
    if found in {"int", "float"} and kind.family in kinds.NUMBERS:
        return replace(term, kind=kinds.FLOAT, value=_float_of(term))  # beside a decimal, too
    there = kinds.FLOAT if kind.family == "decimal" else kind
    return replace(term, kind=there, value=_nothing)


def constant(name: str, place: int = 0) -> Term:
    """A value of a column's type, as an expression."""
    value = CONSTANTS[name][place % len(CONSTANTS[name])]

    def constantly(row: Row, engine: str) -> Any:
        return value

    return Term(
        f"Value({value!r})", kind_of(name, value), lambda: Value(value, carrier(name)), constantly
    )


def bare(name: str, place: int = 0) -> Term:
    """A value of a column's type, as Python has it."""
    made = constant(name, place)
    value = CONSTANTS[name][place % len(CONSTANTS[name])]
    return replace(made, label=f"bare {value!r}", build=lambda: value)


def kind_of(name: str, value: Any) -> Kind:
    """The type of a constant; a decimal has its own places."""
    if COLUMNS[name].family == "decimal":
        return kinds.decimal(max(0, -value.as_tuple().exponent))
    return COLUMNS[name]


def right(form: str, name: str, place: int = 0) -> Term:
    """An operand of the right side."""
    return constant(name, place) if form == "value" else operand(form, name)


def base_query(alias: str, needs: set[str]) -> Any:
    """The rows, with the annotations that terms need."""
    query: Any = Cross.objects.using(alias)
    columns = sorted(need.removeprefix("cte_") for need in needs if need.startswith("cte_"))
    if columns:
        named: dict[str, Any] = {f"cte_{name}": F(name) for name in columns}
        cte = CTE(Cross.objects.using(alias).values(cte_id=F("id"), **named))
        query = query.join(cte, cte_id="id")
    for need in sorted(needs):
        form, _, name = need.partition("_")
        if form != "cte":
            query = query.annotate(**{need: _expression(form, name)})
    return query


def expression_of(term: Term) -> Any:
    """What the query is given for a term."""
    made = term.build()
    if not term.inner:
        return made
    rows: Any = Cross.objects.filter(id=OuterRef("id"))
    return Subquery(rows.annotate(inner_value=made).values("inner_value"))
