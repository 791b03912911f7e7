"""The two parts of an operation: what runs before the new release, and what waits for its end.

The running release inserts books without a slug while this operation is applied:

    AddField("book", "slug", CharField(max_length=9), fill="-")

Its parts are:

    expand:    AddField("book", "slug", CharField(max_length=9, db_default="-"))
    contract:  AlterField("book", "slug", CharField(max_length=9))

An operation that no pair of parts fits, such as a rename, is `Refused`, with another way, which
needs no such statement. Both parts depend on the operation and the state before it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from treefold_migrations._detect.fills import find_constant_default
from treefold_migrations._operations.base import Operation, compute_states
from treefold_migrations._operations.columns import (
    AddField,
    AlterField,
    DropField,
    RenameField,
    is_fill_computed_per_row,
)
from treefold_migrations._operations.custom import SeparateStateAndDatabase
from treefold_migrations._operations.tables import DropTable, RenameTable, SetOptions
from treefold_migrations._phases.shared_fields import (
    LATER,
    NEW_FIELD,
    REWRITTEN,
    Refused,
    build_field_for_both_releases,
    with_options,
)
from treefold_migrations._plan.postgres_rewrites import is_volatile_default
from treefold_migrations._state.rendering import build_table_meta, render_fill_sql
from treefold_migrations._state.schema_state import (
    AnyField,
    SchemaState,
    derive_column_name,
    is_same_declaration,
)
from treefold_orm import ORMError
from treefold_orm.schema import MISSING, Dialect, reads_columns


@dataclass(frozen=True, slots=True)
class PhaseParts:
    """The operations of one operation that run in each phase."""

    expand: tuple[Operation, ...] = ()
    contract: tuple[Operation, ...] = ()


def split_operation_into_phases(
    operation: Operation, before: SchemaState, dialect: Dialect
) -> PhaseParts | Refused:
    """Return the parts of an operation, or why it has none.

    Args:
        operation: the operation, as the file has it.
        before: the state before it in the history.
        dialect: the database's.
    """
    match operation:
        case AddField():
            return _split_addition(operation, before, dialect)
        case DropField():
            return _split_drop(operation, before)
        case AlterField():
            return _split_alteration(operation, before, dialect)
        case RenameField():
            return _split_rename(operation, before)
        case RenameTable(old=old) if before.table(old).options.managed:
            return Refused(
                f"the running release still uses the table {old!r}",
                f'keep the table with Meta.table = "{old}", which needs no statement; {_RENAME}',
            )
        case SetOptions(primary_key=key) if key is not None:
            return Refused("the running release still uses the old key", LATER)
        case SetOptions(as_found=found) if found is not None:
            return PhaseParts((operation,), (operation,))  # a rebuild in either phase needs it
        case SeparateStateAndDatabase(database=inner):
            return _split_separate_state_operation(operation, inner, before, dialect)
        case DropTable():
            return PhaseParts((), (operation,))
        case _:
            late = operation.phase == "contract"
            return PhaseParts((), (operation,)) if late else PhaseParts((operation,))


_RENAME = "or rename it with `migrate` while no process of the running release is left, or never"


def _split_addition(
    operation: AddField, before: SchemaState, dialect: Dialect
) -> PhaseParts | Refused:
    field, fill = operation.field, operation.fill
    if field.generated and dialect.name == "postgres":
        return Refused(REWRITTEN, LATER)
    if (fill is MISSING or fill is None) and _has_volatile_default(operation, before, dialect):
        # filled in batches: in the clause of the column the default would write every row at once
        return PhaseParts((replace(operation, fill=field.db_default),))
    # the database gives these a value where the running release sends none
    served = field.db_default is not MISSING or field.generated or field.primary_key
    if served or (fill is MISSING and field.null) or fill is None:
        return PhaseParts((operation,))
    table, name = operation.table, operation.name
    value = find_constant_default(field) if fill is MISSING else fill
    finish = AlterField(table, name, field, when="contract")
    own = reads_columns(build_table_meta(operation.apply(before), table), value)
    held = MISSING if own or value is MISSING else _with_database_default(field, value)
    if held is MISSING:
        # neither release gives rows of the other one a value
        finish, held = replace(finish, fill=value), with_options(field, null=True)
        return PhaseParts((AddField(table, name, held, value),), (finish,))
    fill = value if is_fill_computed_per_row(value) else MISSING
    return PhaseParts((AddField(table, name, held, fill),), (finish,))


def _has_volatile_default(operation: AddField, before: SchemaState, dialect: Dialect) -> bool:
    table, name, default = operation.table, operation.name, operation.field.db_default
    # SQLite has one writer at a time in any case
    if dialect.name != "postgres" or default is MISSING or default is None:
        return False
    state = operation.apply(before)
    return is_volatile_default(render_fill_sql(state, table, name, default, dialect))


def _with_database_default(field: AnyField, value: object) -> AnyField:
    try:
        return with_options(field, db_default=value)
    except ORMError:  # a column that other tools keep has no default that it could read
        return MISSING


def _split_drop(operation: DropField, before: SchemaState) -> PhaseParts | Refused:
    table = before.table(operation.table)
    field = table.field(operation.name)
    # the new release leaves the column out of its INSERT, which these bear
    if field.null or field.db_default is not MISSING or not table.options.managed:
        return PhaseParts((), (operation,))
    value = find_constant_default(field)
    held = MISSING if value is MISSING else _with_database_default(field, value)
    if held is MISSING:
        return Refused(
            "the new release inserts rows without a value for it, which the running one needs",
            "give the field null=True, a default or a db_default in a release before, and drop it "
            "one release later",
        )
    return PhaseParts((AlterField(operation.table, operation.name, held),), (operation,))


def _split_alteration(
    operation: AlterField, before: SchemaState, dialect: Dialect
) -> PhaseParts | Refused:
    old, new = before.table(operation.table).field(operation.name), operation.field
    if not before.table(operation.table).options.managed:
        return PhaseParts((operation,))
    columns = derive_column_name(operation.name, old), derive_column_name(operation.name, new)
    # a column has one name, and each release uses another
    if columns[0] != columns[1]:
        return Refused(
            f"the running release still uses the column {columns[0]!r}",
            f'keep the column with db_column="{columns[0]}", which needs no statement; {_RENAME}',
        )
    if operation.using_on(dialect.name):
        return Refused("it converts values that the running release still reads", NEW_FIELD)
    held = build_field_for_both_releases(old, new, dialect)
    if isinstance(held, Refused):
        return held
    last = replace(operation, when="contract")
    first = AlterField(operation.table, operation.name, held)
    if is_same_declaration(held, new):
        return PhaseParts((replace(operation, when="expand"),))
    return PhaseParts(() if is_same_declaration(held, old) else (first,), (last,))


def _split_rename(operation: RenameField, before: SchemaState) -> PhaseParts | Refused:
    table = before.table(operation.table)
    after = operation.apply(before).table(operation.table)
    column = table.column(operation.old)
    if column == after.column(operation.new) or not table.options.managed:
        return PhaseParts((operation,))
    return Refused(
        f"the running release still uses the column {column!r}",
        f'keep the column with db_column="{column}", which needs no statement; {_RENAME}',
    )


def _split_separate_state_operation(
    operation: Operation, inner: Sequence[Operation], before: SchemaState, dialect: Dialect
) -> PhaseParts | Refused:
    late = early = False
    for part, state in zip(inner, compute_states(inner, before), strict=False):
        parts = split_operation_into_phases(part, state, dialect)
        if isinstance(parts, Refused):
            return parts
        # the operation runs here as it is written, and not as its part for expand
        if isinstance(part, AddField) and _has_volatile_default(part, state, dialect):
            return Refused(REWRITTEN, f"write the AddField without it, or {LATER}")
        late = late or bool(parts.contract)
        early = early or bool(parts.expand)
    # its state has one place in the history: the parts of the database cannot go separate ways
    if early and late:
        return Refused(
            "a part of its operations must wait for the end of the running release",
            "write the two parts as two SeparateStateAndDatabase",
        )
    return PhaseParts((), (operation,)) if late else PhaseParts((operation,))
