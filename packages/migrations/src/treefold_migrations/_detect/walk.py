"""Walk: the operations found so far, and the state that they lead to."""

from __future__ import annotations

from dataclasses import dataclass, field as attribute

from treefold_migrations._detect.answers import Answers
from treefold_migrations._operations.base import Operation
from treefold_migrations._state.schema_state import SchemaState


@dataclass(slots=True)
class OperationsBuilder:
    """From the old state towards `wanted`, one operation after the other."""

    state: SchemaState
    wanted: SchemaState
    answers: Answers
    operations: list[Operation] = attribute(default_factory=list[Operation])

    def append_and_apply_operation(self, operation: Operation) -> None:
        """Add an operation."""
        self.state = operation.apply(self.state)
        self.operations.append(operation)

    def list_changed_tables(self) -> list[str]:
        """Return the names of the tables that are in both states and differ there."""
        known = self.state.tables
        return [
            n for n, table in self.wanted.tables.items() if n in known and known[n] is not table
        ]
