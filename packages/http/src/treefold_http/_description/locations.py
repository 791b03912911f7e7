"""Names of a route in a document: its path, its parameters, its operation id, its tags.

Folders can have almost any name, but a document has stricter rules: segments are percent-encoded,
parameter names and operation ids are identifiers for code generators.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from treefold_http._description.names import (
    TakenNames,
    choose_free_name,
    to_identifier,
    to_parameter_name,
)
from treefold_router import Route, parameter_name, segment_of, version_number

# characters of a segment that need no escape (RFC 3986, 3.3)
_SAFE = "-._~!$&'()*+,;=:@"


class RouteLocation(NamedTuple):
    """Location of a route in a document.

    Attributes:
        path: the path, with `{name}` for each parameter.
        parameters: documented name to the name of the parameter in the handler.
        words: the parts of an operation id.
        tag: the first folder below the version that names a subject; None for the root of the
            version.
    """

    path: str
    parameters: Mapping[str, str]
    words: tuple[str, ...]
    tag: str | None


def locate_route_in_document(route: Route) -> RouteLocation:
    """Return the location of a route."""
    folders = route.file.split("/")[1:-1]
    effective = iter(route.parameters)
    names: dict[str, str] = {}
    taken = TakenNames()
    segments: list[str] = [route.version]
    words: list[str] = [route.version]
    for folder in folders:
        if parameter_name(folder) is None:
            segments.append(quote(segment_of(folder), safe=_SAFE))
            words.append(to_identifier(segment_of(folder)))
        else:
            known = next(effective)
            plain = to_parameter_name(known)
            name = choose_free_name(plain, taken, plain)
            taken.add(name)
            names[name] = known
            segments.append(f"{{{name}}}")
            words += ["by", to_identifier(name)]
    static = [folder for folder in folders if parameter_name(folder) is None]
    subjects = [folder for folder in static if not _is_generic_folder(folder)]
    tag = next(iter([*subjects, *static]), None)
    return RouteLocation("/" + "/".join(segments), names, tuple(words), tag)


def _is_generic_folder(folder: str) -> bool:
    """Return True for a folder such as `Api`, which every route of a project may be in."""
    return re.fullmatch(r"api|rest|v[0-9]+", folder, re.IGNORECASE) is not None


def without_version(place: RouteLocation) -> RouteLocation:
    """Return the location of a route as the default version serves it."""
    _, _, rest = place.path.removeprefix("/").partition("/")
    return place._replace(path=f"/{rest}")


def assign_operation_ids(
    routes: Sequence[tuple[Route, RouteLocation, str | None]],
) -> dict[Route, str]:
    """Return a unique operation id for each route, the same in every document.

    Args:
        routes: all routes of the application, each with the id that its module sets. Where two
            modules set the same id, as copies of a version do, the later gets its version added.
    """
    found: dict[Route, str] = {}
    taken: set[str] = set()
    # ids that modules set come first: a made one gives way to them, whatever the order of routes
    for chosen in (True, False):
        for route, place, wanted in sorted(routes, key=_route_sort_key):
            if (wanted is not None) is not chosen:
                continue
            method = "socket" if route.method == "WEBSOCKET" else route.method.lower()
            plain = wanted or "_".join([method, *place.words])
            candidates = [plain, f"{plain}_{route.version}"] if wanted else [plain]
            found[route] = choose_free_name(candidates[-1], taken, *candidates)
            taken.add(found[route])
    return found


def _route_sort_key(entry: tuple[Route, RouteLocation, str | None]) -> tuple[int, str, str, str]:
    route = entry[0]
    return version_number(route.version) or 0, route.version, route.template, route.method
