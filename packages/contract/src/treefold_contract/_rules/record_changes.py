"""Changes between two records: which members came, went or changed, each with its rule.

The presence of a member is judged on records of it alone, so that each finding has a witness of its
own; the other required members are filled in from the writer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from treefold_contract._relation.inclusion import Inclusion
from treefold_contract._relation.samples import smallest_record
from treefold_contract._rules.type_change import TypeChange, TypeLaw, Walk, move_changes
from treefold_contract._types.nodes import (
    NULL,
    JsonValue,
    Member,
    Record,
    TypeNode,
    UnionType,
)


def compare_records(law: TypeLaw, walk: Walk, old: Record, new: Record) -> list[TypeChange]:
    """Return the changes between two records."""
    before = {member.name: member for member in old.members}
    after = {member.name: member for member in new.members}
    removed = [member for name, member in before.items() if name not in after]
    added = [member for name, member in after.items() if name not in before]
    changes: list[TypeChange] = []
    if renamed := _find_renamed(law, new, removed, added):
        changes += _place(law, old, new, renamed[1].name, [_build_renamed(law, old, new, *renamed)])
        removed, added = [], []
    for member in removed:
        changes += _place(law, old, new, member.name, [_build_removed(law, new, member)])
    for member in added:
        changes += _place(law, old, new, member.name, [_build_added(law, member)])
    for name in filter(after.__contains__, before):
        changes += _compare_members(law, walk, (old, new), before[name], after[name])
    if old.is_closed != new.is_closed:
        changes.append(_build_closed(law, old, new))
    return changes


def _place(
    law: TypeLaw, old: Record, new: Record, name: str, changes: list[TypeChange]
) -> list[TypeChange]:
    """Return changes of the presence of a member: witnesses are records with it or without."""
    writer = law.select_writer(old, new)

    def fill_record(value: JsonValue) -> JsonValue:
        if not isinstance(writer, Record) or not isinstance(value, dict):
            return None
        smallest = smallest_record(writer, law.writer_view)
        if smallest is None:
            return None
        return {key: each for key, each in smallest.items() if key != name} | value

    return move_changes(changes, f".{name}", fill_record)


def _find_renamed(
    law: TypeLaw, new: Record, removed: list[Member], added: list[Member]
) -> tuple[Member, Member] | None:
    """Return the one member that became another of the same type, if clients notice it."""
    if len(removed) != 1 or len(added) != 1 or removed[0].type != added[0].type:
        return None
    if law.side == "response":
        is_noticed = removed[0].is_required("response")
    else:
        is_noticed = added[0].is_required("request") or new.is_closed
    return (removed[0], added[0]) if is_noticed else None


def _build_renamed(
    law: TypeLaw, old: Record, new: Record, before: Member, after: Member
) -> TypeChange:
    one, other = Record((before,), new.is_closed), Record((after,), new.is_closed)
    found = law.find_inclusion(one, other)
    return law.build_change("field-renamed", one, other, found, texts=(before.name, after.name))


def _build_removed(law: TypeLaw, new: Record, member: Member) -> TypeChange:
    one, other = Record((member,), new.is_closed), Record((), new.is_closed)
    rule = "field-removed"
    if law.side == "request" and not new.is_closed:
        rule = "field-removed-ignored"
    elif law.side == "response" and not member.is_required("response"):
        rule = "field-removed-optional"
    change = law.build_change(rule, member.type, None, law.find_inclusion(one, other))
    return change


def _build_added(law: TypeLaw, member: Member) -> TypeChange:
    is_required = member.is_required(law.side)
    rule = "field-added-required" if is_required else "field-added-optional"
    found = law.find_inclusion(Record(()), Record((member,)))
    return law.build_change(rule, None, member.type, found if is_required else Inclusion(True))


def _build_closed(law: TypeLaw, old: Record, new: Record) -> TypeChange:
    rule = "record-closed" if new.is_closed else "record-opened"
    found = law.find_inclusion(replace(old, is_closed=False), replace(old, is_closed=True))
    is_noticed = law.side == "request" and new.is_closed
    found = found if is_noticed else Inclusion(True)
    return law.build_change(rule, old, new, found, texts=(_closed_word(old), _closed_word(new)))


def _closed_word(record: Record) -> str:
    return "closed" if record.is_closed else "open"


def _compare_members(
    law: TypeLaw, walk: Walk, records: tuple[Record, Record], before: Member, after: Member
) -> list[TypeChange]:
    name = before.name
    if is_null_for_absent(before, after) or is_null_for_absent(after, before):
        found = law.find_inclusion(Record((before,)), Record((after,)))
        texts = (_presence(before), _presence(after))
        change = law.build_change("null-instead-of-absent", None, None, found, texts=texts)
        return _place(law, *records, name, [change])
    presence = list(_compare_presence(law, before, after))
    writer = law.select_writer(*records)
    return [
        *_place(law, *records, name, presence),
        *move_changes(walk(before.type, after.type), f".{name}", law.wrap_record(writer, name)),
    ]


def _compare_presence(law: TypeLaw, before: Member, after: Member) -> Iterator[TypeChange]:
    one, other = before.is_required(law.side), after.is_required(law.side)
    if one != other:
        rule = "field-required" if other else "field-optional"
        if rule == "field-optional" and law.side == "response" and before.default == after.default:
            rule = "field-default-unsent" if after.default else rule
        # the type is compared by itself, and of one type any change of presence is the whole
        old, new = Record((before,)), Record((replace(after, type=before.type),))
        texts = (_presence(before), _presence(after))
        yield law.build_change(rule, None, None, law.find_inclusion(old, new), texts=texts)
    if before.default and after.default and before.default != after.default:
        texts = (f"= {before.default}", f"= {after.default}")
        yield law.build_change("field-default-changed", None, None, texts=texts)


def is_null_for_absent(before: Member, after: Member) -> bool:
    """Return True if a member that could be absent is always there, and may be null."""
    return (
        before.is_optional
        and not after.is_optional
        and not after.default
        and not is_nullable(before.type)
        and is_nullable(after.type)
    )


def is_nullable(node: TypeNode) -> bool:
    """Return True for null, and a union with it."""
    return node == NULL or (isinstance(node, UnionType) and NULL in node.options)


def _presence(member: Member) -> str:
    if member.is_optional:
        return "optional"
    null = " or null" if is_nullable(member.type) else ""
    return f"default {member.default}{null}" if member.default else f"required{null}"
