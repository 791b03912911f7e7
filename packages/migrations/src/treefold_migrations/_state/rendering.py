"""From a state to the ORM's records of tables, by the code that `create_all` uses.

One source of SQL: the ORM alone decides the form of a migrated table.
"""

from __future__ import annotations

from typing import Any

from treefold_migrations._base.errors import StateError
from treefold_migrations._state.schema_state import SchemaState, TableState
from treefold_orm import ORMError, schema


def build_table_shape(table: TableState) -> schema.TableShape:
    """Return a table as the ORM describes one without a model."""
    options = table.options
    parts = options.primary_key, options.constraints, options.indexes
    return schema.TableShape(table.name, table.model, table.fields, *parts)


def build_table_meta(state: SchemaState, name: str) -> schema.Meta:
    """Return the description of one table of a state, in no registry.

    Raises `StateError` for a table that no model could have.
    """
    state.table(name)
    wanted: dict[str, schema.TableShape] = {}
    waiting = [name]
    while waiting:
        table = state.tables.get(waiting.pop())
        if table is None or table.name in wanted:
            continue  # a target that is missing is an error of the table that points to it
        wanted[table.name] = build_table_shape(table)
        waiting += [str(f.to) for f in table.fields.values() if schema.is_foreign_key(f)]
    try:
        return schema.meta_of(name, wanted)
    except schema.ModelError as error:
        raise StateError(f"Table {name!r}: {error}") from error


def render_table(state: SchemaState, name: str, dialect: schema.Dialect) -> schema.TableDef:
    """Return the record of one table in a dialect.

    Raises `StateError` for declarations that cannot become a table, and the ORM's
    `UnsupportedFeature` for features that the database does not have.
    """
    meta = build_table_meta(state, name)
    try:
        return schema.table_of(meta, dialect)
    except schema.ModelError as error:
        raise StateError(f"Table {name!r}: {error}") from error


def render_managed_tables(
    state: SchemaState, dialect: schema.Dialect
) -> dict[str, schema.TableDef]:
    """Return the records of all tables that migrations manage."""
    managed = [name for name, table in state.tables.items() if table.options.managed]
    return {name: render_table(state, name, dialect) for name in managed}


def render_fill_sql(
    state: SchemaState, table: str, name: str, value: Any, dialect: schema.Dialect
) -> str:
    """Return a value for the rows of a field that exist, as SQL without parameters.

    Args:
        state: the state after the change.
        table: the table.
        name: the field.
        value: a constant of the field's type, or an expression over the columns of the row.
        dialect: the database.

    Raises `StateError` for a value that the field does not take.
    """
    if value is None:
        return "NULL"
    meta = build_table_meta(state, table)
    field = meta.fields[name]
    try:
        if field.storage:
            return schema.literal(_convert_to_storage(field, field.clean(value)), dialect)
        return schema.fill_sql(meta, field, value, dialect)
    except ORMError as error:
        raise StateError(f"{table}.{name} cannot be filled with {value!r}: {error}") from error


def _convert_to_storage(field: Any, value: Any) -> Any:
    """A value as the column of another tool keeps it."""
    match field.storage:
        case "naive":
            return value.isoformat(" ")
        case "real":
            return float(value)
        case _:
            return f"{value:.{field.decimal_places}f}"
