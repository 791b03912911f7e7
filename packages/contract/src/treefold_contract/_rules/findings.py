"""A finding: one cause, with all places that it reaches.

A changed type that 40 routes use is one finding with 40 places; so is a route that three versions
inherit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from treefold_contract._facts.facts import Lock
from treefold_contract._rules.advice import find_advice
from treefold_contract._rules.route_change import Change
from treefold_contract._rules.rule_table import GRAVITY, RULES, Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """A change of the contract.

    Attributes:
        rule: the id of the rule.
        number: its row in the table; 0 for none.
        verdict: what it means for clients.
        place: the first place, such as `GET /v1/user 200 .mail`.
        old: the text before; empty for nothing.
        new: the text after.
        witness: a value as JSON, or a request, which shows it; empty without one.
        places: all places.
        versions: the versions that it reaches.
        line: the line of the new lock that declares it, or of the old one for what is gone.
        advice: what to do instead.
        cause: what it is accepted by: the type, or the place without its version.
        accepted: the reason for which it was accepted; empty if it was not.
        is_unused: True if no caller sent what it is about; it is compatible then.
    """

    rule: str
    number: int
    verdict: Verdict
    place: str
    old: str
    new: str
    witness: str
    places: tuple[str, ...]
    versions: tuple[str, ...]
    line: int
    advice: str
    cause: str
    accepted: str = ""
    is_unused: bool = False

    @property
    def fingerprint(self) -> str:
        """What a finding is accepted by: its rule, its cause and the new text, never a message."""
        return sha256("|".join((self.rule, self.cause, self.new)).encode()).hexdigest()[:12]

    @property
    def is_failure(self) -> bool:
        """True if clients break or security is weaker, and no reason accepts it."""
        return self.verdict in ("breaking", "weaker") and not self.accepted


def change_cause(change: Change) -> str:
    """Return what changes are one finding by: the type, or the place without its version."""
    if change.cause:
        return change.cause
    if not change.version:
        return change.place
    return change.place.replace(f"/{change.version}", "/*", 1)


def collect_findings(changes: Iterable[Change], old: Lock, new: Lock) -> list[Finding]:
    """Return one finding for each cause, the gravest first."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        key = (change.rule, change_cause(change), change.old, change.new, change.verdict)
        groups.setdefault(key, []).append(change)
    findings = [_build_finding(group, old, new) for group in groups.values()]
    return sorted(findings, key=_finding_order)


def _finding_order(finding: Finding) -> tuple[int, str, str, str, str]:
    gravity = GRAVITY.index(finding.verdict)
    return gravity, finding.place, finding.rule, finding.old, finding.new


def _build_finding(group: list[Change], old: Lock, new: Lock) -> Finding:
    first = min(group, key=lambda change: change.place)
    places = sorted({change.place for change in group})
    versions = sorted({change.version for change in group} - {""})
    default = old.settings.default_version
    if default in versions and default == new.settings.default_version:
        versions.append("unversioned")
    return Finding(
        first.rule,
        RULES[first.rule].number,
        first.verdict,
        first.place,
        first.old,
        first.new,
        first.witness,
        tuple(places),
        tuple(versions),
        find_line(first, old, new),
        find_advice(first.rule, first.verdict),
        change_cause(first),
    )


def find_line(change: Change, old: Lock, new: Lock) -> int:
    """Return the line of the block that declares what changed; 0 for a lock that was not read."""
    words = change.place.split(" ")
    keys = [" ".join(words[:2])]
    if change.cause:
        name = change.cause.split(" ")[1].partition(".")[0].partition("[")[0]
        keys = [f"type {name}", f"type {name} in", f"type {name} out", *keys]
    lines = [lock.lines[key] for lock in (new, old) for key in keys if key in lock.lines]
    return lines[0] if lines else 0
