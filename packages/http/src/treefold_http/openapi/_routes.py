"""Collect the description of each route from its file and its signature.

Done once for all documents of a site; independent of the structure of a document.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from treefold_http._loader import HandlerModule
from treefold_http._middleware import entries_for
from treefold_http._plan import WEBSOCKET
from treefold_http._security import Security, security_of
from treefold_http.openapi._code import Reading, read_code
from treefold_http.openapi._credentials import Clash, joined, name_schemes
from treefold_http.openapi._inputs import Input, taken_by
from treefold_http.openapi._paths import Place, operation_ids, place_of
from treefold_logging import get_logger
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._application import Application
    from treefold_http._boot import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Description of a route.

    Attributes:
        route, module: the route and its handler module.
        place: its path and the names in it.
        id: its operation id.
        inputs: the values that a client sends.
        reading: result of reading the source of the handler.
        statuses: of errors that its dependencies raise, and those that the handler raises.
        security: its security requirements.
        entries: the middleware that it runs through, the outermost first.
    """

    route: Route
    module: HandlerModule
    place: Place
    id: str
    inputs: tuple[Input, ...]
    reading: Reading
    statuses: frozenset[int]
    security: tuple[Security, ...]
    entries: Sequence[Any]

    @property
    def handler(self) -> Callable[..., Any]:
        """The handler."""
        return self.module.handler

    def sent(self, *places: str) -> list[Input]:
        """Return the inputs from the given places."""
        return [found for found in self.inputs if found.place in places]


def describe_routes(app: Application, site: Site) -> tuple[list[Described], list[Clash]]:
    """Return the descriptions of all routes of a site, and the security schemes that share a name.

    A route that cannot be served is left out. A route whose description fails is left out with a
    warning, so that the rest of the document is still available.
    """
    places = [
        (route, place_of(route), module.operation_id if isinstance(module, HandlerModule) else None)
        for route, module in site.modules.items()
    ]
    ids = operation_ids(places)
    read = _Reader()
    found: list[Described] = []
    broken = {broken.file for broken in site.report.broken}
    for route, place, _ in places:
        module = site.modules[route]
        if not isinstance(module, HandlerModule) or route.file in broken:
            continue
        try:
            found.append(_describe(app, site, route, module, place, ids[route], read))
        except Exception as error:  # the signature is user code and may raise anything
            get_logger().warning(
                "%s is not in the OpenAPI document: %s", route.file, error, exc_info=error
            )
    return name_schemes(found, app.root)


class _Reader:
    """Reads the source of each function once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Reading]] = {}

    def __call__(self, function: Callable[..., Any]) -> Reading:
        known = self._known.get(id(function))
        if known is None:
            known = self._known[id(function)] = (function, read_code(function))
        return known[1]


def _describe(
    app: Application,
    site: Site,
    route: Route,
    module: HandlerModule,
    place: Place,
    operation_id: str,
    read: _Reader,
) -> Described:
    taken = taken_by(
        module.handler,
        app.injection,
        path_parameters=route.parameters,
        kind="websocket" if route.method == WEBSOCKET else "request",
    )
    entries = entries_for(route, [*site.middlewares, *module.middlewares])
    reading = read(module.handler)
    readings = [reading, *map(read, taken.functions)]
    marked = [*entries, *taken.functions, module.handler]
    demands = joined(found for target in marked for found in security_of(target))
    return Described(
        route=route,
        module=module,
        place=place,
        id=operation_id,
        inputs=taken.inputs,
        reading=reading,
        statuses=frozenset(status for found in readings for status in found.statuses),
        security=demands,
        entries=entries,
    )


def words_of(described: Described) -> dict[str, Any]:
    """Return summary, description, tags and deprecation, as both kinds of document hold them."""
    module = described.module
    first, _, rest = _docstring(module.handler).partition("\n")
    summary = first.strip() if module.summary is None else module.summary
    description = rest.strip() if module.description is None else module.description
    said: dict[str, Any] = {"operationId": described.id}
    if summary:
        said["summary"] = summary
    if description:
        said["description"] = description
    tags = tags_of(described)
    if tags:
        said["tags"] = tags
    if module.deprecated:
        said["deprecated"] = True
    return said


def tags_of(described: Described) -> list[str]:
    """Return the tags of the module, else its folder as the only tag."""
    if described.module.tags is not None:
        return list(dict.fromkeys(described.module.tags))
    return [described.place.tag] if described.place.tag else []


def _docstring(handler: Any) -> str:
    while isinstance(handler, partial):
        handler = cast("partial[Any]", handler).func
    if not inspect.isroutine(handler) and not isinstance(handler, type):
        handler = type(handler).__call__
    return inspect.cleandoc(handler.__doc__ or "")
