"""Guards: routes without one beside routes that have one, and caches in front of a guard."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from treefold_http._chains.cache_place import decides_access
from treefold_http._deploy.deployment import Deployment, ServedRoute, is_guard
from treefold_http._deploy.finding import Finding, Kind, make_kinds
from treefold_http.cache._cached import Cached

KINDS = make_kinds(
    """
    severe guard-sibling: a route without any guard beside guarded ones;
      an attacker asks for the one that was forgotten
    severe guard-version: a route is guarded in one version and open in another;
      an attacker asks for the version without the guard
    severe route-twice: two files serve one route, and one of them never runs;
      an attacker gets the answer of the file that serves, whatever the other one would have checked
    severe cache-before-guard: answers are kept before a guard is asked;
      an attacker gets an answer that was kept while he, or another, was allowed to read it
    """
)
SIBLING, VERSION, TWICE, CACHED = KINDS

_AUTOMATIC = ("OPTIONS",)
_LEAST_SIBLINGS = 3
"""Guarded neighbours of one bare route from which on it was likely forgotten."""


def check_guards(deployment: Deployment) -> Iterator[Finding]:
    """Find routes that were left without a guard."""
    if not deployment.is_booted:
        return
    for duplicate in deployment.host.project.table.duplicates:
        *hidden, serves = duplicate.files
        shown = f"{duplicate.method} {duplicate.url}"
        text = f"{shown} is served by Api/{serves}, never by Api/{hidden[0]}"
        write = f"rm 'Api/{hidden[0]}'  # or the other one"
        yield TWICE.make_finding(f"Api/{hidden[0]}", text, write)
    open_routes = {**_find_unguarded_versions(deployment), **_find_unguarded_siblings(deployment)}
    for served, (kind, why) in open_routes.items():
        text = f"{served.display_name} has no guard; {why}"
        write = "async def handler(user: User = Depends(signed_in)):"
        yield kind.make_finding(served.file_path, text, write)
    yield from _check_caches_before_guards(deployment)


def _select_guardable_routes(deployment: Deployment) -> list[ServedRoute]:
    asked = (each for each in deployment.loaded_routes if each.route.method not in _AUTOMATIC)
    return [served for served in asked if not served.is_public_on_purpose]


def _find_unguarded_siblings(deployment: Deployment) -> dict[ServedRoute, tuple[Kind, str]]:
    found: dict[ServedRoute, tuple[Kind, str]] = {}
    by_template: dict[str, list[ServedRoute]] = defaultdict(list)
    for served in _select_guardable_routes(deployment):
        by_template[served.route.template].append(served)
    for group in by_template.values():
        for served in (each for each in group if not each.is_guarded):
            # an open POST beside a guarded GET is a mistake, an open GET beside a guarded POST is
            # not
            weaker = [
                g for g in group if g.is_guarded and g.is_state_changing <= served.is_state_changing
            ]
            if weaker:
                found[served] = SIBLING, f"{weaker[0].display_name} has one"
    by_parent: dict[str, list[list[ServedRoute]]] = defaultdict(list)
    for template, group in by_template.items():
        by_parent[template.rpartition("/")[0]].append(group)
    for parent, groups in by_parent.items():
        if parent.count("/") < 2:  # what lies side by side in a version has no common purpose
            continue
        guarded = [group for group in groups if all(each.is_guarded for each in group)]
        bare = [group for group in groups if not any(each.is_guarded for each in group)]
        if len(guarded) >= _LEAST_SIBLINGS and len(bare) == 1:
            why = f"all {len(guarded)} others below {parent} have one"
            found |= {served: (SIBLING, why) for served in bare[0]}
    return found


def _find_unguarded_versions(deployment: Deployment) -> dict[ServedRoute, tuple[Kind, str]]:
    found: dict[ServedRoute, tuple[Kind, str]] = {}
    versions: dict[tuple[str, str], list[ServedRoute]] = defaultdict(list)
    for served in _select_guardable_routes(deployment):
        path = served.route.template.removeprefix(f"/{served.route.version}")
        versions[served.route.method, path].append(served)
    for group in versions.values():
        guarded = [served for served in group if served.is_guarded]
        if guarded:
            reason = (VERSION, f"{guarded[-1].display_name} has one")
            found |= dict.fromkeys((served for served in group if not served.is_guarded), reason)
    return found


def _check_caches_before_guards(deployment: Deployment) -> Iterator[Finding]:
    """Yield caches in front of a guard of the project; the boot knows those of the framework."""
    told: set[int] = set()
    for served in deployment.loaded_routes:
        for index, entry in enumerate(served.entries):
            if not isinstance(entry, Cached) or id(entry) in told:
                continue
            rest = [each for each in served.entries[index + 1 :] if not decides_access(each)]
            later = [each for each in rest if is_guard(each, deployment.reader)]
            if later:
                told.add(id(entry))
                name = getattr(later[0], "__name__", type(later[0]).__name__)
                text = f"cached comes before {name} for {served.display_name}"
                write = f"middlewares = [{name}, cached(...)]"
                yield CACHED.make_finding(deployment.find_middleware_file(entry), text, write)
