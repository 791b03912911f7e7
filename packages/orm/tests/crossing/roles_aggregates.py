"""Asks one engine for aggregates: of all rows, of some, of none, in groups and in windows.

Cells whose aggregates exist for the same rows share a statement; one that fails is taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from crossing.cases_roles import SOME, Aggregated
from crossing.oracle import Fault, Unsure
from crossing.roles import equal_lists, must_fail, refused, tried
from crossing.runner import BATCH, REFUSALS, Report, described, wanted_of
from crossing.terms import base_query
from crossing.values import ROWS
from treefold_orm import DataError, Window

Cells = list[tuple[Aggregated, list[Any]]]
Ask = Callable[[Any, list[Aggregated]], list[list[Any]]]


def _aggregate(query: Any, cells: list[Aggregated]) -> list[list[Any]]:
    found = query.aggregate(**{f"c{place}": cell.build() for place, cell in enumerate(cells)})
    return [[found[f"c{place}"]] for place in range(len(cells))]


def _window(query: Any, cells: list[Aggregated]) -> list[list[Any]]:
    named = {f"c{place}": Window(cell.build()) for place, cell in enumerate(cells)}
    return _columns(query.annotate(**named).values_list(*named), len(cells))


def _group(query: Any, cells: list[Aggregated]) -> list[list[Any]]:
    named = {f"c{place}": cell.build() for place, cell in enumerate(cells)}
    return _columns(query.values("tint").annotate(**named).values_list(*named), len(cells))


def _columns(rows: Iterable[Any], number: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(number)]


_WAYS: dict[str, Ask] = {
    "aggregate": _aggregate,
    "aggregate of some": _aggregate,
    "aggregate of none": _aggregate,
    "window": _window,
    "group": _group,
}


def aggregates(report: Report, alias: str, cells: Iterable[Aggregated]) -> None:
    """Check aggregates in every way."""
    groups: dict[Any, Cells] = {}
    for cell in cells:
        report.cells += 1
        if cell.kind is None:
            query = base_query(alias, {*cell.argument.needs})
            refused(report, cell.label, lambda c=cell, q=query: q.aggregate(x=c.build()))
            continue
        whole = [*wanted_of(cell.argument, report.engine).values]
        some = [key for key in SOME if key in whole]
        wanted = _wanted(report, alias, "aggregate", cell, whole)
        if wanted is not None:
            groups.setdefault(("aggregate", tuple(whole)), []).append((cell, wanted))
        for way in _ways(cell, failed=wanted is None):
            keys = [] if way.endswith("none") else some
            wanted = _wanted(report, alias, way, cell, keys)
            if wanted is not None:
                groups.setdefault((way, tuple(keys)), []).append((cell, wanted))
    for (way, keys), members in groups.items():
        for start in range(0, len(members), BATCH):
            _check(report, alias, way, keys, members[start : start + BATCH])


def _ways(cell: Aggregated, *, failed: bool) -> Iterator[str]:
    if failed:  # the edges of the types: the other rows have a sum
        yield "aggregate of some"
    if cell.argument.form == "column":
        yield "aggregate of none"
    if cell.window and cell.name != "distinct":  # no database has distinct values in windows
        yield "window"
    yield "group"


def _wanted(
    report: Report, alias: str, way: str, cell: Aggregated, keys: list[int]
) -> list[Any] | None:
    """The values of a cell in one way; None where it is checked already, since it may fail."""
    ask = partial(_asked, alias, way, tuple(keys), [cell])
    label = f"{way} {cell.label}"
    try:
        return _values(way, cell, keys, report.engine)
    except Fault:
        must_fail(report, label, lambda: ask()[0], unstated=cell.unstated)
    except Unsure as open_question:
        wanted = [open_question.value] * (len(keys) if way == "window" else 1)
        found = tried(report, label, partial(_or_error, ask, wanted), unstated=cell.unstated)
        if found is not None and not equal_lists(found[0], wanted, _kind(cell)):
            report.fail(label, f"{found[0]!r}, not {wanted!r}")
    return None


def _or_error(ask: Callable[[], list[list[Any]]], wanted: list[Any]) -> list[Any]:
    try:
        return ask()[0]
    except DataError:
        return wanted


def _kind(cell: Aggregated) -> Any:
    assert cell.kind is not None
    return cell.kind


def _values(way: str, cell: Aggregated, keys: list[int], engine: str) -> list[Any]:
    if way != "group":
        return [cell.value(keys, engine)] * (len(keys) if way == "window" else 1)
    tints = {key: ROWS[key]["tint"] for key in keys}
    return [
        cell.value([key for key in keys if tints[key] is tint], engine)
        for tint in {*tints.values()}
    ]


def _asked(alias: str, way: str, keys: Iterable[int], cells: list[Aggregated]) -> list[list[Any]]:
    needs = {need for cell in cells for need in cell.argument.needs}
    return _WAYS[way](base_query(alias, needs).filter(id__in=[*keys]), cells)


def _check(report: Report, alias: str, way: str, keys: Iterable[int], members: Cells) -> None:
    try:
        found = _asked(alias, way, keys, [cell for cell, _ in members])
    except Exception as error:  # noqa: BLE001, RUF100 - whatever it is, it is the finding
        if len(members) > 1:
            middle = len(members) // 2
            _check(report, alias, way, keys, members[:middle])
            _check(report, alias, way, keys, members[middle:])
            return
        cell = members[0][0]
        if cell.unstated and isinstance(error, REFUSALS):
            report.refused.add(f"{way} {cell.label}")
        else:
            report.fail(f"{way} {cell.label}", described(error))
        return
    for (cell, wanted), values in zip(members, found, strict=True):
        if not equal_lists(values, wanted, _kind(cell)):
            report.fail(f"{way} {cell.label}", f"{values!r}, not {wanted!r}")
