"""Collect the description of each route from its file and its signature.

Done once for all documents of a project; independent of the structure of a document.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from treefold_http._chains.middleware_chain import select_route_middlewares
from treefold_http._injection.contract import Contract, Input
from treefold_http._injection.secured import Security, merge_security_requirements, read_security
from treefold_http._plans.handlers import HandlerModule
from treefold_http._wire.aliases import AnyCallable, JSONObject
from treefold_http.openapi._credentials import Clash, rename_clashing_schemes
from treefold_http.openapi._paths import (
    RouteLocation,
    assign_operation_ids,
    locate_route_in_document,
)
from treefold_http.openapi._source import FunctionFacts, SourceReader
from treefold_logging import get_logger
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._project.loaded_project import LoadedProject
    from treefold_http._serving.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteDescription:
    """Description of a route.

    Attributes:
        route, module: the route and its handler module.
        place: its path and the names in it.
        id: its operation id.
        contract: what the handler takes and gives.
        reading: result of reading the source of the handler.
        statuses: of errors that its dependencies raise, and those that the handler raises.
        security: its security requirements.
        entries: the middleware that it runs through, the outermost first.
    """

    route: Route
    module: HandlerModule
    place: RouteLocation
    id: str
    contract: Contract
    reading: FunctionFacts
    statuses: frozenset[int]
    security: tuple[Security, ...]
    entries: Sequence[Any]

    @property
    def handler_function(self) -> AnyCallable:
        """The handler."""
        return self.module.handler

    def select_inputs(self, *places: str) -> list[Input]:
        """Return the inputs from the given places."""
        return [found for found in self.contract.inputs if found.place in places]


def describe_routes(
    app: Host, project: LoadedProject
) -> tuple[list[RouteDescription], list[Clash]]:
    """Return the descriptions of all routes, and the security schemes that share a name.

    A route that cannot be served is left out. A route whose description fails is left out with a
    warning, so that the rest of the document is still available.
    """
    places = [
        (
            route,
            locate_route_in_document(route),
            module.operation_id if isinstance(module, HandlerModule) else None,
        )
        for route, module in project.modules.items()
    ]
    ids = assign_operation_ids(places)
    read = SourceReader()
    found: list[RouteDescription] = []
    broken = {broken.place for broken in project.report.broken}
    for route, place, _ in places:
        module = project.modules[route]
        if not isinstance(module, HandlerModule) or route.effective_file in broken:
            continue
        try:
            contract = project.plans[route].contract
            entries = select_route_middlewares(route, [*project.middlewares, *module.middlewares])
            reading = read(module.handler)
            readings = [reading, *map(read, contract.dependency_functions)]
            functions = [*contract.dependency_functions, *entries]
            known = [status for each in functions for status in read_error_statuses(each)]
            marked = [security for entry in entries for security in read_security(entry)]
            described = RouteDescription(
                route=route,
                module=module,
                place=place,
                id=ids[route],
                contract=contract,
                reading=reading,
                statuses=frozenset(known).union(*(each.statuses for each in readings)),
                security=merge_security_requirements([*marked, *contract.security]),
                entries=entries,
            )
            found.append(described)
        except Exception as error:  # the signature is user code and may raise anything
            text = "%s is not in the OpenAPI document: %s"
            get_logger().warning(text, route.file, error, exc_info=error)
    return rename_clashing_schemes(found, app.root)


def read_error_statuses(function: object) -> frozenset[int]:
    """Return the statuses that a credential or a check of the framework says of itself."""
    statuses = getattr(function, "error_statuses", None)
    return cast("frozenset[int]", statuses) if isinstance(statuses, frozenset) else frozenset()


def build_operation_metadata(described: RouteDescription) -> JSONObject:
    """Return summary, description, tags and deprecation, as both kinds of document hold them."""
    module = described.module
    first, _, rest = _read_docstring(module.handler).partition("\n")
    summary = first.strip() if module.summary is None else module.summary
    description = rest.strip() if module.description is None else module.description
    said: JSONObject = {"operationId": described.id}
    if summary:
        said["summary"] = summary
    if description:
        said["description"] = description
    if tags := list_tags(described):
        said["tags"] = tags
    if module.deprecated:
        said["deprecated"] = True
    return said


def list_tags(described: RouteDescription) -> list[str]:
    """Return the tags of the module, else its folder as the only tag."""
    if described.module.tags is not None:
        return list(dict.fromkeys(described.module.tags))
    return [described.place.tag] if described.place.tag else []


def _read_docstring(handler: Any) -> str:
    while isinstance(handler, partial):
        handler = cast("partial[Any]", handler).func
    if not inspect.isroutine(handler) and not isinstance(handler, type):
        handler = type(handler).__call__
    return inspect.cleandoc(handler.__doc__ or "")
