"""Inclusion: True if a reader accepts all that a writer sends, else a value that it refuses.

    reader int, writer float        False, witness 0.5
    reader str, writer uuid         True
    reader any pattern, another     None: not known

Clients write requests and read answers. A change is compatible if the reader of after or before
accepts all that the writer of before or after sends; both relations of two types follow from that.
Each witness is confirmed: the writer has it, and the reader refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from treefold_contract._relation.samples import ANYTHING, TEXTS, sample_values, scalar_edges
from treefold_contract._relation.scalar_inclusion import enumerate_scalar, is_scalar_within
from treefold_contract._relation.values import has_value, open_kinds
from treefold_contract._relation.view import View
from treefold_contract._types.literals import format_text, read_literal
from treefold_contract._types.nodes import (
    NULL,
    AnyType,
    Choice,
    Definition,
    ForeignType,
    JsonValue,
    ListType,
    MapType,
    Record,
    Reference,
    Scalar,
    TupleType,
    UnionType,
)

UNKNOWN_MEMBER = "unknown"


@dataclass(frozen=True, slots=True)
class Witness:
    """A value that the writer sends and the reader refuses."""

    value: JsonValue


@dataclass(frozen=True, slots=True)
class Inclusion:
    """True if the reader accepts all, and None where that is not known."""

    holds: bool | None
    witness: Witness | None = None


YES = Inclusion(True)
NOT_KNOWN = Inclusion(None)
Pair: TypeAlias = tuple[Definition, Definition]


@dataclass
class Inclusions:
    """Inclusions between the types of two views; equal questions are answered once.

    Recursive types are assumed to be included where the same question is met again. An answer that
    rests on such an assumption is not kept, unless it is no.
    """

    reader: View
    writer: View
    known: dict[Pair, Inclusion] = field(default_factory=dict[Pair, Inclusion])
    open_pairs: set[Pair] = field(default_factory=set[Pair])

    def __post_init__(self) -> None:
        self.reader = replace(self.reader, is_reader=True)

    def find(self, reader: Definition, writer: Definition) -> Inclusion:
        """Return whether one type accepts all values of another."""
        pair = (reader, writer)
        if pair in self.known:
            return self.known[pair]
        if pair in self.open_pairs:
            return YES
        self.open_pairs.add(pair)
        found = self.decide(self.reader.follow(reader), self.writer.follow(writer))
        self.open_pairs.discard(pair)
        if not self.open_pairs or found.holds is False:
            self.known[pair] = found
        return found

    def decide(self, reader: Definition, writer: Definition) -> Inclusion:
        """Return the inclusion of two types that are no references."""
        if is_anything(reader, self.reader):
            return YES
        if is_anything(writer, self.writer):
            drawn = ANYTHING if self.writer.alphabet == "json" else TEXTS
            return self.refuse(reader, AnyType(), drawn)
        if any(isinstance(each, (ForeignType, Reference)) for each in (reader, writer)):
            return YES if reader == writer else NOT_KNOWN
        if writer == NULL and self.writer.alphabet == "text":
            return YES  # no text is null
        if isinstance(writer, UnionType):
            return combine(self.find(reader, option) for option in writer.options)
        if isinstance(writer, Choice):
            return self.include_choice(reader, writer)
        if (few := self.enumerate(writer)) is not None and not has_foreign(reader, self.reader):
            refused = [value for value in few if not has_value(reader, value, self.reader)]
            return Inclusion(False, Witness(refused[0])) if refused else YES
        if isinstance(reader, UnionType):
            return self.include_in_union(reader, writer)
        if isinstance(reader, Choice):
            return self.include_in_choice(reader, writer)
        return self.include_same_kind(reader, writer)

    def enumerate(self, writer: Definition) -> list[JsonValue] | None:
        if self.writer.alphabet == "json" and isinstance(writer, Scalar):
            return enumerate_scalar(writer)
        return None

    def refuse(
        self, reader: Definition, writer: Definition, values: Iterable[JsonValue]
    ) -> Inclusion:
        """Return that a reader does not accept all, with the first value that shows it."""
        return Inclusion(False, self.confirm(reader, writer, values))

    def confirm(
        self, reader: Definition, writer: Definition, values: Iterable[JsonValue]
    ) -> Witness | None:
        for value in values:
            if has_value(writer, value, self.writer) and not has_value(reader, value, self.reader):
                return Witness(value)
        return None

    def refuse_samples(self, reader: Definition, writer: Definition) -> Inclusion:
        return self.refuse(reader, writer, sample_values(writer, self.writer))

    def include_choice(self, reader: Definition, writer: Choice) -> Inclusion:
        for each in writer.values:
            is_text = self.writer.alphabet == "text"
            value = format_text(each.literal) if is_text else read_literal(each.literal)
            if not has_value(reader, value, self.reader):
                known = not has_foreign(reader, self.reader)
                return Inclusion(False, Witness(value)) if known else NOT_KNOWN
        if not writer.is_open:
            return YES
        return combine(self.find(reader, kind) for kind in open_kinds(writer))

    def include_in_choice(self, reader: Choice, writer: Definition) -> Inclusion:
        if reader.is_open:
            for kind in open_kinds(reader):
                if self.find(kind, writer).holds:
                    return YES
        return self.refuse_samples(reader, writer)

    def include_in_union(self, reader: UnionType, writer: Definition) -> Inclusion:
        if reader.tag and isinstance(writer, Record):
            member = writer.get_member(reader.tag)
            if member is None or not member.is_required(self.writer.side):
                return self.refuse_samples(reader, writer)
        answers = [self.find(option, writer) for option in reader.options]
        if any(answer.holds for answer in answers):
            return YES
        found = [answer.witness.value for answer in answers if answer.witness]
        witness = self.confirm(reader, writer, [*found, *sample_values(writer, self.writer)])
        if witness:
            return Inclusion(False, witness)
        # each option refuses a value that another accepts, or no value is known
        return NOT_KNOWN if found or any(each.holds is None for each in answers) else answers[0]

    def include_same_kind(self, reader: Definition, writer: Definition) -> Inclusion:
        match reader, writer:
            case Scalar(), Scalar():
                return self.include_scalar(reader, writer)
            case ListType(), ListType():
                return self.include_list(reader, writer)
            case ListType(), Scalar() if self.reader.alphabet == "text":
                if (reader.min_items or 0) <= 1 and reader.max_items != 0:
                    return self.find(reader.item, writer)
                return self.refuse_samples(reader, writer)
            case TupleType(), TupleType() if len(reader.items) == len(writer.items):
                return self.include_tuple(reader, writer)
            case ListType(), TupleType():
                return self.include_tuple_in_list(reader, writer)
            case MapType(), MapType():
                return self.include_map(reader, writer)
            case Record(), Record():
                return self.include_record(reader, writer)
            case MapType(), Record():
                return self.include_record_in_map(reader, writer)
            case _:
                return self.refuse_samples(reader, writer)

    def include_scalar(self, reader: Scalar, writer: Scalar) -> Inclusion:
        if self.writer.side == "response":  # a service writes no text for a value
            reader, writer = replace(reader, is_lax=False), replace(writer, is_lax=False)
        if is_scalar_within(writer, reader, self.reader.alphabet):
            return YES
        witness = self.confirm(reader, writer, scalar_edges(self.writer, writer, reader))
        return Inclusion(False, witness) if witness else NOT_KNOWN

    def include_list(self, reader: ListType, writer: ListType) -> Inclusion:
        if writer.max_items == 0:
            return YES if not reader.min_items else Inclusion(False, Witness([]))
        item = self.find(reader.item, writer.item)
        if item.holds is not True:
            if item.witness is None:
                return item
            values = self.fill_lists(writer, item.witness.value)
            return self.refuse(reader, writer, values)
        if are_sizes_within(writer, reader):
            return YES
        items = sample_values(writer.item, self.writer)
        drawn = (each for value in items[:1] for each in self.fill_lists(writer, value, reader))
        distinct = [items[:size] for size in range(len(items) + 1)]
        return self.refuse(reader, writer, [*drawn, *distinct])

    def fill_lists(
        self, writer: ListType, value: JsonValue, reader: ListType | None = None
    ) -> Iterator[list[JsonValue]]:
        """Yield lists of a value, of the sizes around the limits."""
        limits = [1, writer.min_items, writer.max_items]
        limits += [reader.min_items, reader.max_items] if reader else []
        sizes = {size for each in limits if each is not None for size in (each, each + 1, each - 1)}
        others = [each for each in sample_values(writer.item, self.writer) if each != value]
        for size in sorted(size for size in {*sizes, 0, 2} if 0 <= size <= 1000):
            yield ([value, *others] if writer.is_unique else [value] * size)[:size]

    def include_tuple(self, reader: TupleType, writer: TupleType) -> Inclusion:
        values = sample_values(writer, self.writer)
        for index, (one, other) in enumerate(zip(reader.items, writer.items, strict=True)):
            found = self.find(one, other)
            if found.holds is True:
                continue
            if found.witness and values and isinstance(first := values[0], list):
                value = [*first[:index], found.witness.value, *first[index + 1 :]]
                return self.refuse(reader, writer, [value])
            return found
        return YES

    def include_tuple_in_list(self, reader: ListType, writer: TupleType) -> Inclusion:
        size = len(writer.items)
        as_list = ListType(reader.item, size, size)
        if not are_sizes_within(as_list, ListType(reader.item, reader.min_items, reader.max_items)):
            return self.refuse_samples(reader, writer)
        found = combine(self.find(reader.item, item) for item in writer.items)
        if found.holds is True and not reader.is_unique:
            return YES
        return self.refuse_samples(reader, writer) if found.holds is not None else found

    def include_map(self, reader: MapType, writer: MapType) -> Inclusion:
        keys = sample_values(writer.key, self.writer)
        if isinstance(writer.key, AnyType) or reader.key != writer.key:
            found = self.find(reader.key, writer.key)
            if found.holds is not True:
                return self.refuse_samples(reader, writer) if found.holds is False else found
        found = self.find(reader.value, writer.value)
        if found.holds is True or found.witness is None:
            return found
        return self.refuse(reader, writer, [{str(key): found.witness.value} for key in keys])

    def include_record(self, reader: Record, writer: Record) -> Inclusion:
        side = self.writer.side
        unknown = False
        for member in reader.members:
            sent = writer.get_member(member.name)
            if member.is_required(side) and (sent is None or not sent.is_required(side)):
                records = self.sample_records(writer)
                return self.refuse(reader, writer, [without(each, member.name) for each in records])
            if sent is None:
                continue
            found = self.find(member.type, sent.type)
            if found.holds is False:
                values = [found.witness.value] if found.witness else []
                records = self.sample_records(writer) if values else []
                drawn = [{**each, member.name: value} for each in records for value in values]
                return self.refuse(reader, writer, drawn)
            unknown |= found.holds is None
        if side == "request" and reader.is_closed:
            extra = [each.name for each in writer.members if reader.get_member(each.name) is None]
            if extra or not writer.is_closed:
                records = self.sample_records(writer)
                drawn = [{**each, UNKNOWN_MEMBER: 0} for each in records]
                return self.refuse(reader, writer, [*records, *drawn])
        return NOT_KNOWN if unknown else YES

    def sample_records(self, writer: Record) -> list[dict[str, JsonValue]]:
        return [each for each in sample_values(writer, self.writer) if isinstance(each, dict)]

    def include_record_in_map(self, reader: MapType, writer: Record) -> Inclusion:
        found = combine(self.find(reader.value, member.type) for member in writer.members)
        is_junk = self.writer.side == "request" and not writer.is_closed
        names = [member.name for member in writer.members]
        if found.holds is True and not is_junk and reader.key == Scalar("str"):
            return YES
        samples = self.sample_records(writer)
        junk = [{**each, UNKNOWN_MEMBER: value} for each in samples[:1] for value in ANYTHING]
        value = [found.witness.value] if found.witness else []
        values = [{**each, name: one} for each in samples for name in names for one in value]
        witness = self.confirm(reader, writer, [*samples, *values, *(junk if is_junk else [])])
        if witness or found.holds is False:
            return Inclusion(False, witness)
        return YES if found.holds is True else NOT_KNOWN


def combine(found: Iterable[Inclusion]) -> Inclusion:
    """Return the worst of several inclusions: no before unknown, with a witness if there is one."""
    worst = YES
    for each in found:
        if each.holds is False and (worst.holds is not False or each.witness):
            worst = each
            if each.witness:
                break
        elif each.holds is None and worst.holds:
            worst = each
    return worst


def without(value: dict[str, JsonValue], name: str) -> dict[str, JsonValue]:
    return {key: each for key, each in value.items() if key != name}


def are_sizes_within(inner: ListType, outer: ListType) -> bool:
    """Return True if lists of the sizes of one are of the sizes of another, and as unique."""
    is_least = (inner.min_items or 0) >= (outer.min_items or 0)
    is_most = outer.max_items is None or (
        inner.max_items is not None and inner.max_items <= outer.max_items
    )
    is_unique = inner.is_unique or not outer.is_unique or (inner.max_items or 2) <= 1
    return is_least and is_most and is_unique


def is_anything(node: Definition, view: View) -> bool:
    """Return True for a type with any value; in an answer, an open union is one."""
    if isinstance(node, UnionType):
        return node.is_open and view.side == "response"
    return isinstance(node, AnyType)


def has_foreign(node: Definition, view: View) -> bool:
    """Return True for a foreign type, or a union with one."""
    node = view.follow(node)
    if isinstance(node, UnionType):
        return any(has_foreign(option, view) for option in node.options)
    return isinstance(node, (ForeignType, Reference))
