"""Compares two locks: from routes that came, went or changed to findings.

1. versions: added, removed, deprecated
2. routes: matched by path and method; what is gone is explained by a shadow, a new name, a sunset
3. facts of each route that is in both
4. the surface without versions, and guards from version to version
5. one finding for each cause
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime

from treefold_contract._errors import LockError
from treefold_contract._facts.facts import Deprecation, Lock, RouteFacts, Settings
from treefold_contract._facts.selection import iter_types
from treefold_contract._rules.access_rules import compare_access, compare_guards_of_versions
from treefold_contract._rules.answer_rules import compare_answers, compare_messages
from treefold_contract._rules.findings import Finding, collect_findings
from treefold_contract._rules.input_rules import compare_inputs
from treefold_contract._rules.lifetime_rules import compare_deprecations, compare_stability
from treefold_contract._rules.old_versions import warn_of_old_versions
from treefold_contract._rules.route_change import Change, Comparison, RoutePair, find_version
from treefold_contract._rules.rule_table import GRAVITY, fixed_verdict
from treefold_contract._rules.shadow_rules import compare_places
from treefold_contract._text.versions import move_route, routes_of
from treefold_contract._types.nodes import referenced_names


def diff_locks(
    old: Lock, new: Lock, *, today: date | None = None, min_notice_days: int = 0
) -> list[Finding]:
    """Return what changed from one lock to another, the gravest first.

    Args:
        old: the lock before.
        new: the lock after.
        today: the day on which sunsets are judged; by default that of UTC.
        min_notice_days: the notice that a sunset must give.

    Raises:
        LockError: the locks were written by different versions of the rules.
    """
    if old.rules != new.rules:
        raise LockError(
            f"Locks must have one version of the rules, got {old.rules} and {new.rules};"
            " write the old one again"
        )
    comparison = Comparison(old, new, today or datetime.now(UTC).date(), min_notice_days)
    return collect_findings(_find_changes(comparison), old, new)


def _find_changes(comparison: Comparison) -> Iterator[Change]:
    old, new = comparison.old, comparison.new
    drafts = {each.name for each in old.versions if each.stability == "draft"}
    changes = [
        *_compare_settings(old.settings, new.settings),
        *_compare_versions(comparison),
        *_compare_routes(comparison),
        *_compare_unversioned(comparison),
        *compare_guards_of_versions(comparison),
    ]
    versions = {each.name for each in (*old.versions, *new.versions)}
    for change in warn_of_old_versions(changes, new):
        if change.version not in versions:  # the first segment of a path is no version
            change = replace(change, version="")
        is_draft = change.version in drafts and change.verdict in ("breaking", "weaker")
        yield replace(change, verdict="warning") if is_draft else change


def _compare_settings(old: Settings, new: Settings) -> Iterator[Change]:
    lost = set(old.automatic) - set(new.automatic)
    for method in sorted(lost & {"head", "options"}):
        rule = f"auto-{method}-off"
        yield Change(rule, f"automatic {method}", method, "", fixed_verdict(rule, "request"))
    if old.errors != new.errors:
        verdict = fixed_verdict("error-format", "response")
        yield Change("error-format", "errors", old.errors, new.errors, verdict)
    for mount in sorted(set(old.mounts) - set(new.mounts)):
        verdict = fixed_verdict("route-removed", "request")
        yield Change("route-removed", f"mount {mount}", mount, "", verdict)


def _compare_versions(comparison: Comparison) -> Iterator[Change]:
    before = {version.name: version for version in comparison.old.versions}
    after = {version.name: version for version in comparison.new.versions}
    for name in sorted(before.keys() | after.keys()):
        place = f"version {name}"
        if name not in before:
            verdict = fixed_verdict("version-added", "request")
            yield Change("version-added", place, "", name, verdict, version=name)
        elif name not in after:
            is_over = is_sunset_over(comparison, before[name].deprecation)
            rule = "version-removed-sanctioned" if is_over else "version-removed"
            verdict = fixed_verdict(rule, "request")
            yield Change(rule, place, name, "", verdict, version=name)
        else:
            dates = (before[name].deprecation, after[name].deprecation)
            yield from compare_deprecations(comparison, place, name, *dates)
            yield from compare_stability(before[name], after[name])


def is_sunset_over(comparison: Comparison, deprecation: Deprecation | None) -> bool:
    """Return True if a sunset was announced and has passed."""
    sunset = deprecation.sunset if deprecation else None
    return sunset is not None and sunset <= comparison.today


def _compare_routes(comparison: Comparison) -> Iterator[Change]:
    before = {route.key: route for route in comparison.old.routes}
    after = {route.key: route for route in comparison.new.routes}
    both = {each.name for each in comparison.old.versions} ^ {
        each.name for each in comparison.new.versions
    }
    shadows, explained = compare_places(comparison)
    yield from (change for change in shadows if change.version not in both)
    removed = [r for k, r in before.items() if k not in after and r.version not in both]
    added = [r for k, r in after.items() if k not in before and r.version not in both]
    for route in removed:
        other = find_renamed(route, added)
        if other is not None:
            added.remove(other)
            yield _build_route_change("segment-renamed", other, route.title, other.title)
        elif route.key not in explained:
            yield _build_removed(comparison, route)
    yield from (_build_route_change("route-added", each, "", each.title) for each in added)
    for key in filter(after.__contains__, before):
        yield from compare_route(comparison, before[key], after[key])


def _build_route_change(rule: str, route: RouteFacts, old: str, new: str) -> Change:
    verdict = fixed_verdict(rule, "request")
    witness = old if verdict == "breaking" else ""
    return Change(rule, route.title, old, new, verdict, witness, version=route.version)


def _build_removed(comparison: Comparison, route: RouteFacts) -> Change:
    version = find_version(comparison.old, route.version)
    deprecation = route.deprecation or (version.deprecation if version else None)
    rule = "route-removed"
    if is_sunset_over(comparison, deprecation):
        rule = "route-removed-sanctioned"
    elif deprecation and deprecation.sunset:
        rule = "route-removed-early"
    return _build_route_change(rule, route, route.title, "")


def find_renamed(route: RouteFacts, added: list[RouteFacts]) -> RouteFacts | None:
    """Return the new route that differs from a removed one in a single static segment."""
    for other in added:
        if len(other.path) == len(route.path) and other.version == route.version:
            pairs = [
                each for each in zip(route.path, other.path, strict=True) if each[0] != each[1]
            ]
            is_static = not any(each.is_parameter for pair in pairs for each in pair)
            if len(pairs) == 1 and is_static and replace(other, path=route.path) == route:
                return other
    return None


def compare_route(comparison: Comparison, old: RouteFacts, new: RouteFacts) -> Iterator[Change]:
    """Yield the changes of the facts of one route."""
    if old == new and not _names_changed_type(comparison, new):
        return
    pair = RoutePair(comparison, old, new)
    yield from compare_inputs(pair)
    yield from compare_answers(pair)
    yield from compare_messages(pair)
    yield from compare_access(pair)
    dates = (old.deprecation, new.deprecation)
    yield from compare_deprecations(comparison, new.title, new.version, *dates)
    if old.operation != new.operation:
        yield pair.build_change("operation-id", "operation", old.operation, new.operation)


def _names_changed_type(comparison: Comparison, route: RouteFacts) -> bool:
    changed = comparison.changed_names
    return bool(changed) and any(
        not changed.isdisjoint(referenced_names(node)) for node in iter_types(route)
    )


def _compare_unversioned(comparison: Comparison) -> Iterator[Change]:
    """Yield the worst change of paths without a version, which reach another one."""
    before = comparison.old.settings.default_version
    after = comparison.new.settings.default_version
    if not before or before == after:
        return
    if not after:
        verdict = fixed_verdict("unversioned-removed", "request")
        yield Change("unversioned-removed", "default", before, "", verdict)
        return
    old = [move_route(route, "*") for route in routes_of(comparison.old, before)]
    new = [move_route(route, "*") for route in routes_of(comparison.new, after)]
    moved = replace(
        comparison,
        old=replace(comparison.old, routes=tuple(old), versions=()),
        new=replace(comparison.new, routes=tuple(new), versions=()),
    )
    changes = list(_compare_routes(moved))
    if changes:
        worst = min(changes, key=lambda change: GRAVITY.index(change.verdict))
        words = (before, f"{after}: {worst.rule} at {worst.place.replace('/*', '', 1)}")
        yield Change("unversioned-moved", "default", *words, worst.verdict, worst.witness)
