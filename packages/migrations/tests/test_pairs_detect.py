"""The table of pairs: each change is found as the operations that it expects, and can be undone."""

from __future__ import annotations

import pytest
from pairs import PAIRS, Pair, answers_of, read_pairs, state_of

from treefold_migrations import Ambiguous, DataLossRefused, MigrationError, Operation
from treefold_migrations._detect.differences import detect_operations
from treefold_migrations._state.rendering import render_managed_tables
from treefold_migrations._state.schema_state import is_same_state
from treefold_orm.schema import Dialect, Imports, Postgres, SQLite

DIALECTS: dict[str, Dialect] = {"sqlite": SQLite(), "postgres": Postgres()}


def test_there_are_at_least_two_hundred_pairs_with_names_of_their_own() -> None:
    assert len(PAIRS) >= 200
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)


def found(pair: Pair) -> list[Operation]:
    return detect_operations(pair.old(), pair.new(), pair.answers())


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_change_is_found_as_operations(pair: Pair) -> None:
    assert tuple(operation.source(Imports()) for operation in found(pair)) == pair.operations


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_operations_lead_to_the_new_state_and_back(pair: Pair) -> None:
    state = pair.old()
    undo: list[Operation] = []
    for operation in found(pair):
        reverse = operation.reverse(state)
        assert reverse is not None
        undo.insert(0, reverse)
        state = operation.apply(state)
    assert is_same_state(state, pair.new())
    for operation in undo:
        state = operation.apply(state)
    assert is_same_state(state, pair.old())


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_state_on_the_way_is_a_schema(pair: Pair) -> None:
    for engine in pair.engines:
        dialect = DIALECTS[engine]
        state = pair.old()
        for operation in found(pair):
            state = operation.apply(state)
            render_managed_tables(state, dialect)
        tables, wanted = (
            render_managed_tables(state, dialect),
            render_managed_tables(pair.new(), dialect),
        )
        assert tables.keys() == wanted.keys()
        for name, table in tables.items():
            assert {c.name: c for c in table.columns} == {c.name: c for c in wanted[name].columns}
            assert set(table.uniques) == set(wanted[name].uniques)
            assert set(table.indexes) == set(wanted[name].indexes)
            assert set(table.checks) == set(wanted[name].checks)
            assert set(table.foreign_keys) == set(wanted[name].foreign_keys)


@pytest.mark.parametrize("pair", [p for p in PAIRS if p.flags], ids=lambda pair: pair.name)
def test_without_its_answers_a_change_is_refused_with_flags(pair: Pair) -> None:
    with pytest.raises((Ambiguous, DataLossRefused)) as raised:
        detect_operations(pair.old(), pair.new())
    if pair.flags == "--allow-destructive":
        assert pair.flags in str(raised.value)
        return
    named = {flag.partition(":")[0] for flag in pair.flags.split() if not flag.startswith("--")}
    subjects = {flag.split()[1].partition(":")[0] for flag in getattr(raised.value, "flags", ())}
    assert subjects & named or any(name in str(raised.value) for name in named)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_state_has_no_differences_to_itself(pair: Pair) -> None:
    assert detect_operations(pair.new(), pair.new()) == []


def test_a_pair_is_read_line_by_line() -> None:
    text = "\n# a\n? --drop thing.a\n@ postgres\n  n = 1\n- a = 2\n+ b = 3\n= Op()\n"
    assert read_pairs(text) == [
        Pair("a", "n = 1\na = 2", "n = 1\nb = 3", ("Op()",), "--drop thing.a", ("postgres",))
    ]


def test_an_answer_that_fits_nothing_is_refused() -> None:
    body = "n = fields.IntegerField()"
    with pytest.raises(MigrationError, match=r"--drop thing\.x does not fit: there is nothing of"):
        detect_operations(state_of(body), state_of(body), answers_of("--drop thing.x"))
