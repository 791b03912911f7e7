"""Random schemas: whatever is answered, the operations found lead from one to the other, and back.

The long form (`TREEFOLD_MIGRATIONS=long`) tries many more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from treefold_migrations import CreateTable, Operation, SchemaState, StateError
from treefold_migrations._detect.answers import Answers, Question
from treefold_migrations._detect.differences import detect_operations
from treefold_migrations._detect.models import sort_by_references
from treefold_migrations._files.history import History, LoadedMigration
from treefold_migrations._files.loading import load_file
from treefold_migrations._files.writing import write_migration
from treefold_migrations._state.rendering import render_managed_tables
from treefold_migrations._state.schema_state import TableOptions, TableState, is_same_state
from treefold_orm import CheckConstraint, F, Index, Lower, Q, SearchIndex, UniqueConstraint, fields
from treefold_orm.schema import Postgres, SQLite

LONG = os.environ.get("TREEFOLD_MIGRATIONS") == "long"
TABLES = ["author", "post", "tag", "post_tags"]
NAMES = ["a", "b", "title", "headline", "author", "grade"]
KINDS: list[Callable[[], Any]] = [
    fields.IntegerField,
    lambda: fields.IntegerField(null=True, db_index=True),
    lambda: fields.BigIntegerField(db_default=3),
    lambda: fields.TextField(default=""),
    lambda: fields.TextField(null=True),
    lambda: fields.CharField(max_length=9, unique=True),
    lambda: fields.CharField(max_length=20, db_column="other"),
    lambda: fields.DateTimeField(auto_now=True),
    lambda: fields.DecimalField(max_digits=5, decimal_places=2),
    lambda: fields.JSONField(default=dict),
    lambda: fields.BooleanField(default=True),
]
PARTS: list[Callable[[str, str, str], Any]] = [
    lambda table, a, b: Index(a, f"-{b}"),
    lambda table, a, b: Index(F(a).desc(), name=f"down_{table}"),
    lambda table, a, b: Index(a, name=f"some_{table}", condition=Q(**{f"{b}__isnull": False})),
    lambda table, a, b: UniqueConstraint(a, b),
    lambda table, a, b: UniqueConstraint(a, name=f"one_{table}"),
    lambda table, a, b: CheckConstraint(Q(**{f"{a}__isnull": False}), name=f"check_{table}"),
]


@st.composite
def states(draw: st.DrawFn) -> SchemaState:
    """A schema of a few tables that may point to each other, in any way."""
    names = draw(st.lists(st.sampled_from(TABLES), unique=True, max_size=4))
    tables: dict[str, TableState] = {}
    for name in names:
        columns: dict[str, Any] = {"id": fields.BigAutoField()}
        for field in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4)):
            if draw(st.integers(0, 3)) == 0:
                target = draw(st.sampled_from(names))
                columns[field] = fields.ForeignKey(target, null=draw(st.booleans()))
            else:
                columns[field] = draw(st.sampled_from(KINDS))()
        others = [n for n, f in columns.items() if f.db_column == "other"]
        for extra in others[1:]:
            columns[extra] = fields.TextField()  # one column each
        tables[name] = draw(with_parts(TableState(name, name.title(), columns)))
    return SchemaState({name: tables[name] for name in sort_by_references(tables.values())})


@st.composite
def with_parts(draw: st.DrawFn, table: TableState) -> TableState:
    """The table with some constraints and indexes."""
    names = list(table.fields)
    pick = st.sampled_from(names)
    found: dict[str, Any] = {}
    for make in draw(st.lists(st.sampled_from(PARTS), unique=True, max_size=3)):
        first, second = draw(pick), draw(pick)
        if first != second:
            found[str(len(found))] = make(table.name, first, second)
    texts = [n for n, f in table.fields.items() if isinstance(f, fields.TextField)]
    if texts and draw(st.booleans()):
        found["search"] = SearchIndex([texts[0]])
        found["lower"] = Index(Lower(texts[0]), name=f"low_{table.name}")
    unique = tuple(p for p in found.values() if isinstance(p, (UniqueConstraint, CheckConstraint)))
    indexes = tuple(p for p in found.values() if isinstance(p, (Index, SearchIndex)))
    return TableState(
        table.name, table.model, table.fields, TableOptions((), unique, indexes, managed=True)
    )


FILLS = {"integer": "1", "bigint": "1", "text": "x", "decimal": "1.5", "datetime": "now"}


def found_between(data: st.DataObject, old: SchemaState, new: SchemaState) -> list[Operation]:
    """The operations between two states, whatever is answered."""

    def ask(question: Question) -> str:
        if question.kind != "fill":
            return data.draw(st.sampled_from(question.flags))
        table, _, name = question.subject.partition(".")
        field = new.table(table).field(name)
        return "1" if isinstance(field, fields.ForeignKey) else FILLS[field.internal]

    return detect_operations(old, new, Answers(allow_destructive=True, ask=ask))


def walked(state: SchemaState, operations: list[Operation]) -> SchemaState:
    for operation in operations:
        state = operation.apply(state)
        for dialect in (SQLite(), Postgres()):
            render_managed_tables(state, dialect)
    return state


@settings(max_examples=5000 if LONG else 60, deadline=None)
@given(st.data(), states(), states())
def test_operations_lead_from_any_schema_to_any_other(
    data: st.DataObject, old: SchemaState, new: SchemaState
) -> None:
    operations = found_between(data, old, new)
    assert is_same_state(walked(old, operations), new)
    undo: list[Operation] = []
    state = old
    for operation in operations:
        reverse = operation.reverse(state)
        assert reverse is not None
        undo.insert(0, reverse)
        state = operation.apply(state)
    assert is_same_state(walked(new, undo), old)


@settings(max_examples=2000 if LONG else 40, deadline=None)
@given(states())
def test_any_schema_is_written_and_loaded_again(tmp_path_factory: Any, state: SchemaState) -> None:
    folder = tmp_path_factory.mktemp("files")
    path = write_migration(folder, "0001_initial", [], detect_operations(SchemaState(), state))
    loaded: LoadedMigration = load_file(path)
    assert is_same_state(History(folder, [loaded]).compute_state_after(), state)


@settings(max_examples=2000 if LONG else 40, deadline=None)
@given(states())
def test_a_table_twice_is_refused_whatever_it_holds(state: SchemaState) -> None:
    for table in state.tables.values():
        with pytest.raises(StateError, match=f"Table '{table.name}' must not exist yet"):
            CreateTable.of(table).apply(state)
