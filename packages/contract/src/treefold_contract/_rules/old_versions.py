"""Members that answers of an old version gain, and those of the newest one do not.

v1 and v2 have `GET /user`. A member that is added to both is a compatible change. One that is added
to v1 alone was mostly meant for v2, since clients of v1 have not asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from treefold_contract._facts.facts import Lock
from treefold_contract._facts.paths import path_key
from treefold_contract._rules.route_change import Change
from treefold_contract._rules.rule_table import fixed_verdict

MEMBERS = ("field-added-required", "field-added-optional")
RULE = "old-version-changed"


def warn_of_old_versions(changes: Iterable[Change], new: Lock) -> Iterator[Change]:
    """Yield changes, of which those of old versions alone are warnings."""
    changes = list(changes)
    newest = find_newest_titles(new)
    known = {(change.rule, change.place) for change in changes}
    for change in changes:
        title = " ".join(change.place.split(" ")[:2])
        latest = newest.get(title, title)
        there = f"{latest}{change.place.removeprefix(title)}"
        is_old = change.rule in MEMBERS and change.verdict == "compatible" and latest != title
        if is_old and is_answer(change.place) and (change.rule, there) not in known:
            verdict = fixed_verdict(RULE, "response")
            yield replace(change, rule=RULE, verdict=verdict, new=change.new or change.rule)
        else:
            yield change


def is_answer(place: str) -> bool:
    """Return True for a place of an answer, such as `GET /v1/user 200 json .mail`."""
    words = place.split(" ")
    return len(words) > 2 and (words[2][:1].isdigit() or words[2] == "out")


def find_newest_titles(lock: Lock) -> dict[str, str]:
    """Return the title of the newest version of each route that has one in several versions."""
    numbers = {version.name: version.number for version in lock.versions}
    routes: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for route in lock.routes:
        if route.version in numbers:
            key = path_key(route.path[1:]), route.method
            routes.setdefault(key, []).append((numbers[route.version], route.title))
    return {
        title: max(found)[1] for found in routes.values() if len(found) > 1 for _, title in found
    }
