"""Routes in the order and shape people read them.

Pure: routes in, lines out. Nothing is printed here.
"""

from collections.abc import Iterable, Iterator

from treefold_router import METHODS, Route, version_number

_RANK = {method: rank for rank, method in enumerate(METHODS)}


def sort_by_url(routes: Iterable[Route]) -> list[Route]:
    """Sort `routes` by version number, URL and method."""
    return sorted(routes, key=_sort_key)


def render_route_tree(routes: Iterable[Route]) -> Iterator[str]:
    """Draw `routes` as an indented tree of URL segments, each with its methods.

    Args:
        routes: the routes of one table, in any order.

    Yields:
        One line per segment: a version, then the segments below it.
    """
    methods: dict[tuple[str, ...], list[str]] = {}
    for route in sort_by_url(routes):
        segments = tuple(route.template.strip("/").split("/"))
        for depth in range(1, len(segments) + 1):
            methods.setdefault(segments[:depth], [])
        methods[segments].append(route.method)
    labels = {place: "  " * (len(place) - 1) + "/" + place[-1] for place in methods}
    width = max(map(len, labels.values()), default=0)
    for place, label in labels.items():
        yield f"{label:{width}}  {' '.join(methods[place])}".rstrip()


def _sort_key(route: Route) -> tuple[int, list[str], int]:
    number = version_number(route.version) or 0
    return number, route.template.split("/"), _RANK.get(route.method, len(_RANK))
