"""Units: the steps of one file in one direction, grouped into transactions.

A unit is a step of SQL or a call of Python. Consecutive transactional units share a transaction;
the others stand alone, and the journal keeps how many units are complete. Guards are no units of
their own: they belong to the unit that they run before.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from treefold_migrations._plan.step import Step
from treefold_migrations._records.records import Direction, Progress
from treefold_migrations._state.schema_state import SchemaState, TableState


@dataclass(frozen=True, slots=True)
class SqlUnit:
    """A step of SQL; `again` is True where it may run again after an interruption."""

    step: Step
    operation: int
    again: bool = True
    guards: tuple[Step, ...] = ()

    @property
    def transactional(self) -> bool:
        """True if the step runs in the transaction of the file."""
        return self.step.transactional

    @property
    def blocking(self) -> bool:
        """True where others wait for the locks that the step takes."""
        return self.step.blocks_writers

    @property
    def summary(self) -> str:
        """One line for people."""
        return self.step.summary or " ".join(self.step.sql.split())[:80]

    @property
    def hidden(self) -> bool:
        """True for a part of another step, which plans and progress leave out."""
        return self.step.hidden

    @property
    def identity_text(self) -> str:
        """The parts by which two units are equal."""
        # a summary may be worded in another way by the version that goes on with the file
        return self.step.sql


@dataclass(frozen=True, slots=True)
class PythonUnit:
    """A call of a function with the models of a state, and of tables in other databases."""

    function: Callable[..., Any]
    state: SchemaState
    operation: int
    transactional: bool
    summary: str
    hidden: bool = False
    guards: tuple[Step, ...] = ()
    elsewhere: tuple[TableState, ...] = ()
    blocking = False

    @property
    def identity_text(self) -> str:
        """The parts by which two units are equal."""
        return f"python {self.function.__qualname__}"


Unit = SqlUnit | PythonUnit


@dataclass(frozen=True, slots=True)
class FileRun:
    """One file to be run in one direction, or the part of it that one phase runs.

    `hash` covers the file and those before it. `recorded` are the names of its records; more than
    one where a squashed file stands for files that were applied. `undo` is the number of operations
    that are taken back of a file that was never completed, -1 for any other run, `origin` where
    that file stood, and `kept` what cannot be taken back of it. `digests` has one of each unit.
    `shown` are the places of the units that plans and progress count, of all that the file has.
    `fills` are the values that a rollback was given for this file, `sizes` the bytes of tables that
    a plan names, because every row is handled under a lock.
    `phase` is empty for a whole file; of an expanded one, and of one to be, `parts` are the letters
    of its operations. `base` is the row of the journal that the run ends with instead of none.
    `database` is the alias that a command ran it on.
    """

    name: str
    hash: str
    direction: Direction
    units: tuple[Unit, ...]
    plan: str
    recorded: tuple[str, ...]
    undo: int = -1
    shown: tuple[int, ...] = ()
    digests: tuple[str, ...] = ()
    origin: Progress | None = None
    kept: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    phase: Literal["", "expand", "contract"] = ""
    parts: str = ""
    base: Progress | None = None
    fills: tuple[str, ...] = ()
    database: str = ""

    @property
    def unit_count(self) -> int:
        """The number of units."""
        return len(self.units)

    def find_displayed_step_number(self, unit_index: int) -> int:
        """Return the number that people read for a unit: of itself, or of the one it is part of."""
        return max(bisect_right(self.shown, unit_index), 1)


def build_file_run(
    name: str,
    hash_: str,
    direction: Direction,
    units: Sequence[Unit],
    *,
    recorded: Sequence[str] | None = None,
    undone_operation_count: int = -1,
    extract_code: Callable[[str], str] | None = None,
) -> FileRun:
    """Return the run of a file; `extract_code` returns the code of a function of the file by its
    name.
    """
    digest = hashlib.sha256()
    for unit in units:
        # the separator keeps "ab", "c" apart from "a", "bc"
        digest.update(unit.identity_text.encode() + b"\0")
    digests = tuple(_compute_unit_digest(unit, extract_code) for unit in units)
    names = (name,) if recorded is None else tuple(recorded)
    plan = digest.hexdigest()[:16]
    shown = tuple(place for place, unit in enumerate(units) if not unit.hidden)
    shown = shown or tuple(range(len(units)))
    return FileRun(
        name, hash_, direction, tuple(units), plan, names, undone_operation_count, shown, digests
    )


def _compute_unit_digest(unit: Unit, extract_code: Callable[[str], str] | None) -> str:
    text = unit.identity_text
    if isinstance(unit, PythonUnit) and extract_code is not None:
        # by its name alone, a function that was corrected would be the one that has run
        text += "\0" + extract_code(unit.function.__name__)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def find_transaction_group(units: tuple[Unit, ...], start_index: int) -> tuple[Unit, ...]:
    """Return the units from `start_index` on that share a transaction, or the one that stands
    alone.

    A unit with guards begins a transaction where the one before has locks that others wait for.
    """
    end, blocking = start_index + 1, units[start_index].blocking
    if units[start_index].transactional:
        while end < len(units) and units[end].transactional:
            # the commit gives the locks back before the rows are read
            if blocking and units[end].guards:
                break
            blocking = blocking or units[end].blocking
            end += 1
    return units[start_index:end]


def needs_several_transactions(units: Sequence[Unit]) -> bool:
    """True for units that are not one transaction."""
    whole = tuple(units)
    return bool(whole) and (
        not whole[0].transactional or len(find_transaction_group(whole, 0)) < len(whole)
    )


def find_places_of_same_step(units: tuple[Unit, ...], unit_index: int) -> list[int]:
    """Return the places of the units that are one step with that at `unit_index`: a rebuild is done
    as a whole or not at all, since without its copy of the rows it would lose them.
    """
    unit = units[unit_index]
    known = unit.step.known if isinstance(unit, SqlUnit) else None
    if not unit.hidden and (known is None or known.dropping):
        return [unit_index]
    first = last = unit_index
    while first and units[first - 1].operation == unit.operation and units[first - 1].transactional:
        first -= 1
    while last + 1 < len(units) and units[last + 1].operation == unit.operation:
        if not units[last + 1].transactional:
            break
        last += 1
    return list(range(first, last + 1))
