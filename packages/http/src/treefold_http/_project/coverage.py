"""Prefixes of `under` that cover nothing: an error at boot, with the nearest that would cover.

A typing error in a prefix would leave open what its author believes to be guarded. Routes, reserved
paths and mounts count. A mount that a startup hook makes is known after the hooks only: until then
such a prefix is unserved, and `require_covering_prefixes` decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from treefold_http._chains.middleware_chain import unwrap_middleware_entry
from treefold_http._chains.subtrees import (
    ANY,
    Under,
    is_parameter,
    lies_below,
    prefixes_overlap,
    split_route_template,
)
from treefold_http._plans.outside_plans import find_middleware_page_path
from treefold_http._project.boot_files import MIDDLEWARE
from treefold_http._project.reuse import are_same_objects
from treefold_http._responses.static import StaticFiles
from treefold_http._runtime.boot_report import BootError
from treefold_http._wire.path_segments import Segments, decode_segments
from treefold_router import RouteTable

if TYPE_CHECKING:
    from treefold_http._plans.mounts import Mountable
    from treefold_http._plans.runtime import ProjectRuntime
    from treefold_http._project.findings import Findings
    from treefold_http._project.loaded_project import BootFiles, LoadedProject

RESERVED: Mapping[Segments, bool] = {
    ("docs",): True,
    ("openapi",): True,
    ("openapi.json",): False,
    ("asyncapi",): True,
    ("asyncapi.json",): False,
    ("livez",): False,
    ("readyz",): False,
    ("metrics",): False,
}
"""The paths of the framework, and True for those with paths below. They count also where their
setting is off, so that one list of middleware is right in development and in production."""
_BELOW_DOCS = ("assets", "log", "site.json")
_NEAR = 0.6
"""The similarity, from 0 to 1, from which a prefix is proposed."""


def check_coverage_or_keep_former(
    app: ProjectRuntime, table: RouteTable, files: BootFiles, findings: Findings
) -> tuple[BootFiles, Sequence[Under]]:
    """Refuse prefixes that cover nothing; a reload keeps the former entries then.

    Returns:
        The boot files, and the entries whose prefix only a later mount can cover.
    """
    unserved: list[Under] = []
    count = len(findings.broken)
    for entry in find_entries_covering_nothing(app, table, files.middlewares):
        if entry.may_cover_paths and _may_mount_later(app, files):
            unserved.append(entry)
            continue
        error = ValueError(describe_uncovered(app, table, files.middlewares, entry))
        findings.record_failure(MIDDLEWARE, error, fatal=True)
    former = findings.former
    if former is not None and len(findings.broken) > count:
        return files._replace(middlewares=former.boot_files.middlewares), former.unserved
    return files, unserved


def are_prefixes_unchanged(findings: Findings, files: BootFiles) -> bool:
    """Return True if the prefixes are those of the former project, where each covers something."""
    former = findings.former
    if former is None or former.unserved:
        return False
    is_same = are_same_objects(former.boot_files.middlewares, files.middlewares)
    return is_same and all(broken.file != MIDDLEWARE for broken in former.report.broken)


def require_covering_prefixes(
    app: ProjectRuntime, table: RouteTable, entries: Sequence[Any]
) -> None:
    """Refuse prefixes that cover nothing once all mounts are known.

    Raises:
        BootError: the message names each prefix.
    """
    if uncovered := find_entries_covering_nothing(app, table, entries):
        said = [describe_uncovered(app, table, entries, entry) for entry in uncovered]
        raise BootError(f"{MIDDLEWARE} cannot be used: {'; '.join(said)}")


def find_unserved(app: ProjectRuntime, project: LoadedProject, later: Iterable[str]) -> list[Under]:
    """Return the entries that wait for a mount of a startup hook, and get none.

    For tools that run no hook.

    Args:
        later: the prefixes that hooks mount at, as far as the sources tell.
    """
    mounts = [tuple(part.lower() for part in decode_segments(prefix)) for prefix in later]
    known = [each for each in project.unserved if not _covers_mount(app, each)]
    return [
        each for each in known if not any(prefixes_overlap(each.prefix, mount) for mount in mounts)
    ]


def find_entries_covering_nothing(
    app: ProjectRuntime, table: RouteTable, entries: Sequence[Any]
) -> list[Under]:
    """Return the entries whose prefix covers no route, no reserved path and no known mount."""
    scoped = [entry for entry in entries if isinstance(entry, Under) and entry.prefix]
    if not scoped:
        return []
    left = [each for each in scoped if not _covers_reserved_path(each, table, entries)]
    left = [each for each in left if not _covers_mount(app, each)]
    return [each for each in left if not any(map(each.covers_route, table.routes))]


def describe_uncovered(
    app: ProjectRuntime, table: RouteTable, entries: Sequence[Any], entry: Under
) -> str:
    """Return the error for a prefix that covers nothing."""
    known = [*_yield_route_prefixes(table), *_yield_reserved_paths(entries)]
    known += _yield_mounted_paths(app, entry)
    found = find_nearest_prefix(entry.prefix, dict.fromkeys(known))
    return (
        f"Prefix of under() must cover something that is served, got {str(entry)!r}; the nearest is"
        f" {found!r}"
    )


def _may_mount_later(app: ProjectRuntime, files: BootFiles) -> bool:
    # a reload comes after the startup hooks, which do not run again
    if app.mounts.are_complete:
        return False
    return bool(files.on_startup) or any(hasattr(one, "startup") for one in files.extensions)


def _yield_reserved_paths(entries: Sequence[Any]) -> Iterator[Segments]:
    yield from RESERVED
    for entry in entries:
        if page := find_middleware_page_path(unwrap_middleware_entry(entry)):
            yield decode_segments(page)


def _covers_reserved_path(entry: Under, table: RouteTable, entries: Sequence[Any]) -> bool:
    for path in _yield_reserved_paths(entries):
        if lies_below(entry.prefix, path):
            return True
        if RESERVED.get(path) and prefixes_overlap(entry.prefix, path):
            documents = ["default.json", *(f"{version}.json" for version in table.versions)]
            names = _BELOW_DOCS if path == ("docs",) else documents
            if entry.prefix[1] in (ANY, *names):
                return True
    return False


def _covers_mount(app: ProjectRuntime, entry: Under) -> bool:
    return entry.may_cover_paths and any(
        _mount_may_serve_prefix(app, entry.prefix, mount, target)
        for mount, target in app.mounts.take_snapshot().items()
    )


def _mount_may_serve_prefix(
    app: ProjectRuntime, prefix: Segments, mount: Segments, target: Mountable
) -> bool:
    if not prefixes_overlap(prefix, tuple(part.lower() for part in mount)):
        return False
    below = prefix[len(mount) :]
    # which paths an application serves is not known; a folder can be listed
    return not below or not isinstance(target, StaticFiles) or target.has_path(app.root, below)


def _yield_route_prefixes(table: RouteTable) -> Iterator[Segments]:
    for route in table.routes:
        segments = split_route_template(route)
        yield from (segments[:length] for length in range(1, len(segments) + 1))


def _yield_mounted_paths(app: ProjectRuntime, entry: Under) -> Iterator[Segments]:
    for mount, target in app.mounts.take_snapshot().items():
        yield mount
        folder = entry.prefix[len(mount) : -1]
        if isinstance(target, StaticFiles) and prefixes_overlap(entry.prefix, mount):
            names = target.list_folder_names(app.root, folder)
            yield from ((*mount, *folder, name) for name in names)


def find_nearest_prefix(prefix: Segments, known: Iterable[Segments]) -> str:
    """Return the known prefix, at least one, that looks most like another one."""
    from difflib import SequenceMatcher, get_close_matches  # for the message only

    def measure_similarity(other: Segments) -> float:
        pairs = [(a, b) for a, b in zip(prefix, other, strict=False) if a != ANY]
        return sum(measure_segment_similarity(*pair) for pair in pairs) / max(len(pairs), 1)

    def measure_segment_similarity(a: str, b: str) -> float:
        if a == b:
            return 1.0
        return _NEAR if is_parameter(b) else SequenceMatcher(None, a, b).ratio()

    candidates: Collection[Segments] = list(known)
    same_depth = (one for one in candidates if len(one) == len(prefix))
    alike = [one for one in same_depth if measure_similarity(one) >= _NEAR]
    if alike:
        return "/" + "/".join(max(alike, key=measure_similarity))
    ending = [one for one in candidates if one[-len(prefix) :] == prefix]
    above = [one for one in candidates if one == prefix[: len(one)]]
    if ending or above:
        return "/" + "/".join(ending[-1] if ending else max(above, key=len))
    shown = ["/" + "/".join(one) for one in candidates]
    return get_close_matches("/" + "/".join(prefix), shown, n=1, cutoff=0.0)[0]
