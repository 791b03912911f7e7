"""Walks two types side by side, and returns the changes at their leaves.

    200 json User  ->  200 json User        walks the definitions of User
    [int]          ->  [int | null]         null-added at []

A definition is walked once for all types that refer to it. Where definitions refer to each other,
the walk ends at one that it is inside of; what was found of others until then is not whole, and is
kept for this walk alone. What the walk finds is held against the relation of the two types as a
whole, which has the last word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from treefold_contract._rules.record_changes import compare_records
from treefold_contract._rules.scalar_changes import (
    compare_choice_with_scalar,
    compare_choices,
    compare_scalars,
)
from treefold_contract._rules.type_change import TypeChange, TypeLaw, move_changes
from treefold_contract._rules.union_changes import compare_unions
from treefold_contract._types.nodes import (
    AnyType,
    Choice,
    Definition,
    ForeignType,
    ListType,
    MapType,
    Record,
    Reference,
    Scalar,
    TupleType,
    UnionType,
    base_name,
)

Names = tuple[str, str]
CAUSE_END = re.compile(r"[.\[{]")


@dataclass
class TypeComparer:
    """The changes of types on one side and in one alphabet.

    Attributes:
        law: what judges them.
        named: the changes of definitions that were walked.
        walked: the definitions that the walk is inside of.
        met: those of them, or of parts that are not whole, which the walk met again.
        partial: the definitions whose changes are not whole.
    """

    law: TypeLaw
    named: dict[Names, list[TypeChange]] = field(default_factory=dict[Names, list[TypeChange]])
    walked: set[Names] = field(default_factory=set[Names])
    met: set[Names] = field(default_factory=set[Names])
    partial: set[Names] = field(default_factory=set[Names])

    def compare_types(self, old: Definition, new: Definition) -> list[TypeChange]:
        """Return all changes between two types."""
        changes = self.walk(old, new)
        for names in self.partial:
            del self.named[names]
        self.partial.clear()
        self.met.clear()
        return self.hold_against_law(changes, old, new)

    def hold_against_law(
        self, changes: list[TypeChange], old: Definition, new: Definition
    ) -> list[TypeChange]:
        """Return changes that say no less than the relation of the two types."""
        found = self.law.find_inclusion(old, new)
        if found.holds is False and all(change.holds for change in changes):
            return [*changes, self.law.build_change("type-changed", old, new)]
        if found.holds is None and all(change.holds for change in changes):
            return [*changes, self.law.build_change("type-unknown", old, new)]
        return changes

    def walk(self, old: Definition, new: Definition) -> list[TypeChange]:
        """Return the changes at the leaves of two types."""
        if isinstance(old, Reference) and isinstance(new, Reference):
            return self.walk_named(old, new)
        before, after = self.law.old_view.follow(old), self.law.new_view.follow(new)
        if isinstance(before, UnionType) or isinstance(after, UnionType):
            # references to records stay references there, whose names are matched
            one = before if isinstance(before, UnionType) else old
            other = after if isinstance(after, UnionType) else new
            return compare_unions(self.law, self.walk, one, other)
        return self.walk_nodes(before, after)

    def walk_named(self, old: Reference, new: Reference) -> list[TypeChange]:
        """Return the changes between two definitions, walked once, with their cause."""
        names = (old.name, new.name)
        if names in self.walked:
            self.met.add(names)
            return []
        if names in self.partial:
            self.met.add(names)
        if names not in self.named:
            met_before, self.met = self.met, set()
            self.walked.add(names)
            self.named[names] = self.walk_definitions(old, new)
            self.walked.discard(names)
            self.met.discard(names)
            if self.met:
                self.partial.add(names)
            self.met |= met_before
        return self.named[names]

    def walk_definitions(self, old: Reference, new: Reference) -> list[TypeChange]:
        before, after = self.law.old_view.follow(old), self.law.new_view.follow(new)
        changes = [
            change if change.cause else replace(change, cause=f"{new.name}{change.pointer}")
            for change in self.walk(before, after)
            # a way that leads back to the definition finds what is found in it already
            if CAUSE_END.split(change.cause)[0] != new.name
        ]
        if base_name(old.name) != base_name(new.name):
            names = (old.name, new.name)
            renamed = self.law.build_change("type-renamed", None, None, texts=names)
            changes.append(replace(renamed, cause=new.name))
        return changes

    def walk_nodes(self, old: Definition, new: Definition) -> list[TypeChange]:
        law = self.law
        match old, new:
            case (AnyType(), AnyType()):
                return []
            case (ForeignType(), _) | (_, ForeignType()):
                return [] if old == new else [law.build_change("type-unknown", old, new)]
            case (AnyType(), _):
                return [law.build_change("type-declared", old, new)]
            case (_, AnyType()):
                return [law.build_change("type-forgotten", old, new)]
            case (Scalar(), Scalar()):
                return compare_scalars(law, old, new)
            case (Choice(), Choice()):
                return compare_choices(law, old, new)
            case (Choice(), Scalar()):
                return compare_choice_with_scalar(law, old, new)
            case (Scalar(), Choice()):
                return compare_choice_with_scalar(law, old, new)
            case (Record(), Record()):
                return compare_records(law, self.walk, old, new)
            case (Record(), MapType()):
                return [law.build_change("record-to-map", old, new)]
            case (MapType(), Record()):
                return [law.build_change("map-to-record", old, new)]
            case _:
                return self.walk_containers(old, new)

    def walk_containers(self, old: Definition, new: Definition) -> list[TypeChange]:
        law = self.law
        match old, new:
            case (ListType(), ListType()):
                return self.walk_lists(old, new)
            case (TupleType(), TupleType()):
                return self.walk_tuples(old, new)
            case (MapType(), MapType()):
                keys = move_changes(self.walk(old.key, new.key), "{}", lambda key: {str(key): None})
                values = self.walk(old.value, new.value)
                return keys + move_changes(values, "{}", lambda value: {"x": value})
            case (TupleType(), ListType()) | (ListType(), TupleType()):
                return [law.build_change("type-changed", old, new)]
            case (ListType(), _):
                rule = "param-list-to-one" if law.alphabet == "text" else "list-to-one"
                return [law.build_change(rule, old, new)]
            case (_, ListType()):
                rule = "param-one-to-list" if law.alphabet == "text" else "one-to-list"
                return [law.build_change(rule, old, new)]
            case _:
                return [law.build_change("scalar-changed", old, new)]

    def walk_lists(self, old: ListType, new: ListType) -> list[TypeChange]:
        item = self.law.select_writer(old, new)
        size = item.min_items or 1 if isinstance(item, ListType) else 1
        items = self.walk(old.item, new.item)
        changes = move_changes(items, "[]", lambda value: [value] * size)
        for before, after in (
            (ListType(old.item, old.min_items), ListType(old.item, new.min_items)),
            (ListType(old.item, None, old.max_items), ListType(old.item, None, new.max_items)),
            (
                ListType(old.item, is_unique=old.is_unique),
                ListType(old.item, is_unique=new.is_unique),
            ),
        ):
            if before != after:
                changes.append(self.law.build_change(self.size_rule(before, after), before, after))
        return changes

    def size_rule(self, before: ListType, after: ListType) -> str:
        if before == ListType(before.item):
            return "bound-added"
        if after == ListType(after.item):
            return "bound-removed"
        is_wider = self.law.find_inclusion(before, after).holds is (self.law.side == "request")
        return "bound-loosened" if is_wider else "bound-tightened"

    def walk_tuples(self, old: TupleType, new: TupleType) -> list[TypeChange]:
        if len(old.items) != len(new.items):
            return [self.law.build_change("tuple-length", old, new)]
        if old != new and sorted(map(repr, old.items)) == sorted(map(repr, new.items)):
            return [self.law.build_change("tuple-order", old, new)]
        writer = self.law.select_writer(old, new)
        changes: list[TypeChange] = []
        for index, (before, after) in enumerate(zip(old.items, new.items, strict=True)):
            found = self.walk(before, after)
            changes += move_changes(found, f"[{index}]", self.law.wrap_tuple(writer, index))
        return changes
