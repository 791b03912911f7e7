"""The middleware of one path by name, for tools that explain a path without serving it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treefold_http._chains.middleware_chain import (
    WEBSOCKET,
    RequestsOnly,
    is_unneeded_on_sockets,
    unwrap_middleware_entry,
)
from treefold_http._chains.subtrees import Under
from treefold_http._plans.outside_plans import OutsidePlans
from treefold_http._project.boot import load_route_middlewares
from treefold_http._wire.path_segments import decode_segments

if TYPE_CHECKING:
    from treefold_http._plans.runtime import ProjectRuntime
    from treefold_http._project.loaded_project import BootFiles
    from treefold_router import Route, RouteTable

_PROBES = (("livez",), ("readyz",))


@dataclass(frozen=True, slots=True)
class Guard:
    """An entry of middleware that runs for a path.

    Attributes:
        name: the name of its function or class.
        prefix: the prefix of its `under`; empty for none.
        file: the file that lists it.
    """

    name: str
    prefix: str
    file: str

    def __str__(self) -> str:
        """Return the name, and where it comes from unless that is the whole list."""
        if self.prefix:
            return f"{self.name} (under {self.prefix})"
        return f"{self.name} ({self.file})" if self.file.startswith("Api/") else self.name


def guards_of_route(
    app: ProjectRuntime, table: RouteTable, route: Route, files: BootFiles
) -> list[Guard]:
    """Return the entries that run for a route, the outermost first; its file is imported."""
    own = load_route_middlewares(app, table, route)
    is_socket = route.method == WEBSOCKET
    listed = [each for each in files.middlewares if _covers_route(each, route)]
    inner = [each for each in own if _covers_route(each, route)]
    return [
        *_describe_middlewares(listed, _LIST, is_socket=is_socket),
        *_describe_middlewares(inner, f"Api/{route.file}", is_socket=is_socket),
    ]


def guards_of_refusal(
    table: RouteTable, files: BootFiles, path: bytes | str, version: str | None = None
) -> list[Guard]:
    """Return the entries that run for an answer 400, 404 or 405 below a version.

    Args:
        path: as sent, below `root_path`.
        version: the default version, for a path that it serves.
    """
    route = table.route_at(path, version)
    entries = [each for each in files.middlewares if _covers_route(each, route)]
    return list(_describe_middlewares(entries, _LIST, is_socket=False))


def guards_of_path(
    app: ProjectRuntime, files: BootFiles, path: bytes | str, *, depth: int, is_socket: bool
) -> list[Guard]:
    """Return the entries that run for a path that no route serves, the outermost first.

    Args:
        path: as sent, below `root_path`.
        depth: the number of segments that are the prefix of a mount.
        is_socket: True for a handshake.
    """
    segments = decode_segments(path)
    entries = OutsidePlans(app, files.middlewares).find_covering_entries(segments, depth)
    if segments in _PROBES:
        entries = [each for each in entries if isinstance(each, Under)]
    return list(_describe_middlewares(entries, _LIST, is_socket=is_socket))


_LIST = "Middleware/__init__.py"


def _covers_route(entry: Any, route: Route | None) -> bool:
    return not isinstance(entry, Under) or entry.covers_route(route)


def _describe_middlewares(entries: Sequence[Any], file: str, *, is_socket: bool) -> Iterator[Guard]:
    for entry in entries:
        scoped = entry.entry if isinstance(entry, Under) else entry
        inner = unwrap_middleware_entry(scoped)
        if is_socket and (isinstance(scoped, RequestsOnly) or is_unneeded_on_sockets(inner)):
            continue
        name = getattr(inner, "__qualname__", type(inner).__qualname__)
        yield Guard(name, str(entry) if isinstance(entry, Under) else "", file)
