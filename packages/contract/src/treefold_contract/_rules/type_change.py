"""One change inside a type, and the law that judges it.

The law is the same for all rules: clients write requests and read answers, and a change breaks the
promise if the reader does not accept what the writer sends. In a request the new type reads what
old clients write; in an answer old clients read what the new type writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from treefold_contract._relation.inclusion import Inclusion, Inclusions, Witness
from treefold_contract._relation.samples import sample_values, smallest_record
from treefold_contract._relation.view import View
from treefold_contract._rules.rule_table import RULES, Verdict, fixed_verdict, law_verdict
from treefold_contract._text.type_text import write_type
from treefold_contract._types.nodes import (
    Alphabet,
    Definition,
    Definitions,
    JsonValue,
    Record,
    Side,
)


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A change at one place of a type.

    Attributes:
        rule: the id of the rule.
        pointer: the place inside the type, such as `.mail` or `[].id`.
        old: the text before; empty for nothing.
        new: the text after.
        verdict: what it means for clients.
        holds: True if the reader accepts all that the writer sends, by the law.
        witness: a value at the place that the reader refuses.
        cause: the named type and the place in it, for one finding of all routes that use it.
    """

    rule: str
    pointer: str
    old: str
    new: str
    verdict: Verdict
    holds: bool | None
    witness: Witness | None = None
    cause: str = ""


Walk: TypeAlias = Callable[[Definition, Definition], list[TypeChange]]
Wrap: TypeAlias = Callable[[JsonValue], JsonValue]


@dataclass
class TypeLaw:
    """The law on one side and in one alphabet, between two states of the definitions."""

    side: Side
    alphabet: Alphabet
    old_definitions: Definitions
    new_definitions: Definitions

    @cached_property
    def old_view(self) -> View:
        return View(self.side, self.alphabet, self.old_definitions)

    @cached_property
    def new_view(self) -> View:
        return View(self.side, self.alphabet, self.new_definitions)

    @cached_property
    def writer_view(self) -> View:
        """Where the values come from: old clients, or the new service."""
        return self.old_view if self.side == "request" else self.new_view

    @cached_property
    def inclusions(self) -> Inclusions:
        reader = self.new_view if self.side == "request" else self.old_view
        return Inclusions(reader=reader, writer=self.writer_view)

    def find_inclusion(self, old: Definition, new: Definition) -> Inclusion:
        """Return whether the reader of the two accepts all that the writer sends."""
        if self.side == "request":
            return self.inclusions.find(new, old)
        return self.inclusions.find(old, new)

    def select_writer(self, old: Definition, new: Definition) -> Definition:
        """Return the one of two types that values come from."""
        return old if self.side == "request" else new

    def build_change(
        self,
        rule: str,
        old: Definition | None,
        new: Definition | None,
        found: Inclusion | None = None,
        *,
        texts: tuple[str, str] | None = None,
    ) -> TypeChange:
        """Return a change, judged by the law or by the table."""
        if found is None and old is not None and new is not None:
            found = self.find_inclusion(old, new)
        found = found or Inclusion(True)
        row = RULES[rule]
        verdict = law_verdict(found.holds) if row.is_law else fixed_verdict(rule, self.side)
        before, after = texts or (write_definition(old), write_definition(new))
        witness = found.witness if verdict != "compatible" else None
        return TypeChange(rule, "", before, after, verdict, found.holds, witness)

    def wrap_record(self, record: Definition, name: str) -> Wrap:
        """Return how a value of a member becomes a record that can be sent."""

        def build_record(value: JsonValue) -> JsonValue:
            if not isinstance(record, Record):
                return None
            smallest = smallest_record(record, self.writer_view)
            return None if smallest is None else {**smallest, name: value}

        return build_record

    def wrap_tuple(self, node: Definition, index: int) -> Wrap:
        """Return how a value of an item becomes a tuple that can be sent."""

        def build_tuple(value: JsonValue) -> JsonValue:
            for sample in sample_values(node, self.writer_view):
                if isinstance(sample, list):
                    return [*sample[:index], value, *sample[index + 1 :]]
            return None

        return build_tuple


def move_changes(
    changes: Iterable[TypeChange], pointer: str, wrap: Wrap | None = None
) -> list[TypeChange]:
    """Return changes as they are seen from a type around theirs."""
    return [
        replace(change, pointer=pointer + change.pointer, witness=_wrap_witness(change, wrap))
        for change in changes
    ]


def _wrap_witness(change: TypeChange, wrap: Wrap | None) -> Witness | None:
    if change.witness is None or wrap is None:
        return change.witness
    value = wrap(change.witness.value)
    # of the values that are wrapped here none is null
    return None if value is None else Witness(value)


def write_definition(node: Definition | None) -> str:
    """Return the text of a type in a finding."""
    if node is None:
        return ""
    if isinstance(node, Record):
        names = ", ".join(member.name for member in node.members)
        return f"record of {names}" if names else "empty record"
    return write_type(node)
