"""The route table: built once from the tree, then asked once per request.

Owns the outcomes of a resolution. A table never changes after it is built; a reload builds
another one beside it. `find` is on the path of every request: measure before changing it. It has no
parameter by keyword only, because CPython calls such a function by a slower way.
"""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from treefold_router._build import build_table, collect_sorted_versions, find_latest_version
from treefold_router._classify import is_ordinary_code_file
from treefold_router._layers import NO_LAYERS, Layers, resolve_layers
from treefold_router._lint import find_lint_findings
from treefold_router._naming import METHODS, WEBSOCKET, is_version_name
from treefold_router._path import (
    NO_SLASH,
    PERCENT,
    decode_and_compact_segments,
    find_defect,
    to_raw_path,
)
from treefold_router._scan import Listing, list_changes, list_tree
from treefold_router._trie import TrieNode, match_path, new_found
from treefold_router._types import (
    AutoOptions,
    Duplicate,
    Finding,
    Found,
    MalformedPath,
    MethodNotAllowed,
    NotFound,
    Route,
    Skipped,
)

if TYPE_CHECKING:
    from treefold_router._explain import Explanation

_NOT_FOUND = NotFound(unversioned=False)
_UNVERSIONED = NotFound(unversioned=True)


class RouteTable:
    """All routes of a tree, as data; made by `RouteTable.scan`.

    Attributes:
        root: the scanned folder, absolute.
        routes: the routes that serve, in visiting order.
        unserved_routes: those of versions that are only a base (`serve = false`).
        skipped: files that look like a route and are not served, in visiting order.
        duplicates: methods and URLs defined more than once.
        versions: names of the versions that have a route, ascending by number.
        latest: the version with the highest number, or None without any route.
        packages: folders that hold an `__init__.py`, as paths below `root`; "" is `root` itself.
            Those of a version that inherits are named as in a copy.
        layers: the settings of versions, and the files that they inherit.
    """

    def __init__(
        self,
        root: Path,
        listing: Listing,
        *,
        auto_head: bool = False,
        auto_options: bool = False,
        keep_listing: bool = False,
        former: Iterable[Route] = (),
    ) -> None:
        layers = resolve_layers(root, listing) if listing.marks else NO_LAYERS
        built = build_table(listing, auto_head=auto_head, former=former, layers=layers)
        self.root: Path = root
        self.layers: Layers = layers
        self.routes: tuple[Route, ...] = built.routes
        self.unserved_routes: tuple[Route, ...] = built.unserved
        self.skipped: tuple[Skipped, ...] = built.skipped
        self.duplicates: tuple[Duplicate, ...] = built.duplicates
        self.versions: tuple[str, ...] = collect_sorted_versions(built.routes)
        self.latest: str | None = find_latest_version(self.versions)
        self.packages: frozenset[str] = listing.list_packages() | layers.list_packages()
        self._trie = built.trie
        self._places = built.places
        self._prefixes = {version: b"/" + version.encode() for version in self.versions}
        self._auto_head = auto_head
        self._auto_options = auto_options
        self._listing = listing if keep_listing else None
        self._clashes = listing.clashes
        self._ordinary = tuple(
            "/".join(e.parts) for e in listing.entries if is_ordinary_code_file(e)
        )

    @classmethod
    def scan(
        cls,
        api_dir: str | os.PathLike[str],
        *,
        auto_head: bool = False,
        auto_options: bool = False,
        keep_listing: bool = False,
    ) -> "RouteTable":
        """Read a tree from the disk; no file but `version.toml` is opened, none is imported.

        Args:
            api_dir: the folder that holds the version folders.
            auto_head: answer HEAD with the GET route where no HEAD file exists.
            auto_options: answer OPTIONS with `AutoOptions` where no OPTIONS file exists.
            keep_listing: keep the names of all files, so that `rescan` need not list them again.

        Raises:
            RouterError: the folder is missing, is no folder or cannot be read, or a
                `version.toml` in it is invalid.
        """
        root = Path(api_dir).absolute()
        return cls(
            root,
            list_tree(root),
            auto_head=auto_head,
            auto_options=auto_options,
            keep_listing=keep_listing,
        )

    def rescan(self, changed: Iterable[str] | None = None) -> "RouteTable":
        """Return a table of the tree as it is now; routes that are the same stay the same objects.

        Args:
            changed: paths below `root`, with forward slashes, of the files that are new or gone:
                only their folders are listed, where this table keeps its listing. By default all
                folders are. `lint` does not know of folders without files that are new or gone.

        Raises:
            RouterError: as `scan`.
        """
        known = self._listing
        listing = (
            list_tree(self.root)
            if known is None or changed is None
            else list_changes(self.root, known, changed)
        )
        return RouteTable(
            self.root,
            listing,
            auto_head=self._auto_head,
            auto_options=self._auto_options,
            keep_listing=known is not None,
            former=(*self.routes, *self.unserved_routes),
        )

    def find(self, method: str, raw_path: bytes) -> Found | None:
        """Return the outcome of `resolve` for most requests that a route serves; None for others.

        Args:
            method: the verb as sent.
            raw_path: `raw_path` of the ASGI scope.
        """
        places = self._places
        if (place := places.get(raw_path)) is not None:
            return place.verbs.get(method)
        # Most routes have one parameter, at the end or before a last static segment, and most
        # values are letters and digits: no whole walk for these.
        parent, _, last = raw_path.rpartition(b"/")
        if (place := places.get(parent)) is not None:
            child = place.dynamic
            if (
                child is not None
                and last.isalnum()
                and last not in place.static
                and (served := child.verbs.get(method)) is not None
            ):
                found = new_found(Found)
                found.route, found.params = served.route, {child.parameter: last.decode()}
                return found
            return None
        above, _, middle = parent.rpartition(b"/")
        if (place := places.get(above)) is not None and PERCENT not in raw_path:
            answer = match_path(place, (middle, last), method)
            if type(answer) is Found:
                return answer
        return None

    def resolve(
        self, method: str, raw_path: bytes | str, version: str | None = None
    ) -> Found | MethodNotAllowed | NotFound | MalformedPath | AutoOptions:
        """Return the outcome of an HTTP request; never raises, whatever a client sends.

        Args:
            method: the verb as sent; verbs are case-sensitive and only `METHODS` dispatch.
            raw_path: `raw_path` of the ASGI scope. Text is taken as already decoded (the `path`
                of a server that gives no `raw_path`): nothing in it is percent-decoded again.
            version: resolve the whole path below this version, one of `versions`, as
                default-to-latest does: '/user' is looked up as '/v3/user'.

        Source: routing rules 5 and 8, resolution outcomes; RFC 9110 section 15.5.6.
        """
        if not isinstance(raw_path, bytes):
            raw_path = to_raw_path(raw_path)
        if version is not None:
            path = self._prefix_path_with_version(version, raw_path)
            return self.resolve(method, path) if isinstance(path, bytes) else path
        if (found := self.find(method, raw_path)) is not None:
            return found
        answer = self._match_path(method, raw_path)
        return self._apply_auto_options(answer, raw_path) if method == "OPTIONS" else answer

    def resolve_socket(
        self, raw_path: bytes | str, *, version: str | None = None
    ) -> Found | MethodNotAllowed | NotFound | MalformedPath:
        """Return the outcome of a WebSocket handshake; never raises.

        Args:
            raw_path: as for `resolve`.
            version: as for `resolve`.
        """
        path = self._prefix_path_with_version(version, to_raw_path(raw_path))
        return self._match_path(None, path) if isinstance(path, bytes) else path

    def route_at(self, raw_path: bytes | str, version: str | None = None) -> Route | None:
        """Return one of the routes at a path, whatever their methods; they share its template.

        Used for messages about a request that no route serves.

        Args:
            raw_path: as for `resolve`.
            version: as for `resolve`.
        """
        path = self._prefix_path_with_version(version, to_raw_path(raw_path))
        if not isinstance(path, bytes):
            return None
        for verb in (None, *METHODS):
            answer = self._match_path(verb, path)
            if isinstance(answer, Found):
                return answer.route
            if not isinstance(answer, MethodNotAllowed):
                return None
        return None

    def lint(self) -> tuple[Finding, ...]:
        """Return constructs that work but may surprise: names in brackets, clashing spellings."""
        return find_lint_findings(self.routes, self.duplicates, self._clashes, self._ordinary)

    def find_layer_findings(self) -> tuple[Finding, ...]:
        """Return the errors in versions that inherit, such as a mark that removes nothing."""
        from treefold_router._layer_findings import find_layer_findings  # not needed for serving

        return find_layer_findings(self.layers, self.routes)

    def explain(
        self, method: str, raw_path: bytes | str, *, default_version: str | None = None
    ) -> "Explanation":
        """Explain why a request is answered as it is; for diagnosis, not for serving.

        Args:
            method: one of `METHODS`, or 'WEBSOCKET' for a handshake.
            raw_path: as for `resolve`.
            default_version: the version that serves a path without one; None for no version.
        """
        from treefold_router._explain import Tree, explain_request  # not needed for serving

        tree = Tree(
            self._trie,
            self.routes,
            self.skipped,
            self.versions,
            self.latest,
            duplicates=self.duplicates,
            auto_options=self._auto_options,
            hidden=[one for found in self.layers.hidden.values() for one in found],
            unserved=[name for name in self.layers.settings if not self.layers.is_served(name)],
        )
        path = to_raw_path(raw_path)
        found = explain_request(tree, method, path)
        if default_version is None or not found.unversioned or found.route is not None:
            return found
        versioned = explain_request(tree, method, b"/" + default_version.encode() + path)
        kept = {"path": found.path, "unversioned": True, "default_version": default_version}
        return replace(versioned, **kept)

    def _prefix_path_with_version(
        self, version: str | None, raw_path: bytes
    ) -> bytes | NotFound | MalformedPath:
        if version is None:
            return raw_path
        if (prefix := self._prefixes.get(version)) is None:
            return _NOT_FOUND
        return prefix + raw_path if raw_path.startswith(b"/") else NO_SLASH

    def _match_path(
        self, verb: str | None, raw_path: bytes
    ) -> Found | MethodNotAllowed | NotFound | MalformedPath:
        segments = raw_path.split(b"/")
        if PERCENT in raw_path:
            segments = decode_and_compact_segments(segments)
        # The text before the first slash is empty in a valid path.
        answer = None if segments[0] else match_path(self._trie, segments, verb)
        if isinstance(answer, Found):
            return answer
        allow = "" if answer is None else self._format_allow_header(answer)
        return MethodNotAllowed(allow) if allow else _classify_unmatched_path(segments)

    def _apply_auto_options(
        self, answer: Found | MethodNotAllowed | NotFound | MalformedPath, raw_path: bytes
    ) -> Found | MethodNotAllowed | NotFound | MalformedPath | AutoOptions:
        if self._auto_options and isinstance(answer, MethodNotAllowed):
            return AutoOptions(answer.allow)
        if raw_path == b"*":
            # The server as a whole (RFC 9110, 9.3.7): well-formed, and the path of no route.
            return AutoOptions(self._format_all_methods()) if self._auto_options else _NOT_FOUND
        return answer

    def _format_all_methods(self) -> str:
        methods = {route.method for route in self.routes} | {"OPTIONS"}
        if self._auto_head and "GET" in methods:
            methods.add("HEAD")
        return ", ".join(sorted(methods))

    def _format_allow_header(self, node: TrieNode) -> str:
        methods = {WEBSOCKET if verb is None else verb for verb in node.verbs}
        if methods and self._auto_options:
            methods.add("OPTIONS")
        return ", ".join(sorted(methods))


def _classify_unmatched_path(segments: list[bytes]) -> NotFound | MalformedPath:
    if (fault := find_defect(segments)) is not None:
        return fault
    first = next(filter(None, segments), b"")
    return _NOT_FOUND if is_version_name(first.decode()) else _UNVERSIONED
