"""Compare two versions: their routes and local services.

A file counts as changed when it differs by more than the version in its imports. Reads both trees
and writes nothing.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from treefold_router import Route, RouteTable
from treefold_scaffold._errors import ScaffoldError
from treefold_scaffold._layered_tree import list_effective_entries, read_layers
from treefold_scaffold._version_plan import rewrite_version_in_source

_PARAMETER = re.compile(r"\{[^/]*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionDiff:
    """Differences of the second version from the first; every tuple is sorted.

    Attributes:
        added: routes that only the second has, as `("GET", "/v2/user")`.
        removed: routes that only the first has.
        changed: routes of the second whose file differs from that of the first.
        services_added: files of local services that only the second has, below its folder.
        services_removed: files of local services that only the first has.
        services_changed: files of local services that differ.
    """

    added: tuple[tuple[str, str], ...]
    removed: tuple[tuple[str, str], ...]
    changed: tuple[tuple[str, str], ...]
    services_added: tuple[str, ...]
    services_removed: tuple[str, ...]
    services_changed: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """True if the versions differ in name only."""
        return not any(getattr(self, name) for name in self.__slots__)


def compare_versions(app_dir: str | os.PathLike[str], first: str, second: str) -> VersionDiff:
    """Compare two versions of a project.

    Args:
        app_dir: the application root, the folder that holds `Api/`.
        first: name of the first version, such as `v1`.
        second: name of the second version.

    Raises:
        ScaffoldError: there is no such version.
        RouterError: `Api/` cannot be read.
        OSError: a file cannot be read.
    """
    api = Path(app_dir, "Api")
    for name in (first, second):
        if not (api / name).is_dir():
            raise ScaffoldError(f"No version {name!r} in 'Api'; 'treefold version list' shows them")
    table = RouteTable.scan(api)
    old, new = (_map_version_routes(table, name) for name in (first, second))
    before, after = (dict(local_services(api, name)) for name in (first, second))
    both = [(old[key], new[key]) for key in old.keys() & new.keys()]
    return VersionDiff(
        added=_find_routes_only_in_first(new, old),
        removed=_find_routes_only_in_first(old, new),
        changed=tuple(
            sorted(
                (route.method, route.template)
                for former, route in both
                if _differs_beyond_version(api, former.file, route.file)
            )
        ),
        services_added=tuple(sorted(after.keys() - before.keys())),
        services_removed=tuple(sorted(before.keys() - after.keys())),
        services_changed=tuple(
            sorted(
                file
                for file in before.keys() & after.keys()
                if _differs_beyond_version(api, before[file], after[file])
            )
        ),
    )


def local_services(api: Path, version: str) -> Iterator[tuple[str, str]]:
    """Yield the files of the local services of a version: those below a folder `Services`.

    Yields:
        The POSIX path below the version folder, and the path of the file below `Api/`, which is in
        another version folder if it is inherited.

    Raises:
        RouterError: a `version.toml` is invalid.
    """
    for one in list_effective_entries(api, version, read_layers(api)):
        if "Services" in one.path.split("/")[:-1] and one.entry.is_file():
            yield one.path, f"{one.layer}/{one.path}"


def _map_version_routes(table: RouteTable, version: str) -> Mapping[tuple[str, str], Route]:
    routes = (route for route in table.routes if route.version == version)
    paths = ((route, route.template.removeprefix(f"/{version}")) for route in routes)
    return {(route.method, _PARAMETER.sub("{}", path)): route for route, path in paths}


def _find_routes_only_in_first(
    these: Mapping[tuple[str, str], Route], others: Mapping[tuple[str, str], Route]
) -> tuple[tuple[str, str], ...]:
    missing = these.keys() - others.keys()
    return tuple(sorted((these[key].method, these[key].template) for key in missing))


def _differs_beyond_version(api: Path, first: str, second: str) -> bool:
    if first == second:  # inherited by one of them, or by both
        return False
    before, after = ((api / file).read_bytes() for file in (first, second))
    if before == after:
        return False
    old, _, path = first.partition("/")
    try:
        moved, _ = rewrite_version_in_source(before, path, old=old, new=second.partition("/")[0])
    except (ScaffoldError, SyntaxError, UnicodeError):  # not Python: any difference counts
        return True
    return moved != after
