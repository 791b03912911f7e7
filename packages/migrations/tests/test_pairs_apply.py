"""Each pair of models, applied to real databases with rows and rolled back again: catalogs equal
those that `create_all` makes, no row is lost and no sequence begins again.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Any

import pytest
from pairs import PAIRS, Pair
from plan_engines import Bench
from plan_rows import rows_of

from treefold_migrations import RunError, SchemaState
from treefold_migrations._detect.differences import detect_operations
from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.tables import RenameTable
from treefold_migrations._plan.operations import plan_operations
from treefold_migrations._state.rendering import build_table_meta, build_table_shape
from treefold_migrations._state.schema_state import TableState, is_same_declaration
from treefold_orm import IntegrityError
from treefold_orm.schema import TableShape

LONG = os.environ.get("TREEFOLD_MIGRATIONS") == "long"
BY_NAME: dict[str, Pair] = {pair.name: pair for pair in PAIRS}
CHOSEN = [
    pytest.param(engine, pair.name, id=f"{engine}-{pair.name}")
    for place, pair in enumerate(PAIRS)
    for engine in pair.engines
    if LONG or place % 3 == 0
]
# rows are in the way of these changes, or of their way back, where a dropped field has no value
REFUSED = {
    "alter a field: text to uuid": "hold text that is not a UUID in x",
    "add a check constraint: one of two": "1 rows break the check either",
    "add a check constraint: a function": "3 rows break the check long_text",
    "drop a field": "thing.b allows no NULL and has no default",
    "drop an indexed field": "thing.b allows no NULL and has no default",
    "drop a unique field": "thing.b allows no NULL and has no default",
    "drop all but the key": "thing.b allows no NULL and has no default",
    "drop one and add one that are not alike": "thing.alpha allows no NULL and has no default",
    "rename a field: and drop another": "thing.b allows no NULL and has no default",
    "rename a field: dropped instead": "thing.a allows no NULL and has no default",
    "drop a table that is pointed to": "post.author_id allows no NULL and has no default",
    "drop a foreign key": "post.author_id allows no NULL and has no default",
}
_catalogs: dict[tuple[str, str, bool], dict[str, Any]] = {}


@dataclass(frozen=True)
class Path:
    """A way from one schema to another: operations, and the states around them."""

    operations: tuple[Operation, ...]
    states: tuple[SchemaState, ...]

    @property
    def back(self) -> Path:
        """The way back."""
        undone: list[Operation] = []
        states = [self.states[-1]]
        steps = zip(reversed(self.operations), reversed(self.states[:-1]), strict=True)
        for operation, before in steps:
            reverse = operation.reverse(before)
            assert reverse is not None
            undone.append(reverse)
            states.append(reverse.apply(states[-1]))
        return Path(tuple(undone), tuple(states))

    def names(self) -> dict[str, str]:
        """The tables that are there all the way, by their name at the end."""
        names = {name: name for name in self.states[0].tables}
        for operation in self.operations:
            if isinstance(operation, RenameTable):
                names = {
                    operation.new if new == operation.old else new: old
                    for new, old in names.items()
                }
        return {new: old for new, old in names.items() if new in self.states[-1]}


@functools.cache
def path_of(name: str) -> Path:
    pair = BY_NAME[name]
    states = [pair.old()]
    operations = detect_operations(pair.old(), pair.new(), pair.answers())
    for operation in operations:
        states.append(operation.apply(states[-1]))
    return Path(tuple(operations), tuple(states))


def shapes_of(pair: Pair, state: SchemaState) -> list[TableShape]:
    """The tables of a state, and those that others manage, which are there all the time."""
    both = [*pair.old().tables.values(), *pair.new().tables.values()]
    others = {table.name: table for table in both if not table.options.managed}
    return [build_table_shape(table) for table in {**state.tables, **others}.values()]


def expected(bench: Bench, pair: Pair, *, after: bool) -> dict[str, Any]:
    key = bench.engine, pair.name, after
    if key not in _catalogs:
        _catalogs[key] = bench.expected(shapes_of(pair, pair.new() if after else pair.old()))
    return _catalogs[key]


def fill(bench: Bench, state: SchemaState) -> None:
    """Insert rows into all tables, as many as their constraints let in."""
    for table in state.tables.values():
        for row in rows_of(build_table_meta(state, table.name), bench.engine):
            try:
                bench.insert(table.name, row)
            except IntegrityError:
                continue


def values_of(bench: Bench, state: SchemaState, name: str) -> dict[str, list[Any]]:
    """The values of a table by field."""
    meta = build_table_meta(state, name)
    columns = {field: made.column_name for field, made in meta.fields.items()}
    order = meta.keys[0].column_name
    rows = bench.rows(name, list(columns.values()), order)
    return {field: [row[place] for row in rows] for place, field in enumerate(columns)}


def sequences(bench: Bench) -> dict[str, Any]:
    """What the sequences of a PostgreSQL database gave last, by table."""
    if bench.engine == "sqlite":
        return {}
    found = bench.ask(
        "SELECT d.refobjid::regclass::text, s.last_value FROM pg_sequences s JOIN pg_depend d ON "
        "d.objid = format('%I', s.sequencename)::regclass AND d.deptype = 'i' WHERE "
        "s.schemaname = current_schema()"
    )
    return {table.strip('"'): value for table, value in found}


def travel(bench: Bench, path: Path) -> None:
    """Apply a path as one file; rows, values that no operation changes, and sequences stay."""
    first, last = path.states[0], path.states[-1]
    before = {name: values_of(bench, first, name) for name in first.tables}
    counted = sequences(bench)
    planned = plan_operations(path.operations, path.states, bench.dialect)
    bench.apply([step for _, steps in planned for step in steps])
    after = sequences(bench)
    for new, old in path.names().items():
        values = values_of(bench, last, new)
        assert len(next(iter(values.values()))) == len(next(iter(before[old].values())))
        for field in unchanged(first.tables[old], last.tables[new]):
            assert values[field] == before[old][field], field
        if old in counted and new in after:
            assert after[new] == counted[old]
    if bench.engine == "sqlite":
        assert bench.ask("PRAGMA foreign_key_check") == []


def unchanged(old: TableState, new: TableState) -> list[str]:
    """The fields that both tables have in the same way."""
    return [
        name
        for name, field in old.fields.items()
        if is_same_declaration(field, new.fields.get(name, None))
    ]


def there_and_back(bench: Bench, pair: Pair, *, rows: bool) -> None:
    path = path_of(pair.name)
    with bench.place():
        bench.create(shapes_of(pair, path.states[0]))
        if rows:
            fill(bench, path.states[0])
        travel(bench, path)
        assert bench.catalog() == expected(bench, pair, after=True)
        travel(bench, path.back)
        assert bench.catalog() == expected(bench, pair, after=False)


@pytest.mark.parametrize(("bench", "name"), CHOSEN, indirect=["bench"])
def test_a_pair_is_applied_and_rolled_back(bench: Bench, name: str) -> None:
    pair, refusal = BY_NAME[name], REFUSED.get(name)
    if refusal is None:
        there_and_back(bench, pair, rows=True)
        return
    with pytest.raises(RunError, match=refusal):
        there_and_back(bench, pair, rows=True)
    there_and_back(bench, pair, rows=False)
