"""Every expression crossed with every pair of field types, on both engines, against an oracle.

`TREEFOLD_CROSSING=long` takes every form of every operand; it is a command of its own.
"""

from __future__ import annotations

import itertools
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from crossing import (
    cases_aggregates,
    cases_casts,
    cases_functions,
    cases_more,
    cases_operators,
    cases_others,
    cases_roles,
    cases_windows,
    functions,
    roles,
    roles_aggregates,
    roles_rows,
    runner,
)
from crossing.cases_roles import Pair
from crossing.runner import Report

import treefold_orm

LONG = os.environ.get("TREEFOLD_CROSSING") == "long"
Check = Callable[[Report, str, Any], None]


def some(cells: Iterable[Any], step: int) -> Iterable[Any]:
    """All cells in the long form, else one of so many."""
    return cells if LONG else itertools.islice(cells, 0, None, step)


TABLES: dict[str, tuple[Check, Callable[[], Iterable[Any]]]] = {
    "comparisons": (runner.select, lambda: cases_operators.comparisons(long=LONG)),
    "comparisons of bare values": (runner.select, cases_operators.bare_comparisons),
    "arithmetic": (runner.select, lambda: cases_operators.arithmetics(long=LONG)),
    "arithmetic of bare values": (runner.select, cases_operators.bare_arithmetics),
    "choices": (runner.select, lambda: cases_operators.choices(long=LONG)),
    "text functions": (runner.select, lambda: functions.functions(cases_functions.TEXTS)),
    "number functions": (runner.select, lambda: functions.functions(cases_functions.NUMBERS)),
    "date functions": (runner.select, lambda: functions.functions(cases_functions.DATES)),
    "casts": (runner.select, lambda: functions.functions(cases_casts.CASTS)),
    "joined texts": (runner.select, lambda: cases_casts.joins(long=LONG)),
    "memberships": (runner.select, lambda: cases_roles.memberships(long=LONG)),
    "filters": (roles.filters, lambda: cases_roles.filters(long=LONG)),
    "assignments": (roles.assign, lambda: cases_roles.assignments(long=LONG)),
    "computed assignments": (roles.assign, cases_roles.computed_assignments),
    "sets": (roles.sets, lambda: cases_roles.pairs(long=LONG)),
    "carries": (roles_rows.carries, lambda: cases_roles.pairs(long=LONG)),
    "joins": (roles.joins, lambda: cases_roles.pairs(long=LONG)),
    "groups": (roles.groups, cases_roles.keys_to_group_by),
    "lists and ranges": (runner.select, cases_more.lists),
    "functions of an application": (
        runner.select,
        lambda: functions.functions(cases_others.OWN),
    ),
    "functions of two arguments": (runner.select, cases_others.sums_of_two),
    "JSON objects": (runner.select, lambda: some(cases_others.documents(), 2)),
    "existences": (runner.select, lambda: some(cases_others.existences(), 2)),
    "times and chance": (runner.select, cases_others.times),
    "windows": (roles_rows.windows, lambda: some(cases_windows.windows(), 3)),
    "defaults of neighbours": (roles_rows.windows, lambda: some(cases_windows.neighbours(), 2)),
    "ranks": (roles_rows.windows, lambda: some(cases_windows.ranks(), 3)),
    "writes of instances": (roles_rows.writes, cases_more.written),
    "aggregates": (roles_aggregates.aggregates, lambda: some(cases_roles.aggregates(), 2)),
    "further aggregates": (roles_aggregates.aggregates, lambda: some(cases_aggregates.more(), 3)),
    "aggregates of distinct values": (roles_aggregates.aggregates, cases_aggregates.distinct),
    "defaults of aggregates": (
        roles_aggregates.aggregates,
        lambda: some(cases_aggregates.defaults(), 3),
    ),
    "types of aggregates": (
        roles_aggregates.aggregates,
        lambda: some(cases_aggregates.outputs(), 5),
    ),
}


# what stands in no row, and why
ELSEWHERE = {
    "Range": "for the schema of PostgreSQL only: test_constraints.py",
    "SchemaSQL": "for the schema only, a query refuses it: test_schema_sql.py",
    "SearchRank": "only the order of one result means something: test_search.py",
}


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_has_the_value_of_the_oracle(engines: tuple[str, ...], name: str) -> None:
    check, cells = TABLES[name]
    reports = [Report(engine) for engine in engines]
    for report in reports:
        check(report, report.engine, cells())
    failures = [line for report in reports for line in report.failures]
    assert not failures, "\n".join([f"{len(failures)} cells are wrong:", *failures[:50]])
    assert _refused(reports[0]) == _refused(reports[1])


def _refused(report: Report) -> set[str]:
    # some of the rows are asked for only where all of them have no sum, which engines differ in
    return {label for label in report.refused if not label.startswith("aggregate of some ")}


def test_every_public_expression_stands_in_a_row() -> None:
    bases = (treefold_orm.Expression, treefold_orm.Condition, treefold_orm.Func)
    public = {
        name
        for name, made in (
            (name, getattr(treefold_orm, name)) for name in vars(treefold_orm)["__all__"]
        )
        if isinstance(made, type) and issubclass(made, bases[:2]) and made not in bases
    }
    missing = public - {*ELSEWHERE}
    for _, cells in reversed(TABLES.values()):
        for cell in cells():
            missing -= {name for built in expressions(cell) for name in names_of(built)}
            if not missing:
                break
    assert missing == set()
    assert {*ELSEWHERE} <= public


def test_every_mutation_still_finds_the_conversion_it_takes_out() -> None:
    root = Path(__file__).resolve().parents[3]
    source = root / "packages/orm/src/treefold_orm"
    mutations = tomllib.loads((root / "tools/mutations.toml").read_text(encoding="utf-8"))
    texts = {name: (source / entry["file"]).read_text() for name, entry in mutations.items()}
    lost = [name for name, entry in mutations.items() if texts[name].count(entry["old"]) != 1]
    assert lost == []
    assert len(mutations) > 30


def names_of(built: Any) -> list[str]:
    """The names of an expression's classes."""
    return [kind.__name__ for kind in type(built).__mro__]


def expressions(cell: Any) -> Iterator[Any]:
    """The expressions that a cell writes, and all that stand in them."""
    stack: list[Any] = [cell]
    while stack:
        item = stack.pop()
        if isinstance(item, (treefold_orm.Expression, treefold_orm.Condition)):
            yield item
            slots = [vars(kind).get("__slots__", ()) for kind in type(item).__mro__]
            stack += [getattr(item, slot, None) for names in slots for slot in as_names(names)]
            stack += getattr(item, "__dict__", {}).values()
        elif isinstance(item, (list, tuple)):
            stack += cast("list[Any]", item)
        elif isinstance(item, dict):
            stack += cast("dict[str, Any]", item).values()
        elif isinstance(item, Pair):
            stack += [item.left, item.right]
        elif hasattr(item, "build"):
            stack.append(item.build())


def as_names(slots: Any) -> tuple[str, ...]:
    """The names in `__slots__`."""
    return (slots,) if isinstance(slots, str) else tuple(slots)
