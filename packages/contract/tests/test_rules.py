"""Every row of the table of rules, in both directions."""

from __future__ import annotations

from datetime import date

import pytest
from rule_rows import (
    DEFINITIONS,
    HEAD,
    LOCK_ROWS,
    NAMED_ROWS,
    NO_FACT,
    ROUTE_ROWS,
    TYPE_ROWS,
    RouteRow,
    TypeRow,
)

from treefold_contract import RULES, Finding, diff_locks
from treefold_contract._text.lock_reader import parse_lock

TODAY = date(2026, 11, 29)
LETTERS = {"breaking": "B", "weaker": "F", "warning": "W", "source": "S", "compatible": "C"}


def find_changes(old: str, new: str) -> list[Finding]:
    return diff_locks(parse_lock(HEAD + old), parse_lock(HEAD + new), today=TODAY)


def describe(findings: list[Finding], rule: str) -> str:
    """Return the gravest verdict, and the rule if it is among the findings."""
    if not findings:
        return "-"
    found = rule if any(each.rule == rule for each in findings) else findings[0].rule
    return f"{LETTERS[findings[0].verdict]} {found}"


def check(old: str, new: str, expected: str) -> None:
    found = find_changes(old, new)
    assert describe(found, expected[2:]) == expected, found
    for each in found:
        assert each.place
        assert RULES[each.rule].number == each.number


def type_lock(line: str, text: str) -> str:
    if not text.startswith("record"):
        return f"\nPOST /x\n  {line} {text}\n{DEFINITIONS}"
    return f"\nPOST /x\n  {line} Type\n\ntype Type{text.removeprefix('record')}\n"


@pytest.mark.parametrize("row", TYPE_ROWS, ids=lambda row: f"{row.number} {row.forward[0][2:]}")
def test_a_row_of_types(row: TypeRow) -> None:
    places = [("body json", 0), ("200 json", 1)]
    if row.alphabet == "text":
        places = [("query a", 0)]
    for line, side in places:
        old, new = type_lock(line, row.old), type_lock(line, row.new)
        check(old, new, row.forward[side])
        check(new, old, row.back[side])


@pytest.mark.parametrize("row", LOCK_ROWS, ids=lambda row: f"{row.number} {row.forward[2:]}")
def test_a_row_of_routes(row: RouteRow) -> None:
    old, new = (f"\n{text}" if text.startswith("WEBHOOK") else text for text in row[1:3])
    check(old + "\n", new + "\n", row.forward)
    check(new + "\n", old + "\n", row.back)


@pytest.mark.parametrize("row", ROUTE_ROWS, ids=lambda row: f"{row.number} {row.forward[2:]}")
def test_a_row_of_facts(row: RouteRow) -> None:
    old, new = (f"\nPOST /x\n  {text}".rstrip() + "\n" for text in row[1:3])
    check(old, new, row.forward)
    check(new, old, row.back)


@pytest.mark.parametrize("row", NAMED_ROWS, ids=lambda row: row.new)
def test_a_row_of_names(row: RouteRow) -> None:
    old, new = (f"\nPOST /x\n  200 json {name}\n\ntype {name}\n  id int\n" for name in row[1:3])
    check(old, new, row.forward)
    check(new, old, row.back)


def test_every_row_of_the_table_has_a_pair() -> None:
    rows = {row.number for row in (*TYPE_ROWS, *LOCK_ROWS, *ROUTE_ROWS, *NAMED_ROWS)}
    assert rows | NO_FACT == set(range(1, 109))
    assert {rule.number for rule in RULES.values()} == set(range(109))
