"""Operations with SQL or Python of the application, and operations that split state and database.

The author answers for the effect of such an operation on a database; `tables` says which tables it
concerns, so that branches can be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from treefold_migrations._base.errors import StateError
from treefold_migrations._operations import base
from treefold_migrations._state.schema_state import SchemaState, TableState
from treefold_orm.schema import DEFAULT, quoted

Statements = str | Sequence[str] | Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, eq=False)
class RunSQL(base.Operation):
    """Run SQL: one statement, several, or a mapping of "sqlite" and "postgres" to these.

    `reverse_sql` undoes it; an empty one says that nothing is to be undone. `elidable=True` lets a
    squash leave it out. It runs on the database behind the alias `database` alone.
    """

    sql: Statements
    reverse_sql: Statements | None = None
    tables: Sequence[str] | None = None
    transactional: bool = True
    elidable: bool = False
    when: base.Phase = "expand"
    database: str = DEFAULT

    def __post_init__(self) -> None:
        base.check_phase(self.when)
        base.require_database_alias(self.database)
        for dialect in ("sqlite", "postgres"):
            # a mistake is found when the file is loaded, and not in the middle of a run
            self.statements(dialect)

    def statements(self, dialect: str) -> list[str]:
        """Return the statements for "sqlite" or "postgres".

        Raises `StateError` for values other than SQL.
        """
        given: Any = self.sql
        if isinstance(given, Mapping):
            unknown = cast("Mapping[str, Any]", given).keys() - {"sqlite", "postgres"}
            if unknown:
                raise StateError(f"RunSQL knows 'sqlite' and 'postgres', got {min(unknown)!r}")
            given = cast("Mapping[str, Any]", given).get(dialect, ())
        found: list[Any] = [given] if isinstance(given, str) else list(given)
        for statement in found:
            if not isinstance(statement, str):
                raise StateError(f"RunSQL must be given text, got {statement!r}")
        return [statement for statement in found if statement.strip()]

    def apply(self, state: SchemaState) -> SchemaState:
        return state

    def reverse(self, before: SchemaState) -> base.Operation | None:
        if self.reverse_sql is None:
            return None
        return replace(self, sql=self.reverse_sql, reverse_sql=self.sql)

    def describe(self) -> str:
        first = next(iter(self.statements("sqlite") or self.statements("postgres")), "")
        return describe_sql(first)

    def touches(self) -> set[str] | None:
        return None if self.tables is None else set(self.tables)

    def arguments(self, writer: base.OperationWriter) -> tuple[list[str], dict[str, str]]:
        options: dict[str, str] = {}
        if self.reverse_sql is not None:
            options["reverse_sql"] = writer.write_value(_convert_to_builtins(self.reverse_sql))
        options |= _write_common_options(self)
        return [writer.write_value(_convert_to_builtins(self.sql))], options


def may_change_schema_by_sql(operation: base.Operation) -> bool:
    """True for SQL of the author that may change tables, their columns, or what uses these."""
    match operation:
        case RunSQL():
            # its patterns take 11 ms, and few commands ask
            from treefold_migrations._base.sql_words import contains_only_row_changes

            written = operation.statements("sqlite") + operation.statements("postgres")
            return not all(map(contains_only_row_changes, written))
        case SeparateStateAndDatabase(database=inner):
            return any(map(may_change_schema_by_sql, inner))
        case _:
            # models in a function know rows alone
            return False


def describe_sql(sql: str) -> str:
    """Return one line for a statement of `RunSQL`."""
    words = " ".join(sql.split())
    return f"run SQL: {words[:60]}{'...' if len(words) > 60 else ''}"


@dataclass(frozen=True, eq=False)
class RunPython(base.Operation):
    """Run a function of the migration's file, sync or async, on frozen models.

    `backward` undoes it. Where nothing is to be undone, it is `RunPython.noop`. It is a part of the
    run on the database behind the alias `database`; its models of other databases, which are those
    of the tables `elsewhere`, query these. The history fills `elsewhere` in.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any] | None = None
    tables: Sequence[str] | None = None
    transactional: bool = True
    elidable: bool = False
    when: base.Phase = "expand"
    database: str = DEFAULT
    elsewhere: Sequence[TableState] = ()

    def __post_init__(self) -> None:
        base.check_phase(self.when)
        base.require_database_alias(self.database)
        for function in (self.forward, self.backward):
            if function is not None and not callable(cast("Any", function)):
                raise StateError(f"RunPython must be given a function, got {function!r}")

    @staticmethod
    def noop(*_: Any) -> None:
        """Do nothing."""

    def apply(self, state: SchemaState) -> SchemaState:
        return state

    def reverse(self, before: SchemaState) -> base.Operation | None:
        if self.backward is None:
            return None
        return replace(self, forward=self.backward, backward=self.forward)

    def describe(self) -> str:
        return f"run Python: {self.forward.__name__}"

    def touches(self) -> set[str] | None:
        return None if self.tables is None else set(self.tables)

    def arguments(self, writer: base.OperationWriter) -> tuple[list[str], dict[str, str]]:
        options: dict[str, str] = {}
        if self.backward is RunPython.noop:
            options["backward"] = f"{writer.imports.name('treefold_migrations', 'RunPython')}.noop"
        elif self.backward is not None:
            options["backward"] = writer.write_function_reference(self.backward)
        options |= _write_common_options(self)
        return [writer.write_function_reference(self.forward)], options


@dataclass(frozen=True, eq=False)
class SeparateStateAndDatabase(base.Operation):
    """Change the database by some operations, and the state by others."""

    database: Sequence[base.Operation] = ()
    state: Sequence[base.Operation] = ()

    @property
    def destructive(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride] - depends on its operations
        return any(operation.destructive for operation in self.database)

    @property
    def phase(self) -> base.Phase:
        # the state has no part in a rollout: it is of the files alone
        late = any(operation.phase == "contract" for operation in self.database)
        return "contract" if late else "expand"

    def apply(self, state: SchemaState) -> SchemaState:
        for operation in self.state:
            state = operation.apply(state)
        return state

    def reverse(self, before: SchemaState) -> base.Operation | None:
        database = _reverse_operations(self.database, before)
        state = _reverse_operations(self.state, before)
        if database is None or state is None:
            return None
        return SeparateStateAndDatabase(database, state)

    def describe(self) -> str:
        words = [f"database: {o.describe()}" for o in self.database]
        words += [f"state: {o.describe()}" for o in self.state]
        return "; ".join(words) or "change nothing"

    def touches(self) -> set[str] | None:
        found: set[str] = set()
        for operation in (*self.database, *self.state):
            touched = operation.touches()
            if touched is None:
                return None
            found |= touched
        return found

    def arguments(self, writer: base.OperationWriter) -> tuple[list[str], dict[str, str]]:
        options: dict[str, str] = {}
        if self.database:
            options["database"] = base.write_list(map(writer.write_operation, self.database))
        if self.state:
            options["state"] = base.write_list(map(writer.write_operation, self.state))
        return [], options


def _reverse_operations(
    operations: Sequence[base.Operation], before: SchemaState
) -> list[base.Operation] | None:
    made: list[base.Operation] = []
    for operation in operations:
        reverse = operation.reverse(before)
        if reverse is None:
            return None
        made.insert(0, reverse)
        # the reverse of each operation is built over the state that it began with
        before = operation.apply(before)
    return made


def _write_common_options(operation: RunSQL | RunPython) -> dict[str, str]:
    options: dict[str, str] = {}
    if operation.tables is not None:
        options["tables"] = base.write_list(map(quoted, operation.tables))
    if not operation.transactional:
        options["transactional"] = "False"
    if operation.elidable:
        options["elidable"] = "True"
    if operation.when != "expand":
        options["when"] = quoted(operation.when)
    if operation.database != DEFAULT:
        options["database"] = quoted(operation.database)
    return options


def _convert_to_builtins(sql: Statements) -> Any:
    if isinstance(sql, str):
        return sql
    if isinstance(sql, Mapping):
        return {name: _convert_to_builtins(cast("Statements", part)) for name, part in sql.items()}
    return list(sql)
