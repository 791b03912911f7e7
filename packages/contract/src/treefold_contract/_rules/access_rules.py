"""Rules of access: credentials, scopes and guards (rows 88 to 93).

Ways to be authorised are alternatives: one more way lets more clients in, and one way less keeps
some out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from treefold_contract._facts.facts import Auth, Lock, RouteFacts
from treefold_contract._rules.route_change import Change, Comparison, RoutePair, compare_words
from treefold_contract._rules.rule_table import fixed_verdict
from treefold_contract._text.versions import move_route, routes_of, sort_versions


def compare_access(pair: RoutePair) -> Iterator[Change]:
    """Yield the changes of who may call a route."""
    yield from _compare_auth(pair)
    words = (pair.old.guards, pair.new.guards)
    yield from compare_words(pair, "guard", words, ("guard-added", "guard-lost"))


def is_open_to_all(options: tuple[Auth, ...]) -> bool:
    """Return True if a client without credentials is let in."""
    return not options or any(option.scheme == "none" for option in options)


def _compare_auth(pair: RoutePair) -> Iterator[Change]:
    before, after = pair.old.auth, pair.new.auth
    was_open, is_open = is_open_to_all(before), is_open_to_all(after)
    if was_open != is_open:
        rule = "auth-removed" if is_open else "auth-added"
        witness = "" if is_open else "a request without credentials"
        words = (format_auth(before), format_auth(after))
        yield pair.build_change(rule, "auth", *words, witness=witness)
    if was_open or is_open:
        return
    schemes = ({option.scheme for option in before}, {option.scheme for option in after})
    if len(schemes[0]) == len(schemes[1]) == 1 and schemes[0] != schemes[1]:
        yield pair.build_change("auth-scheme", "auth", min(schemes[0]), min(schemes[1]))
        return
    rules = ("auth-option-added", "auth-option-removed")
    yield from compare_words(pair, "auth", schemes, rules)
    for scheme in sorted(schemes[0] & schemes[1]):
        yield from _compare_scopes(pair, scheme)


def _compare_scopes(pair: RoutePair, scheme: str) -> Iterator[Change]:
    before = [set(option.scopes) for option in pair.old.auth if option.scheme == scheme]
    after = [set(option.scopes) for option in pair.new.auth if option.scheme == scheme]
    if len(before) == len(after) == 1:
        rules = ("scope-added", "scope-removed")
        yield from compare_words(pair, f"auth {scheme}", (before[0], after[0]), rules)
        return
    words = (set(map(format_scopes, before)), set(map(format_scopes, after)))
    rules = ("auth-option-added", "auth-option-removed")
    yield from compare_words(pair, f"auth {scheme}", words, rules)


def format_scopes(scopes: set[str]) -> str:
    """Return the scopes of one way to be authorised."""
    return " ".join(sorted(scopes))


def format_auth(options: tuple[Auth, ...]) -> str:
    """Return the schemes of some ways to be authorised."""
    return " or ".join(sorted(option.scheme for option in options)) or "none"


def compare_guards_of_versions(comparison: Comparison) -> Iterator[Change]:
    """Yield the guards of a version that the same route of the next version does not have."""
    known = {(route.key, guard) for route, guard, _ in find_lost_guards(comparison.old)}
    # a guard that the route itself had is found when its facts are compared
    known |= {(route.key, guard) for route in comparison.old.routes for guard in route.guards}
    for route, guard, base in find_lost_guards(comparison.new):
        if (route.key, guard) not in known:
            yield Change(
                "guard-lost",
                f"{route.title} guard",
                f"{guard} in {base}",
                "",
                fixed_verdict("guard-lost", "request"),
                version=route.version,
            )


def find_lost_guards(lock: Lock) -> Iterator[tuple[RouteFacts, str, str]]:
    """Yield each route, guard and older version, where a version lost a guard."""
    names = [version.name for version in sort_versions(lock.versions)]
    for base, name in pairwise(names):
        older = {move_route(each, name).key: each for each in routes_of(lock, base)}
        for route in routes_of(lock, name):
            if route.key in older:
                lost = set(older[route.key].guards) - set(route.guards)
                yield from ((route, guard, base) for guard in sorted(lost))
