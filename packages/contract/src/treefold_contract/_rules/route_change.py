"""One change of the facts of a route, and the two locks that are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TypeAlias

from treefold_contract._facts.facts import Lock, RouteFacts, VersionFacts
from treefold_contract._rules.rule_table import Verdict, fixed_verdict
from treefold_contract._rules.type_change import TypeChange, TypeLaw
from treefold_contract._rules.type_comparer import TypeComparer
from treefold_contract._types.literals import write_literal
from treefold_contract._types.nodes import Alphabet, Definition, Side, TypeNode, referenced_names


@dataclass(frozen=True, slots=True)
class Change:
    """A change at one place.

    Attributes:
        rule: the id of the rule.
        place: the route and the place in it, such as `GET /v1/user 200 .mail`.
        old: the text before; empty for nothing.
        new: the text after.
        verdict: what it means for clients.
        witness: a value as JSON, or a request, which shows it; empty without one.
        cause: the named type and the place in it, for one finding of all routes that use it.
        version: the version of the route; empty outside of versions.
    """

    rule: str
    place: str
    old: str
    new: str
    verdict: Verdict
    witness: str = ""
    cause: str = ""
    version: str = ""


Question: TypeAlias = tuple[Side, Alphabet, Definition, Definition]


@dataclass
class Comparison:
    """Two locks, and what is known about the types of both.

    Attributes:
        old: the lock before.
        new: the lock after.
        today: the day on which sunsets are judged.
        min_notice_days: the notice that a sunset must give.
    """

    old: Lock
    new: Lock
    today: date
    min_notice_days: int = 0
    comparers: dict[tuple[Side, Alphabet], TypeComparer] = field(
        default_factory=dict[tuple[Side, Alphabet], TypeComparer]
    )
    known: dict[Question, list[TypeChange]] = field(
        default_factory=dict[Question, "list[TypeChange]"]
    )
    changed_names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.changed_names = find_changed_names(self.old, self.new)

    def compare_types(
        self, side: Side, alphabet: Alphabet, old: TypeNode, new: TypeNode
    ) -> list[TypeChange]:
        """Return the changes between two types, found once for all places that have them."""
        if old == new and self.changed_names.isdisjoint(referenced_names(old)):
            return []
        question: Question = (side, alphabet, old, new)
        if question not in self.known:
            self.known[question] = self._find_comparer(side, alphabet).compare_types(old, new)
        return self.known[question]

    def _find_comparer(self, side: Side, alphabet: Alphabet) -> TypeComparer:
        key: tuple[Side, Alphabet] = (side, alphabet)
        if key not in self.comparers:
            definitions = (self.old.definitions, self.new.definitions)
            self.comparers[key] = TypeComparer(TypeLaw(side, alphabet, *definitions))
        return self.comparers[key]


def find_changed_names(old: Lock, new: Lock) -> frozenset[str]:
    """Return the names of all definitions that differ, or lead to one that does."""
    keys = {*old.definitions, *new.definitions}
    changed = {
        key.partition(" ")[0]
        for key in keys
        if old.definitions.get(key) != new.definitions.get(key)
    }
    if not changed:
        return frozenset()
    inner: dict[str, set[str]] = {}
    for lock in (old, new):
        for key, definition in lock.definitions.items():
            inner.setdefault(key.partition(" ")[0], set()).update(referenced_names(definition))
    while more := {name for name, names in inner.items() if names & changed} - changed:
        changed |= more
    return frozenset(changed)


@dataclass(frozen=True, slots=True)
class RoutePair:
    """One route in both locks, and where its changes are."""

    comparison: Comparison
    old: RouteFacts
    new: RouteFacts

    def build_change(
        self,
        rule: str,
        place: str,
        old: str = "",
        new: str = "",
        *,
        side: Side = "request",
        verdict: Verdict | None = None,
        witness: str = "",
    ) -> Change:
        """Return a change at a place of the route."""
        return Change(
            rule,
            f"{self.new.title} {place}".strip(),
            old,
            new,
            verdict or fixed_verdict(rule, side),
            witness,
            version=self.new.version,
        )

    def compare_types(
        self, place: str, side: Side, alphabet: Alphabet, old: TypeNode, new: TypeNode
    ) -> Iterator[Change]:
        """Yield the changes between the types at a place."""
        if self.new.method == "WEBHOOK":
            side = "response" if side == "request" else "request"
        for each in self.comparison.compare_types(side, alphabet, old, new):
            where = f"{place} {each.pointer}".strip()
            witness = "" if each.witness is None else write_literal(each.witness.value)
            change = self.build_change(
                each.rule, where, each.old, each.new, verdict=each.verdict, witness=witness
            )
            yield replace(change, cause=each.cause and f"{side} {each.cause}")


def compare_words(
    pair: RoutePair, place: str, words: tuple[Iterable[str], Iterable[str]], rules: tuple[str, str]
) -> Iterator[Change]:
    """Yield a change for each word that came, and for each that went."""
    before, after = set(words[0]), set(words[1])
    for word in sorted(after - before):
        yield pair.build_change(rules[0], place, new=word)
    for word in sorted(before - after):
        yield pair.build_change(rules[1], place, old=word)


def find_version(lock: Lock, name: str) -> VersionFacts | None:
    """Return a version of a lock by its name, or None."""
    return next((each for each in lock.versions if each.name == name), None)
