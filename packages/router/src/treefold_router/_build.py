"""Build a trie from a listing of the tree: the files that serve, and those that lost.

Runs once per table. Order matters here and nowhere else: entries are visited in sorted path
order, folder by folder and by code point, whatever order the disk gave them in.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType

from treefold_router._classify import Endpoint, classify_entry
from treefold_router._layers import NO_LAYERS, InheritedEntry, Layers
from treefold_router._naming import WEBSOCKET, version_number
from treefold_router._scan import Entry, Listing
from treefold_router._trie import TrieNode, insert_path, walk_static_paths
from treefold_router._types import Duplicate, Found, Route, Skipped

_NO_PARAMS: Mapping[str, str] = MappingProxyType({})
_Places = dict[tuple[TrieNode, str], list[Route]]
"""The routes at each node of the trie, by method; the last one serves."""


@dataclass(frozen=True, slots=True)
class BuiltTable:
    """Everything a table is made of.

    Args:
        trie: its root node; the version folders are the children.
        places: raw path of a place that no parameter leads to, as clients spell it, to its node.
        routes: the routes that serve, in visiting order.
        skipped: in visiting order.
        duplicates: in the order their first files were visited.
        unserved: the routes of versions that are only a base, in visiting order.
    """

    trie: TrieNode
    places: Mapping[bytes, TrieNode]
    routes: tuple[Route, ...]
    skipped: tuple[Skipped, ...]
    duplicates: tuple[Duplicate, ...]
    unserved: tuple[Route, ...]


def build_table(
    listing: Listing,
    *,
    auto_head: bool,
    former: Iterable[Route] = (),
    layers: Layers = NO_LAYERS,
) -> BuiltTable:
    """Classify and insert every entry of a listing, and those that versions inherit.

    Args:
        layers: the settings of the versions in the listing.
        former: routes of before; those that are the same stay the same objects.

    Source: routing rules 2 and 6: the later file serves, the earlier folder names a parameter.
    """
    trie = TrieNode()
    known = {(route.version, route.file): route for route in former}
    places, skipped = _insert_entries(trie, layers.list_entries(listing), known)
    _add_routes(places, auto_head=auto_head)
    unserved: _Places = {}
    if layers.unserved:
        unserved, _ = _insert_entries(TrieNode(), layers.list_unserved_entries(listing), known)
    return BuiltTable(
        trie,
        {path: node for path, node in walk_static_paths(trie) if node.verbs or node.dynamic},
        _select_last_routes(places),
        tuple(skipped),
        tuple(
            _make_duplicate(routes)
            for routes in places.values()
            # where its base is served, a version repeats nothing of it
            if len(routes) > 1 and not _is_served_base(routes[0], layers)
        ),
        _select_last_routes(unserved),
    )


def _insert_entries(
    trie: TrieNode, entries: Iterable[Entry], known: Mapping[tuple[str, str], Route]
) -> tuple[_Places, list[Skipped]]:
    """Insert the places of entries into a trie; return their routes, and the files left out."""
    skipped: list[Skipped] = []
    places: _Places = {}
    for entry in sorted(entries, key=attrgetter("parts")):
        verdict = classify_entry(entry)
        if isinstance(verdict, Endpoint):
            node, route = _insert_endpoint(trie, verdict, known)
            places.setdefault((node, route.method), []).append(route)
        elif verdict is not None and not isinstance(entry, InheritedEntry):
            skipped.append(verdict)
    return places, skipped


def _select_last_routes(places: _Places) -> tuple[Route, ...]:
    """Return the route that serves each place, in visiting order."""
    return tuple(sorted((routes[-1] for routes in places.values()), key=_route_sort_key))


def collect_sorted_versions(routes: tuple[Route, ...]) -> tuple[str, ...]:
    """Return the versions that have a route, ascending by number, the plainer spelling first."""
    return tuple(sorted({route.version for route in routes}, key=_version_sort_key))


def find_latest_version(versions: tuple[str, ...]) -> str | None:
    """Return the version with the highest number; of 'v1' and 'v01' the shorter."""
    # max() keeps the first of equals; `collect_sorted_versions` puts the shorter spelling first.
    return max(versions, key=_parse_version_number, default=None)


def _is_served_base(route: Route, layers: Layers) -> bool:
    return route.layer != route.version and layers.is_served(route.layer)


def _insert_endpoint(
    trie: TrieNode, endpoint: Endpoint, known: Mapping[tuple[str, str], Route]
) -> tuple[TrieNode, Route]:
    node, template, parameters = insert_path(trie, endpoint.folders)
    route = known.get((endpoint.folders[0], endpoint.file))
    # the file says method and version; another folder beside it may name a parameter
    if route is not None and (route.template, route.parameters) == (template, parameters):
        return node, route
    route = Route(endpoint.method, endpoint.folders[0], template, endpoint.file, parameters)
    return node, route


def _add_routes(places: _Places, *, auto_head: bool) -> None:
    for (node, method), routes in places.items():
        verb = None if method == WEBSOCKET else method
        node.register_outcome(verb, Found(routes[-1], _NO_PARAMS))
    if auto_head:
        for node, method in places:
            if method == "GET":
                node.register_outcome("HEAD", node.verbs.get("HEAD", node.verbs["GET"]))


def _make_duplicate(routes: list[Route]) -> Duplicate:
    return Duplicate(routes[0].method, routes[0].template, tuple(route.file for route in routes))


def _route_sort_key(route: Route) -> list[str]:
    return route.effective_file.split("/")


def _parse_version_number(version: str) -> int:
    return version_number(version) or 0


def _version_sort_key(version: str) -> tuple[int, int, str]:
    return _parse_version_number(version), len(version), version
