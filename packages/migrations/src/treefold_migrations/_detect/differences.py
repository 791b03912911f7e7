"""The operations between two states, in an order in which each of them fits.

Renames come first, so that everything else compares matching tables. Dropped fields and tables
come last, except for fields whose column another field takes over. In tables that stay, constraints
and indexes that go or change are dropped before tables and fields are made: they may be in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from treefold_migrations._base.errors import DataLossRefused, StateError
from treefold_migrations._detect.answers import Answers
from treefold_migrations._detect.fills import needs_fill, resolve_fill_value
from treefold_migrations._detect.losses import can_lose_values_silently, is_stricter_field
from treefold_migrations._detect.models import find_referenced_tables, sort_by_references
from treefold_migrations._detect.renames import (
    detect_field_renames,
    detect_table_renames,
    is_link_table,
)
from treefold_migrations._detect.walk import OperationsBuilder
from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.columns import AddField, AlterField, DropField
from treefold_migrations._operations.parts import AddConstraint, AddIndex, DropConstraint, DropIndex
from treefold_migrations._operations.tables import CreateTable, DropTable, SetOptions
from treefold_migrations._state.renaming import find_parts_using_field
from treefold_migrations._state.schema_state import (
    AnyField,
    SchemaState,
    TableState,
    derive_column_name,
    is_same_declaration,
    is_same_state,
    is_same_table,
)
from treefold_orm.schema import MISSING, is_foreign_key


@dataclass(frozen=True, slots=True)
class _Part:
    """A constraint or an index as it is declared, and the operations for one of its kind."""

    declared: Any
    add: Callable[[str, Any], Operation]
    drop: Callable[[str, str], Operation]


@dataclass(frozen=True, slots=True)
class _Additions:
    """What is new in the models: something that goes may have got one of these names.

    `has_table` says that there is a new table, `tables_with_field` in which of the known ones there
    is a new field.
    """

    has_table: bool = False
    tables_with_field: frozenset[str] = frozenset()

    def has_name_for(self, subject: str) -> bool:
        """True if `post` or `post.title` may have been renamed."""
        table, dot, _ = subject.rpartition(".")
        return table in self.tables_with_field if dot else self.has_table


def detect_operations(
    old: SchemaState, new: SchemaState, answers: Answers | None = None
) -> list[Operation]:
    """Return the operations that lead from one state to another.

    Raises `Ambiguous` for an open question, with the flags that answer it; `DataLossRefused` for a
    change that loses data without an agreement; `StateError` for a change that has no operation.
    """
    answers = answers or Answers()
    walk = OperationsBuilder(_reuse_equal_tables(old, new), new, answers)
    # before the renames, which would ask for a table that is to be dropped
    _translate_many_to_many_drops(walk)
    detect_table_renames(walk)
    detect_field_renames(walk)
    _refuse_unconfirmed_drops(walk)
    for name in walk.list_changed_tables():
        _refuse_database_change(walk.state.table(name), new.table(name))
        _refuse_primary_key_change(walk.state.table(name), new.table(name))
        _emit_constraint_and_index_drops(walk, name)
    created = _emit_table_creations(walk)
    for name in walk.list_changed_tables():
        _emit_field_additions_and_changes(walk, name, has_existing_rows=name not in created)
    for name in walk.list_changed_tables():
        _emit_option_changes(walk, name)
        _emit_constraint_and_index_additions(walk, name)
    _emit_field_drops(walk)
    _emit_table_drops(walk)
    answers.refuse_unused(_collect_valid_flag_targets(old, new))
    # a file that leads elsewhere would be found incomplete by the next run, again and again
    if not is_same_state(walk.state, new):
        raise StateError(
            "The operations found do not lead to the models; write this migration by hand with "
            "`makemigrations --empty`"
        )
    return walk.operations


def _reuse_equal_tables(old: SchemaState, new: SchemaState) -> SchemaState:
    """The old state with the new one's objects where they mean the same: compared once."""
    return SchemaState(
        {
            name: new.tables[name]
            if name in new and is_same_table(table, new.tables[name])
            else table
            for name, table in old.tables.items()
        }
    )


def _translate_many_to_many_drops(walk: OperationsBuilder) -> None:
    """Take `--drop book.tags` for the table `book_tags` that the field of the model made."""
    for subject in list(walk.answers.drops):
        table, _, field = subject.partition(".")
        link = _find_link_table(walk.state, table, field)
        if link and link not in walk.wanted:
            walk.answers.drops.add(link)
            walk.answers.used.add(f"--drop {subject}")


def _find_link_table(state: SchemaState, table: str, field: str) -> str:
    link = f"{table}_{field}"
    if not field or table not in state or field in state.table(table).fields or link not in state:
        return ""
    return link if is_link_table(state.table(link), table) else ""


def _link_table_to_field_path(state: SchemaState, name: str) -> str:
    """The field that made a table between models, as `table.field`; else the table's name."""
    for owner in state.tables:
        field = name.removeprefix(f"{owner}_")
        if field != name and _find_link_table(state, owner, field):
            return f"{owner}.{field}"
    return name


def _collect_valid_flag_targets(old: SchemaState, new: SchemaState) -> dict[str, list[str]]:
    gone = [_link_table_to_field_path(old, name) for name in old.tables if name not in new]
    rows: list[str] = []
    for name, one in old.tables.items():
        if name in new:
            after = new.table(name).fields
            gone += [f"{name}.{field}" for field in one.fields if field not in after]
            rows += [
                f"{name}.{field}"
                for field, made in after.items()
                if needs_fill(made) and (field not in one.fields or one.fields[field].null)
            ]
    return {"--rename": gone, "--drop": gone, "--fill": rows}


def _refuse_database_change(old: TableState, new: TableState) -> None:
    before, after = old.options.database, new.options.database
    if before != after:
        raise StateError(
            f"The model {new.model} moves from the database {before!r} to {after!r}, which no "
            f"operation does: write a new model with another table for {after!r}, copy the rows "
            f"with RunPython(copy, database={after!r}) in a file of its own, and drop the old "
            "model after that"
        )


def _refuse_primary_key_change(old: TableState, new: TableState) -> None:
    one, other = ({n for n, f in t.fields.items() if f.primary_key} for t in (old, new))
    if one != other or bool(old.options.primary_key) != bool(new.options.primary_key):
        raise StateError(
            f"The primary key of {new.name} moves to other fields, which no operation does; create "
            "a new table, copy the rows with RunSQL, and drop the old one"
        )


# -- constraints and indexes ----------------------------------------------------------------------


def _collect_constraints_and_indexes(table: TableState) -> dict[str, _Part]:
    """The constraints and indexes of a table by their names in the database."""
    constraints = {
        table.constraint_name(declared): _Part(declared, AddConstraint, DropConstraint)
        for declared in table.options.constraints
    }
    return constraints | {
        table.index_name(declared): _Part(declared, AddIndex, DropIndex)
        for declared in table.options.indexes
    }


def _find_missing_or_changed_parts(
    parts: dict[str, _Part], compared_parts: dict[str, _Part]
) -> list[str]:
    """The names of `parts` that `compared_parts` does not have, or declares otherwise."""
    return [
        name
        for name, part in parts.items()
        if name not in compared_parts
        or not is_same_declaration(part.declared, compared_parts[name].declared)
    ]


def _emit_constraint_and_index_drops(walk: OperationsBuilder, table: str) -> None:
    known = _collect_constraints_and_indexes(walk.state.table(table))
    after = _collect_constraints_and_indexes(walk.wanted.table(table))
    for name in _find_missing_or_changed_parts(known, after):
        walk.append_and_apply_operation(known[name].drop(table, name))


def _emit_constraint_and_index_additions(walk: OperationsBuilder, table: str) -> None:
    wanted = _collect_constraints_and_indexes(walk.wanted.table(table))
    before = _collect_constraints_and_indexes(walk.state.table(table))
    for name in _find_missing_or_changed_parts(wanted, before):
        walk.append_and_apply_operation(wanted[name].add(table, wanted[name].declared))


# -- tables ---------------------------------------------------------------------------------------


def _emit_table_creations(walk: OperationsBuilder) -> set[str]:
    """Create new tables; a foreign key in a circle of new tables is added afterwards."""
    new = [table for name, table in walk.wanted.tables.items() if name not in walk.state]
    order = sort_by_references(new)
    later: list[tuple[str, str]] = []
    for place, name in enumerate(order):
        table = walk.wanted.table(name)
        missing = find_referenced_tables(table) & set(order[place + 1 :])
        cut = [n for n, f in table.fields.items() if is_foreign_key(f) and f.to in missing]
        walk.append_and_apply_operation(CreateTable.of(_without_fields(table, cut)))
        later += [(name, field) for field in cut]
    for name, field in later:
        walk.append_and_apply_operation(AddField(name, field, walk.wanted.table(name).field(field)))
    return set(order)


def _without_fields(table: TableState, removed_fields: list[str]) -> TableState:
    if not removed_fields:
        return table
    used = {part for name in removed_fields for part in find_parts_using_field(table, name)}
    kept = table.with_fields({n: f for n, f in table.fields.items() if n not in removed_fields})
    options = table.options
    return kept.with_options(
        constraints=tuple(c for c in options.constraints if table.constraint_name(c) not in used),
        indexes=tuple(i for i in options.indexes if table.index_name(i) not in used),
    )


def _emit_option_changes(walk: OperationsBuilder, name: str) -> None:
    old, new = walk.state.table(name), walk.wanted.table(name)
    key = new.options.primary_key if old.options.primary_key != new.options.primary_key else None
    managed = new.options.managed if old.options.managed != new.options.managed else None
    model = new.model if old.model != new.model else None
    if (key, managed, model) != (None, None, None):
        walk.append_and_apply_operation(SetOptions(name, model, key, managed))


def _emit_table_drops(walk: OperationsBuilder) -> None:
    gone = [table for name, table in walk.state.tables.items() if name not in walk.wanted]
    for name in reversed(sort_by_references(gone)):
        for table, field in list(walk.state.references_to(name)):
            if table.name != name:  # a circle of tables that all go
                _emit_field_and_dependent_drops(walk, table.name, field)
        walk.answers.used.add(f"--drop {name}")
        walk.append_and_apply_operation(DropTable(name))


def _emit_field_and_dependent_drops(walk: OperationsBuilder, table: str, field: str) -> None:
    """Drop a field of a table that goes, with the constraints and indexes that name it."""
    current = walk.state.table(table)
    parts = _collect_constraints_and_indexes(current)
    for name in find_parts_using_field(current, field):
        walk.append_and_apply_operation(parts[name].drop(table, name))
    walk.append_and_apply_operation(DropField(table, field))


# -- fields ---------------------------------------------------------------------------------------


def _emit_field_additions_and_changes(
    walk: OperationsBuilder, name: str, *, has_existing_rows: bool
) -> None:
    _emit_reused_column_drops(walk, name)
    old, new = walk.state.table(name).fields, walk.wanted.table(name)
    same = {n for n, f in new.fields.items() if n in old and is_same_declaration(old[n], f)}
    waiting = {name: field for name, field in new.fields.items() if name not in same}
    while waiting:
        field_name = _find_field_with_free_column(walk.state.table(name), waiting)
        field = waiting.pop(field_name)
        if field_name in old:
            _emit_field_alteration(walk, name, field_name)
            continue
        fill = MISSING
        if has_existing_rows and new.options.managed and needs_fill(field):
            fill = resolve_fill_value(walk.wanted, name, field_name, walk.answers)
        walk.append_and_apply_operation(AddField(name, field_name, field, fill))


def _find_field_with_free_column(table: TableState, waiting: Mapping[str, AnyField]) -> str:
    """The first field whose column no other field has now, which may wait for a move of its own."""
    owners = {derive_column_name(name, field): name for name, field in table.fields.items()}
    free = (n for n, field in waiting.items() if owners.get(derive_column_name(n, field), n) == n)
    # two fields that swap their columns: none is free, and the operation itself names the conflict
    return next(free, next(iter(waiting)))


def _emit_reused_column_drops(walk: OperationsBuilder, name: str) -> None:
    """Drop the fields whose columns others take over; the rest is dropped at the end."""
    old, new = walk.state.table(name), walk.wanted.table(name)
    wanted = {derive_column_name(n, f) for n, f in new.fields.items()}
    for field_name, field in old.fields.items():
        if field_name not in new.fields and derive_column_name(field_name, field) in wanted:
            walk.answers.used.add(f"--drop {name}.{field_name}")
            walk.append_and_apply_operation(DropField(name, field_name))


def _emit_field_alteration(walk: OperationsBuilder, table: str, name: str) -> None:
    before, after = walk.state.table(table).field(name), walk.wanted.table(table).field(name)
    fill = MISSING
    if before.null and not after.null and walk.wanted.table(table).options.managed:
        fill = after.db_default
        if needs_fill(after):
            fill = resolve_fill_value(walk.wanted, table, name, walk.answers)
    state = walk.state
    # the running release goes on to use the column by its name
    is_moved = derive_column_name(name, before) != derive_column_name(name, after)
    phase = "contract" if is_moved or is_stricter_field(before, after) else "expand"
    walk.append_and_apply_operation(AlterField(table, name, after, fill, phase))
    managed = walk.wanted.table(table).options.managed
    if managed and can_lose_values_silently(state, walk.state, table, name):
        # the field keeps its name: no rename would save its values
        _refuse_data_loss(walk, [f"{table}.{name}"], _Additions())


def _emit_field_drops(walk: OperationsBuilder) -> None:
    for name in walk.list_changed_tables():
        for field in list(walk.state.table(name).fields):
            if field in walk.wanted.table(name).fields:
                continue
            subject = f"{name}.{field}"
            walk.answers.used.add(f"--drop {subject}")
            walk.append_and_apply_operation(DropField(name, field))


def _refuse_unconfirmed_drops(walk: OperationsBuilder) -> None:
    """Refuse to lose data of removed fields, before any question about new ones."""
    old, new = walk.state.tables, walk.wanted.tables
    lost = [n for n, t in old.items() if n not in new and t.options.managed]
    changed = walk.list_changed_tables()
    for name in changed:
        if new[name].options.managed:
            lost += [f"{name}.{f}" for f in old[name].fields if f not in new[name].fields]
    additions = _Additions(
        has_table=bool(new.keys() - old.keys()),
        tables_with_field=frozenset(
            name for name in changed if new[name].fields.keys() - old[name].fields.keys()
        ),
    )
    unconfirmed = [subject for subject in lost if subject not in walk.answers.drops]
    _refuse_data_loss(walk, unconfirmed, additions)


def _refuse_data_loss(walk: OperationsBuilder, lost: list[str], additions: _Additions) -> None:
    if not lost or walk.answers.allow_destructive:
        return
    shown = [_link_table_to_field_path(walk.state, subject) for subject in lost]
    # a field that only changes its type cannot be answered by a `--drop`: it stays in the models
    ways = [f"--drop {name}" for name in shown if not _has_field(walk.wanted, name)]
    renamed = [f"--rename {subject}:NEW" for subject in lost if additions.has_name_for(subject)]
    raise DataLossRefused(
        f"The data of {', '.join(shown)} would be lost; give --allow-destructive"
        f"{' or ' if ways else ''}{' '.join(ways)} to agree to it"
        + (f", or {' '.join(renamed)} for what has another name now" if renamed else "")
    )


def _has_field(state: SchemaState, field_path: str) -> bool:
    table, _, field = field_path.rpartition(".")
    return bool(table) and table in state and field in state.table(table).fields
