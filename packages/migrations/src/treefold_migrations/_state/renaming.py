"""Names inside of other declarations: constraints and indexes follow a renamed field or table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from treefold_migrations._base.errors import StateError
from treefold_migrations._state.schema_state import (
    AsFound,
    SchemaState,
    TableState,
    derive_column_name,
)
from treefold_orm import schema

T = TypeVar("T")


def collect_field_names(part: Any) -> set[str]:
    """Return the names of the fields that a constraint, index or expression speaks of."""
    # the writer meets each name that a condition or expression holds, at any depth
    writer = schema.SourceWriter()
    writer.write(part)
    return writer.names


def rename_fields_in_part(part: T, renames: Mapping[str, str]) -> T:
    """Return a constraint or index that speaks of renamed fields."""
    made: Any = part
    # most parts name no such field, and need not be written and evaluated
    if not collect_field_names(made) & renames.keys():
        return part
    writer = schema.SourceWriter(renames)
    text = writer.write(made)
    return eval(text, schema.namespace_of(writer.imports))  # noqa: S307 - source of our own, with every name and value quoted


def build_field_renames(table: TableState, old: str, new: str) -> dict[str, str]:
    """Return the renames of a field and, for a foreign key, of its attribute."""
    renames = {old: new}
    if schema.is_foreign_key(table.fields.get(old) or table.fields.get(new)):
        # conditions may name the raw key, which is another attribute
        renames[f"{old}_id"] = f"{new}_id"
    return renames


def rename_field(table: TableState, old: str, new: str) -> TableState:
    """Return a table whose field has another name, in every declaration."""
    table.field(old)
    if new in table.fields:
        raise StateError(f"{table.name}.{new} must not exist yet; cannot rename {old!r} to it")
    renames = build_field_renames(table, old, new)
    options = table.options
    return replace(
        table,
        fields={new if name == old else name: field for name, field in table.fields.items()},
        options=replace(
            options,
            primary_key=tuple(renames.get(name, name) for name in options.primary_key),
            constraints=tuple(rename_fields_in_part(c, renames) for c in options.constraints),
            indexes=tuple(rename_fields_in_part(i, renames) for i in options.indexes),
            as_found=_rename_column_in_findings(table, old, new),
        ),
    )


def _rename_column_in_findings(table: TableState, old: str, new: str) -> tuple[AsFound, ...]:
    before, after = table.column(old), derive_column_name(new, table.field(old))
    return _rename_findings(table.options.as_found, before, after)


def _rename_findings(findings: tuple[AsFound, ...], old: str, new: str) -> tuple[AsFound, ...]:
    return tuple(f._replace(name=new) if f.name == old else f for f in findings)


def retarget_foreign_key(field: Any, table: str) -> Any:
    """Return a foreign key that points to another table."""
    made = schema.unbound_copy(field)
    given = made.declared
    args, options = (given[0], {**given[1]})
    # the target may be given by position or by its keyword
    if "to" in options:
        options["to"] = table
    else:
        args = (table, *args[1:])
    return type(made)(*args, **options)


def rename_table(state: SchemaState, old: str, new: str) -> SchemaState:
    """Return a state in which a table has another name, and foreign keys follow it."""
    state.table(old)
    if new in state:
        raise StateError(f"Table {new!r} must not exist yet; cannot rename {old!r} to it")
    made: dict[str, TableState] = {}
    for name, table in state.tables.items():
        moved = table
        pointers = [n for n, f in table.fields.items() if schema.is_foreign_key(f) and f.to == old]
        if pointers:
            fields = {
                n: retarget_foreign_key(f, new) if n in pointers else f
                for n, f in table.fields.items()
            }
            moved = moved.with_fields(fields)
        if name == old:
            found = _rename_findings(moved.options.as_found, old, new)
            moved = replace(moved, name=new, options=replace(moved.options, as_found=found))
        made[moved.name] = moved
    return SchemaState(made)


def find_parts_using_field(table: TableState, name: str) -> list[str]:
    """Return the names of the constraints and indexes of a table that refer to a field."""
    wanted = build_field_renames(table, name, name).keys()
    options = table.options
    used = [
        table.constraint_name(c) for c in options.constraints if collect_field_names(c) & wanted
    ]
    used += [table.index_name(i) for i in options.indexes if collect_field_names(i) & wanted]
    return used
