"""Changes between unions: null came or went, types came or went, and types that are in both.

    User | null  ->  User | Guest       null-removed and union-member-added, and changes of User

Types of the two unions are matched by name, or by kind. A change of one of them is compatible where
another type of the union accepts what it refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from treefold_contract._relation.inclusion import Inclusion
from treefold_contract._relation.view import View
from treefold_contract._rules.type_change import TypeChange, TypeLaw, Walk
from treefold_contract._types.nodes import (
    NULL,
    Choice,
    Definition,
    Record,
    Reference,
    Scalar,
    TypeNode,
    UnionType,
    base_name,
)


def compare_unions(law: TypeLaw, walk: Walk, old: Definition, new: Definition) -> list[TypeChange]:
    """Return the changes between two types of which one is a union."""
    before, after = list_options(old, law.old_view), list_options(new, law.new_view)
    changes = [*_compare_null(law, old, new, before, after), *_compare_tags(law, old, new)]
    before, after = without_null(before), without_null(after)
    one, other = match_options(before), match_options(after)
    if len(before) == len(after) == 1:
        changes += walk(before[0], after[0])
    else:
        for key in filter(other.__contains__, one):
            found = walk(one[key], other[key])
            changes += _compare_option(law, found, (old, new), (one[key], other[key]))
        removed = [option for key, option in one.items() if key not in other]
        added = [option for key, option in other.items() if key not in one]
        changes += [_build_removed(law, option, new) for option in removed]
        changes += [_build_added(law, old, option) for option in added]
        if not removed and not added:
            changes += _compare_order(law, old, new, list(one), list(other))
    changes += _compare_openness(law, old, new)
    return changes


def list_options(node: Definition, view: View) -> list[TypeNode]:
    """Return the types of a union, with those of unions in it; records stay references."""
    followed = view.follow(node)
    if isinstance(followed, UnionType):
        return [each for option in followed.options for each in list_options(option, view)]
    if isinstance(followed, Record):
        # a record is always behind a name
        return [node] if isinstance(node, Reference) else []
    return [followed]


def without_null(options: Iterable[TypeNode]) -> list[TypeNode]:
    return [option for option in options if option != NULL]


def match_options(options: Iterable[TypeNode]) -> dict[str, TypeNode]:
    """Return types by what they are matched by: the name, or the kind."""
    found: dict[str, TypeNode] = {}
    for option in options:
        key = option_key(option)
        while key in found:
            key += "+"
        found[key] = option
    return found


def option_key(option: TypeNode) -> str:
    match option:
        case Reference(name):
            return base_name(name)
        case Scalar(kind):
            return kind
        case _:
            return type(option).__name__


def _compare_null(
    law: TypeLaw,
    old: Definition,
    new: Definition,
    before: list[TypeNode],
    after: list[TypeNode],
) -> list[TypeChange]:
    if (NULL in before) == (NULL in after):
        return []
    if NULL in after:
        found = law.find_inclusion(old, NULL) if law.side == "response" else Inclusion(True)
        return [law.build_change("null-added", old, new, found)]
    found = law.find_inclusion(NULL, new) if law.side == "request" else Inclusion(True)
    return [law.build_change("null-removed", old, new, found)]


def _compare_tags(law: TypeLaw, old: Definition, new: Definition) -> list[TypeChange]:
    before = old.tag if isinstance(old, UnionType) else ""
    after = new.tag if isinstance(new, UnionType) else ""
    if before == after or not (isinstance(old, UnionType) and isinstance(new, UnionType)):
        return []
    rule = "union-tag-renamed"
    if not (before and after):
        rule = "union-tag-added" if after else "union-tag-removed"
    return [law.build_change(rule, old, new, texts=(before, after))]


def _compare_option(
    law: TypeLaw,
    changes: list[TypeChange],
    unions: tuple[Definition, Definition],
    options: tuple[TypeNode, TypeNode],
) -> list[TypeChange]:
    """Return the changes of one type of a union, compatible where the union accepts them."""
    if not any(change.verdict == "breaking" for change in changes):
        return changes
    if law.side == "request":
        found = law.find_inclusion(options[0], unions[1])
    else:
        found = law.find_inclusion(unions[0], options[1])
    if found.holds is False:
        return changes
    return [
        replace(change, verdict="compatible" if found.holds else "warning", holds=found.holds)
        if change.verdict == "breaking"
        else change
        for change in changes
    ]


def _build_removed(law: TypeLaw, option: TypeNode, new: Definition) -> TypeChange:
    found = law.find_inclusion(option, new) if law.side == "request" else Inclusion(True)
    return law.build_change("union-member-removed", option, None, found)


def _build_added(law: TypeLaw, old: Definition, option: TypeNode) -> TypeChange:
    found = law.find_inclusion(old, option) if law.side == "response" else Inclusion(True)
    return law.build_change("union-member-added", None, option, found)


def _compare_order(
    law: TypeLaw, old: Definition, new: Definition, before: list[str], after: list[str]
) -> list[TypeChange]:
    """Return the change of an order in which types are tried, where one value is of two of them."""
    if law.side == "response" or before == after or not isinstance(new, UnionType) or new.tag:
        return []
    options = list_options(new, law.new_view)
    if len({_json_kind(option, law.new_view) for option in options}) == len(options):
        return []
    return [law.build_change("union-order", old, new)]


def _json_kind(option: TypeNode, view: View) -> str:
    match view.follow(option):
        case Scalar(kind):
            return {"int": "number", "float": "number"}.get(kind, kind)
        case Choice():
            return "str"
        case Record():
            return "object"
        case followed:
            return type(followed).__name__


def _compare_openness(law: TypeLaw, old: Definition, new: Definition) -> list[TypeChange]:
    before = isinstance(old, UnionType) and old.is_open
    after = isinstance(new, UnionType) and new.is_open
    if before == after:
        return []
    return [law.build_change("enum-opened" if after else "enum-closed", old, new)]
