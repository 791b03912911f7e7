"""Changes between two scalars, and between two choices: which parts differ, each with its rule.

str len ..80  ->  str email len ..50      format-added and bound-tightened
"a" | "b"     ->  "a" | "c"               enum-value-renamed
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from treefold_contract._relation.inclusion import Inclusion
from treefold_contract._relation.scalar_inclusion import normalize_number
from treefold_contract._relation.values import open_kinds
from treefold_contract._rules.type_change import TypeChange, TypeLaw
from treefold_contract._types.literals import format_text
from treefold_contract._types.nodes import Choice, ChoiceValue, Limits, Scalar

GROUPS = (("minimum", "above"), ("maximum", "below"), ("step",), ("min_length",), ("max_length",))
"""The attributes of `Limits` that bound one thing."""


def compare_scalars(law: TypeLaw, old: Scalar, new: Scalar) -> list[TypeChange]:
    """Return the changes between two scalars."""
    if old.kind != new.kind:
        return [law.build_change(_kind_rule(law, old, new), old, new)]
    return [
        *_compare_formats(law, old, new),
        *_compare_coercion(law, old, new),
        *_compare_limits(law, old, new),
    ]


def _kind_rule(law: TypeLaw, old: Scalar, new: Scalar) -> str:
    if law.alphabet == "text" and new.kind == "str":
        return "scalar-to-str"
    if law.alphabet == "text" and old.kind == "str":
        return "str-to-scalar"
    kinds = {("int", "float"): "int-to-float", ("float", "int"): "float-to-int"}
    return kinds.get((old.kind, new.kind), "scalar-changed")


def _compare_formats(law: TypeLaw, old: Scalar, new: Scalar) -> Iterator[TypeChange]:
    if old.format == new.format:
        return
    rule = "format-changed"
    if old.kind == "bytes":
        rule = "bytes-encoding"
    elif not old.format:
        rule = "format-added"
    elif not new.format:
        rule = "format-dropped"
    one, other = Scalar(old.kind, old.format), Scalar(old.kind, new.format)
    yield law.build_change(rule, one, other, prefer_whole(law, old, new, one, other))


def _compare_coercion(law: TypeLaw, old: Scalar, new: Scalar) -> Iterator[TypeChange]:
    if old.is_lax != new.is_lax:
        rule = "coercion-widened" if new.is_lax else "coercion-narrowed"
        one, other = Scalar(old.kind, is_lax=old.is_lax), Scalar(old.kind, is_lax=new.is_lax)
        is_seen = law.side == "request"
        yield law.build_change(rule, one, other, None if is_seen else Inclusion(True))


def _compare_limits(law: TypeLaw, old: Scalar, new: Scalar) -> Iterator[TypeChange]:
    one, other = normalize_number(old), normalize_number(new)
    for group in GROUPS:
        before = replace(one, format="", is_lax=False, limits=_keep(one.limits, group))
        after = replace(other, format="", is_lax=False, limits=_keep(other.limits, group))
        if before != after:
            rule = _bound_rule(law, before, after)
            found = prefer_whole(law, old, new, before, after)
            yield law.build_change(rule, old, new, found)
    if old.limits.pattern != new.limits.pattern:
        rule = "pattern-changed"
        if not (old.limits.pattern and new.limits.pattern):
            rule = "pattern-added" if new.limits.pattern else "pattern-removed"
        yield law.build_change(rule, old, new)


def _keep(limits: Limits, group: tuple[str, ...]) -> Limits:
    kept = Limits()
    for name in group:
        kept = replace(kept, **{name: getattr(limits, name)})
    return kept


def _bound_rule(law: TypeLaw, before: Scalar, after: Scalar) -> str:
    if before.limits == Limits():
        return "bound-added"
    if after.limits == Limits():
        return "bound-removed"
    is_wider = law.find_inclusion(before, after).holds is (law.side == "request")
    return "bound-loosened" if is_wider else "bound-tightened"


def prefer_whole(
    law: TypeLaw, old: Scalar, new: Scalar, before: Scalar, after: Scalar
) -> Inclusion:
    """Return the inclusion of a part, with a witness that the other parts allow."""
    part, whole = law.find_inclusion(before, after), law.find_inclusion(old, new)
    if whole.holds or part.holds:
        return part if part.holds else whole
    return Inclusion(part.holds, whole.witness or part.witness)


def compare_choices(law: TypeLaw, old: Choice, new: Choice) -> list[TypeChange]:
    """Return the changes between two choices; the order of values is none."""
    added, removed = new.literals - old.literals, old.literals - new.literals
    changes = list(_compare_values(law, old, new, added, removed))
    if old.is_open != new.is_open:
        rule = "enum-opened" if new.is_open else "enum-closed"
        changes.append(law.build_change(rule, old, new))
    names = {value.literal: value.name for value in old.values}
    for value in new.values:
        if names.get(value.literal, value.name) != value.name:
            texts = (names[value.literal], value.name)
            changes.append(law.build_change("enum-member-name", None, None, texts=texts))
    return changes


def _compare_values(
    law: TypeLaw, old: Choice, new: Choice, added: frozenset[str], removed: frozenset[str]
) -> Iterator[TypeChange]:
    if added and set(map(format_text, added)) == set(map(format_text, removed)):
        # in text, 1 and "1" are one value
        if law.alphabet == "json":
            yield law.build_change("enum-base", old, new)
        return
    if len(added) == len(removed) == 1:
        is_const = len(old.values) == len(new.values) == 1
        rule = "const-changed" if is_const else "enum-value-renamed"
        yield law.build_change(rule, old, new, texts=(min(removed), min(added)))
        return
    for literal in sorted(removed):
        one = Choice((ChoiceValue(literal),))
        found = law.find_inclusion(one, new) if law.side == "request" else Inclusion(True)
        yield law.build_change("enum-value-removed", one, new, found, texts=(literal, ""))
    for literal in sorted(added):
        one = Choice((ChoiceValue(literal),))
        found = law.find_inclusion(old, one) if law.side == "response" else Inclusion(True)
        yield law.build_change("enum-value-added", old, one, found, texts=("", literal))


def compare_choice_with_scalar(
    law: TypeLaw, old: Choice | Scalar, new: Choice | Scalar
) -> list[TypeChange]:
    """Return the change between a choice and a scalar: opened, closed, or of another kind."""
    if isinstance(old, Choice):
        is_same = isinstance(new, Scalar) and new.kind in {each.kind for each in open_kinds(old)}
        rule = "enum-opened"
    else:
        is_same = isinstance(new, Choice) and old.kind in {each.kind for each in open_kinds(new)}
        rule = "enum-closed"
    if not is_same and law.alphabet == "text":
        is_same = Scalar("str") in (old, new)
    return [law.build_change(rule if is_same else "scalar-changed", old, new)]
