"""Rules of time: deprecations, sunsets and stability (rows 94 to 98)."""

from __future__ import annotations

from collections.abc import Iterator

from treefold_contract._facts.facts import Deprecation, VersionFacts
from treefold_contract._rules.route_change import Change, Comparison
from treefold_contract._rules.rule_table import fixed_verdict


def compare_deprecations(
    comparison: Comparison,
    place: str,
    version: str,
    old: Deprecation | None,
    new: Deprecation | None,
) -> Iterator[Change]:
    """Yield the changes of a deprecation of a route or a version."""

    def build_change(rule: str, before: object = "", after: object = "") -> Change:
        words = (str(before or ""), str(after or ""))
        verdict = fixed_verdict(rule, "request")
        return Change(rule, f"{place} deprecated", *words, verdict, version=version)

    if old == new:
        return
    if new is None:
        yield build_change("deprecated-removed", old and old.since)
        return
    if new.since is None:
        yield build_change("deprecated-undated")
    elif old is None or old.since is None:
        yield build_change("deprecated-added", "", new.since)
    before, after = old.sunset if old else None, new.sunset
    if before == after:
        return
    if before is not None and (after is None or after > before):
        yield build_change("sunset-later", before, after)
    elif before is not None:
        yield build_change("sunset-earlier", before, after)
    if after is not None and (after - comparison.today).days < comparison.min_notice_days:
        yield build_change("sunset-too-soon", before, after)


def compare_stability(old: VersionFacts, new: VersionFacts) -> Iterator[Change]:
    """Yield the change between a stable version and a draft."""
    if old.stability != new.stability:
        rule = f"status-{new.stability}"
        verdict = fixed_verdict(rule, "request")
        words = (old.stability, new.stability)
        yield Change(rule, f"version {new.name}", *words, verdict, version=new.name)
