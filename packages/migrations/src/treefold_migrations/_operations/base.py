"""Operation: one change of the schema or of data, as a migration file holds it.

An operation changes a state, reverts that change, and writes its own source. It never reads a
database; SQL is made of the states before and after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import accumulate
from typing import Any, ClassVar, Literal, cast

from treefold_migrations._base.errors import StateError
from treefold_migrations._state.schema_state import SchemaState
from treefold_orm.schema import Imports, ModelError, SourceWriter, is_plain_name, quoted

Phase = Literal["expand", "contract"]
PHASES = ("expand", "contract")


class Operation(ABC):
    """Base of all operations.

    `destructive` is True where rows or values are lost. `phase` is "expand" for what may run
    before the release that needs it, "contract" for what must wait until the old release is gone.
    """

    destructive: ClassVar[bool] = False
    when: Phase = "expand"

    @property
    def phase(self) -> Phase:
        """When the operation may run in a rollout."""
        return self.when

    @abstractmethod
    def apply(self, state: SchemaState) -> SchemaState:
        """Return the state after the operation.

        Raises `StateError` where the operation does not fit the state.
        """

    @abstractmethod
    def reverse(self, before: SchemaState) -> Operation | None:
        """Return the operation that undoes this one, or None where there is none.

        Args:
            before: the state before this operation.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return one line for people."""

    @abstractmethod
    def touches(self) -> set[str] | None:
        """Return the names that the operation changes: tables, fields as `table.field`, constraints
        and
        indexes as `table#name`; None where it cannot be known.
        """

    def relies_on(self) -> set[str]:
        """Return the tables and fields that must be there, and stay as they are."""
        return set()

    def arguments(self, writer: OperationWriter) -> tuple[list[str], dict[str, str]]:
        """Return the arguments of the constructor as source; here, of names only."""
        return [quoted(getattr(self, field.name)) for field in fields(cast("Any", self))], {}

    def source(self, imports: Imports) -> str:
        """Return the source of the operation on one line, in its normalized form.

        Raises `StateError` for a part that a migration cannot hold.
        """
        writer = OperationWriter(imports)
        name = imports.name("treefold_migrations", type(self).__name__)
        try:
            args, options = self.arguments(writer)
        except ModelError as error:
            raise StateError(f"Cannot write {self.describe()}: {error}") from error
        return f"{name}({', '.join([*args, *(f'{key}={text}' for key, text in options.items())])})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operation) or type(self) is not type(other):
            return False
        return self.source(Imports()) == other.source(Imports())

    def __hash__(self) -> int:
        return hash(self.source(Imports()))


class OperationWriter:
    """Writes arguments of operations and collects their imports."""

    def __init__(self, imports: Imports) -> None:
        self.imports = imports

    def write_part(self, part: Any) -> str:
        """Write a field, constraint, index or expression."""
        writer = SourceWriter()
        text = writer.write(part)
        self.imports.update(writer.imports)
        return text

    def write_value(self, value: Any) -> str:
        """Write a constant or an expression."""
        writer = SourceWriter()
        text = writer.value(value)
        self.imports.update(writer.imports)
        return text

    def write_function_reference(self, function: Any) -> str:
        """Write a function of the migration's own file by its name, another by its module."""
        name = str(function.__name__)
        if str(function.__module__).startswith(MIGRATION_MODULE) and is_plain_name(name):
            return name
        return self.imports.of(function)

    def write_operation(self, operation: Operation) -> str:
        """Write an operation inside of another one."""
        return operation.source(self.imports)


MIGRATION_MODULE = "treefold_migrations_file_"
"""How the names of modules begin that migration files are executed as."""


def compute_states(operations: Iterable[Operation], before: SchemaState) -> list[SchemaState]:
    """Return the states before, between and after operations."""
    return list(accumulate(operations, lambda state, made: made.apply(state), initial=before))


def require_plain_names(table: str, model: str, fields: Iterable[str]) -> None:
    """Raise `StateError` for names that cannot stand in source."""
    if not is_plain_name(model):
        raise StateError(f"Table {table!r}: model {model!r} must be a plain name; rename the class")
    for name in fields:
        if not is_plain_name(name):
            raise StateError(f"Table {table!r}: field {name!r} must be a plain name; rename it")


def check_phase(phase: str) -> None:
    """Raise `StateError` for a phase that does not exist."""
    if phase not in PHASES:
        raise StateError(f"phase must be 'expand' or 'contract', got {phase!r}")


def require_database_alias(alias: object) -> None:
    """Raise `StateError` for an alias that is not text."""
    if not (isinstance(alias, str) and alias.strip()):
        raise StateError(f"database must be the alias of a database, got {alias!r}")


def write_mapping(pairs: Mapping[str, str]) -> str:
    """Write a mapping whose values are source already."""
    return "{" + ", ".join(f"{quoted(key)}: {text}" for key, text in pairs.items()) + "}"


def write_list(texts: Iterable[str]) -> str:
    """Write a list whose items are source already."""
    return f"[{', '.join(texts)}]"
