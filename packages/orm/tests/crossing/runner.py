"""Asks one engine for the cells of the table and compares the answers with the oracle's.

Cells whose values exist for the same rows share a statement, as far as that works; a statement that
fails is taken apart, so that each failure has the name of its cell.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from crossing.kinds import Kind
from crossing.oracle import ANYTHING, Fault, Unsure
from crossing.terms import Term, base_query, expression_of
from crossing.values import ROWS
from treefold_orm import DatabaseError, DataError, FieldError, FieldValueError, UnsupportedFeature

BATCH = 24
REFUSALS = (FieldError, FieldValueError, UnsupportedFeature)
_TYPES: dict[str, type] = {
    "int": int,
    "float": float,
    "decimal": decimal.Decimal,
    "text": str,
    "bool": bool,
    "date": dt.date,
    "datetime": dt.datetime,
    "time": dt.time,
    "duration": dt.timedelta,
}


@dataclass(slots=True)
class Wanted:
    """What the oracle says of a term in every row."""

    values: dict[int, Any] = field(default_factory=dict[int, Any])
    unsure: dict[int, Any] = field(default_factory=dict[int, Any])
    faults: list[int] = field(default_factory=list[int])


@dataclass(slots=True)
class Report:
    """Failures of one engine by cell, and the cells that it refused where the rules are open."""

    engine: str
    failures: list[str] = field(default_factory=list[str])
    refused: set[str] = field(default_factory=set[str])
    cells: int = 0

    def fail(self, label: str, detail: str) -> None:
        """Note one failure."""
        self.failures.append(f"{self.engine}: {label}: {detail}")


def wanted_of(term: Term, engine: str, keys: Iterable[int] = ROWS) -> Wanted:
    """Ask the oracle."""
    made = Wanted()
    for key in keys:
        try:
            made.values[key] = term.value(ROWS[key], engine)
        except Unsure as open_question:
            made.unsure[key] = open_question.value
        except Fault:
            made.faults.append(key)
    return made


def same(found: Any, value: Any, kinds: tuple[Kind, ...]) -> bool:
    """Return True if two values are equal and of the right type; floats up to their last digits."""
    if value is ANYTHING:
        return True
    if found is None or value is None:
        return found is value
    return any(_same(found, value, kind) for kind in kinds)


def _same(found: Any, value: Any, kind: Kind) -> bool:
    value = getattr(value, "value", value)
    if kind.members is not None:
        return isinstance(found, kind.members) and found.value == value
    wanted = _TYPES.get(kind.family)
    if wanted is not None and type(found) is not wanted:
        return False
    if kind.family == "float":
        return math.isclose(found, value, rel_tol=1e-14, abs_tol=1e-300)
    if kind.family == "datetime":
        if type(value) is dt.date:
            value = dt.datetime.combine(value, dt.time(), dt.UTC)
        return found.tzinfo is not None and found == value
    if kind.family == "date" and type(value) is dt.datetime:
        value = value.date()
    if kind.family == "json":
        return _same_document(found, value)
    if kind.family == "list":
        return _same_lists(found, value, kind.items)
    return found == value


def _same_lists(found: Any, value: list[Any], kind: Kind) -> bool:
    if not isinstance(found, list):
        return False
    items = cast("list[Any]", found)
    return len(items) == len(value) and all(
        same(a, b, (kind,)) for a, b in zip(items, value, strict=True)
    )


def _same_document(found: Any, value: Any) -> bool:
    if isinstance(found, dict) and isinstance(value, dict):
        one, two = cast("dict[str, Any]", found), cast("dict[str, Any]", value)
        return one.keys() == two.keys() and all(_same_document(one[k], two[k]) for k in one)
    # PostgreSQL writes a large float as the integer of its digits
    large = isinstance(found, int) and isinstance(value, float) and float(found) == value
    return large or found == value


def select(report: Report, alias: str, terms: Iterable[Term]) -> None:
    """Check terms as selected values."""
    groups: dict[tuple[int, ...], list[tuple[Term, Wanted]]] = {}
    for term in terms:
        report.cells += 1
        if term.kind is None:
            _refused(report, alias, term)
            continue
        wanted = wanted_of(term, report.engine)
        groups.setdefault((*wanted.values,), []).append((term, wanted))
    for keys, members in groups.items():
        for batch in _batches(members):
            if keys:
                _selected(report, alias, keys, batch)
            for term, wanted in batch:
                _exceptions(report, alias, term, wanted)


def _batches(members: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(members), BATCH):
        yield members[start : start + BATCH]


def ask(alias: str, terms: list[Term], keys: Iterable[int]) -> dict[int, tuple[Any, ...]]:
    """The values of terms in some rows, by key."""
    query = base_query(alias, {need for term in terms for need in term.needs})
    named = {f"c{place}": expression_of(term) for place, term in enumerate(terms)}
    rows = query.filter(id__in=[*keys]).annotate(**named).values_list("id", *named)
    return {row[0]: row[1:] for row in rows}


def _selected(
    report: Report, alias: str, keys: tuple[int, ...], batch: list[tuple[Term, Wanted]]
) -> None:
    terms = [term for term, _ in batch]
    try:
        found = ask(alias, terms, keys)
    except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
        if len(batch) > 1:
            middle = len(batch) // 2
            _selected(report, alias, keys, batch[:middle])
            _selected(report, alias, keys, batch[middle:])
        elif batch[0][0].unstated and isinstance(error, REFUSALS):
            report.refused.add(batch[0][0].label)
        else:
            report.fail(batch[0][0].label, described(error))
        return
    for place, (term, wanted) in enumerate(batch):
        for key in keys:
            value = found[key][place] if key in found else "no row"
            if not same(value, wanted.values[key], kinds_of(term)):
                report.fail(term.label, f"row {key}: {value!r}, not {wanted.values[key]!r}")
                break


def kinds_of(term: Term) -> tuple[Kind, ...]:
    """The types that a term's value may have."""
    assert term.kind is not None
    return (term.kind, *term.kinds)


def _exceptions(report: Report, alias: str, term: Term, wanted: Wanted) -> None:
    if term.label in report.refused:
        return
    for key in wanted.faults[:1]:
        try:
            value = ask(alias, [term], [key])[key][0]
        except DataError:
            continue
        except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
            if not (term.unstated and isinstance(error, REFUSALS)):
                report.fail(term.label, f"row {key}: {described(error)}, not DataError")
        else:
            report.fail(term.label, f"row {key}: {value!r}, not DataError")
    for key, sure in wanted.unsure.items():
        try:
            value = ask(alias, [term], [key])[key][0]
        except DataError:
            continue
        except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
            if not (term.unstated and isinstance(error, REFUSALS)):
                report.fail(term.label, f"row {key}: {described(error)}, not DataError")
        else:
            if not same(value, sure, kinds_of(term)):
                report.fail(term.label, f"row {key}: {value!r}, not {sure!r} and not DataError")


def _refused(report: Report, alias: str, term: Term) -> None:
    try:
        query = base_query(alias, set(term.needs)).annotate(c=expression_of(term))
        if not term.late:
            report.fail(term.label, "not refused when the query is made")
            return
        query.explain_sql()
    except REFUSALS:
        return
    except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
        report.fail(term.label, f"{described(error)}, not FieldError")
        return
    report.fail(term.label, "not refused")


def described(error: BaseException) -> str:
    """An error in one line."""
    name = type(error).__name__
    text = str(error).partition("\n")[0]
    kind = "" if isinstance(error, (*REFUSALS, DatabaseError)) else "bare "
    return f"{kind}{name}: {text[:160]}"
