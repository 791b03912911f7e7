"""Which operations of pending files run in expand, in one letter for each operation of a file.

| Letter | The operation |
|---|---|
| `x` | is split: its part for expand runs now, the other one in contract |
| `w` | runs as a whole now: it concerns what only the new release knows |
| `c` | waits as a whole for contract |

A file that drops `book.year` and adds `book.slug` after that is `cx`. The letters are recorded when
a file is expanded, since they depend on which files were pending then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from treefold_migrations._base.errors import RunError, StateError
from treefold_migrations._files.history import LoadedMigration
from treefold_migrations._operations.base import Operation, compute_states
from treefold_migrations._operations.columns import AddField, AlterField, DropField, RenameField
from treefold_migrations._operations.custom import RunPython, RunSQL
from treefold_migrations._operations.tables import CreateTable, DropTable, RenameTable, SetOptions
from treefold_migrations._phases.parts import PhaseParts, split_operation_into_phases
from treefold_migrations._phases.shared_fields import Refused
from treefold_migrations._state.schema_state import SchemaState, is_same_declaration
from treefold_orm.schema import MISSING, Dialect


def split_file_operations(
    item: LoadedMigration, before: SchemaState, phase_letters: str, dialect: Dialect
) -> list[tuple[Operation, PhaseParts]]:
    """Return the operations of a file, each with its parts, by the letters of the file.

    Args:
        item: the file.
        before: the state before it in the history.
        phase_letters: one for each operation; without any, all of them wait.
        dialect: the database's.
    """
    made: list[tuple[Operation, PhaseParts]] = []
    states = compute_states(item.operations, before)
    for place, operation in enumerate(item.operations):
        letter = phase_letters[place : place + 1] or "c"
        if letter == "x":
            parts = split_operation_into_phases(operation, states[place], dialect)
            made.append((operation, PhaseParts() if isinstance(parts, Refused) else parts))
        else:
            whole = (operation,)
            made.append((operation, PhaseParts(whole) if letter == "w" else PhaseParts((), whole)))
    return made


@dataclass(slots=True)
class Rollout:
    """What the expanded files have done so far: the schema, the new names, and what waits.

    `state` is the schema of the database, `waiting_fields` those with a part that waits, and
    `waiting_code` the tables of SQL and Python that waits, None for unknown ones.
    """

    state: SchemaState
    dialect: Dialect
    new_tables: set[str] = field(default_factory=set[str])
    new_fields: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    waiting_fields: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    waiting_code: list[set[str] | None] = field(default_factory=list[set[str] | None])

    def record_expanded_file(
        self, item: LoadedMigration, before: SchemaState, phase_letters: str
    ) -> None:
        """Take an expanded file into account, whose part for expand `state` has already."""
        for operation, parts in split_file_operations(item, before, phase_letters, self.dialect):
            self._record_operation(operation, parts)

    def assign_phases_and_advance(self, item: LoadedMigration, before: SchemaState) -> str:
        """Return the letters of a file, and follow it.

        Raises:
            RunError: the running release bears none of the ways to run an operation in expand.
        """
        letters = ""
        states = compute_states(item.operations, before)
        for operation, state in zip(item.operations, states, strict=False):
            decided = self._choose_operation_phase(operation, state)
            if isinstance(decided, Refused):
                raise RunError(
                    f"Migration {item.name!r} cannot run in expand: {operation.describe()}: "
                    f"{decided.reason}. Instead, {decided.way}; nothing was changed"
                )
            letter, parts = decided
            letters += letter
            for part in parts.expand:
                self.state = part.apply(self.state)
            self._record_operation(operation, parts)
        return letters

    def _choose_operation_phase(
        self, operation: Operation, before: SchemaState
    ) -> tuple[str, PhaseParts] | Refused:
        wait = "c", PhaseParts((), (operation,))
        if self._changes_only_new_tables(operation):
            return "w", PhaseParts((operation,))
        parts = split_operation_into_phases(operation, before, self.dialect)
        match operation:
            case RenameField(table=table, old=old) if (table, old) in self.new_fields:
                if (table, old) in self.waiting_fields:
                    return _TWICE
                parts = PhaseParts((operation,))
            # the running release does not know the field: what counts is only whether its INSERT
            # still works
            case AlterField(table=table, name=name) if (table, name) in self.new_fields:
                if _allows_inserts_by_old_release(operation, before):
                    parts = PhaseParts((operation,))
            case DropField(table=table, name=name) if (table, name) in self.new_fields:
                return wait
            case _:
                pass
        if isinstance(parts, Refused):
            return parts
        if isinstance(operation, RunPython | RunSQL) and self._may_depend_on_waiting_code(
            operation
        ):
            return wait
        if self._conflicts_with_waiting_field(operation, parts, before):
            return _TWICE
        try:
            compute_states(parts.expand, self.state)
        except StateError as error:
            # the new release starts with these: to wait with them would let it fail
            if isinstance(operation, _NEEDED):
                return Refused(f"a part of it must wait: {error}", _TWICE.way)
            return wait
        whole = parts.expand == (operation,) and not parts.contract
        return ("w" if whole else "x"), parts

    def _changes_only_new_tables(self, operation: Operation) -> bool:
        """True for a change of tables that the running release does not know."""
        touched = operation.touches()
        if not touched or isinstance(operation, CreateTable | RunPython | RunSQL):
            return False
        tables = {name.partition("#")[0].partition(".")[0] for name in touched}
        if isinstance(operation, RenameTable):
            tables = {operation.old}
        return tables <= self.new_tables and not self._touches_waiting_field(operation)

    def _touches_waiting_field(self, operation: Operation) -> bool:
        named = {(table, name) for table, name in self.waiting_fields}
        touched = {tuple(name.split(".", 1)) for name in operation.touches() or () if "." in name}
        return bool(named & touched)

    def _may_depend_on_waiting_code(self, operation: RunPython | RunSQL) -> bool:
        tables = operation.touches()
        return any(
            # unknown tables may be any
            tables is None or waiting is None or bool(tables & waiting)
            for waiting in self.waiting_code
        )

    def _conflicts_with_waiting_field(
        self, operation: Operation, parts: PhaseParts, before: SchemaState
    ) -> bool:
        """True where the expand part meets a field that is not yet as the history has it."""
        if not (parts.expand and self._touches_waiting_field(operation)):
            return False
        if not isinstance(operation, AlterField | DropField):
            return True
        table, name = operation.table, operation.name
        known = self.state.tables.get(table)
        if known is None or name not in known.fields:
            return True
        # the file was written over the field of the history, which the database does not have yet
        return not is_same_declaration(known.fields[name], before.table(table).field(name))

    def _record_operation(self, operation: Operation, parts: PhaseParts) -> None:
        match operation:
            case CreateTable(name=name) if parts.expand:
                self.new_tables.add(name)
            case DropTable(name=name) if parts.expand:
                self.new_tables.discard(name)
            case RenameTable(old=old, new=new) if parts.expand and old in self.new_tables:
                self.new_tables ^= {old, new}
            case AddField(table=table, name=name) if parts.expand:
                self.new_fields.add((table, name))
            case RenameField(table=table, old=old, new=new) if (table, old) in self.new_fields:
                self.new_fields ^= {(table, old), (table, new)}
            case RunPython() | RunSQL() if parts.contract:
                self.waiting_code.append(operation.touches())
            case _:
                pass
        waiting = (part for part in parts.contract if isinstance(part, _FIELDS))
        self.waiting_fields |= {(part.table, part.name) for part in waiting}


def _allows_inserts_by_old_release(operation: AlterField, before: SchemaState) -> bool:
    """True where the running release, which leaves the field out, can still insert rows."""
    old, new = before.table(operation.table).field(operation.name), operation.field
    # a new unique constraint could refuse the rows of the running release
    return (new.null or new.db_default is not MISSING) and new.unique <= old.unique


_FIELDS = (AddField, AlterField, DropField)
_NEEDED = (CreateTable, AddField, AlterField, RenameField, SetOptions)
_TWICE = Refused(
    "an earlier pending file changes the same part, and a step of that waits for the running "
    "release to end",
    "apply the earlier files with `migrate` first, or make one file of both changes",
)
