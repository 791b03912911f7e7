"""Collect the description of each route from its file and its signature.

Done once for all documents of a project; independent of the structure of a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from treefold_http._chains.middleware_chain import select_route_middlewares
from treefold_http._description.credentials import Clash, rename_clashing_schemes
from treefold_http._description.locations import (
    RouteLocation,
    assign_operation_ids,
    locate_route_in_document,
)
from treefold_http._description.source_reader import FunctionFacts, SourceReader
from treefold_http._injection.contract import Contract, Input
from treefold_http._injection.secured import Security, merge_security_requirements, read_security
from treefold_http._plans.deprecation import Deprecation
from treefold_http._plans.handlers import CalledHandler, HandlerModule
from treefold_http._wire.aliases import AnyCallable
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
        raised: statuses of errors that the handler and its dependencies raise in their source.
        refused: statuses with which credentials and checks of the framework refuse.
        security: its security requirements.
        entries: the middleware that it runs through, the outermost first.
        deprecation: its own deprecation, completed by that of its version; None without one.
        bases: the handlers of base versions that it calls, whose errors it passes on.
    """

    route: Route
    module: HandlerModule
    place: RouteLocation
    id: str
    contract: Contract
    reading: FunctionFacts
    raised: frozenset[int]
    refused: frozenset[int]
    security: tuple[Security, ...]
    entries: Sequence[Any]
    deprecation: Deprecation | None = None
    bases: tuple[RouteDescription, ...] = ()

    @property
    def statuses(self) -> frozenset[int]:
        """All statuses of errors that are known of the functions."""
        return self.raised | self.refused

    @property
    def handler_function(self) -> AnyCallable:
        """The handler."""
        return self.module.handler

    def select_inputs(self, *places: str) -> list[Input]:
        """Return the inputs from the given places."""
        return [found for found in self.contract.inputs if found.place in places]


Known: TypeAlias = dict[tuple[str, str], tuple[tuple[object, ...], RouteDescription]]
"""Descriptions that were made before, by method and path, each with what it was made of."""


def describe_routes(
    app: Host, project: LoadedProject, known: Known | None = None
) -> tuple[list[RouteDescription], list[Clash]]:
    """Return the descriptions of all routes, and the security schemes that share a name.

    A route that cannot be served is left out. A route whose description fails is left out with a
    warning, so that the rest of the document is still available.

    Args:
        known: descriptions of a former load; those whose modules, plans and middleware are the
            same objects are taken from it, and it is updated.
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
    broken = {broken.file for broken in project.report.broken}
    former = known or {}
    kept: Known = {}
    for route, place, _ in places:
        module = project.modules[route]
        if not isinstance(module, HandlerModule) or route.file in broken:
            continue
        key = route.method, route.template
        deprecation = project.deprecations.routes.get(route)
        basis = (module, project.plans[route].contract, deprecation, *project.middlewares)
        try:
            described = _find_known(former.get(key), basis, ids[route]) or _describe_route(
                project, route, module, place, ids[route], read
            )
        except Exception as error:  # the signature is user code and may raise anything
            text = "%s is not in the OpenAPI document: %s"
            get_logger().warning(text, route.file, error, exc_info=error)
            continue
        found.append(described)
        kept[key] = basis, described
    if known is not None:
        known.clear()
        known.update(kept)
    return rename_clashing_schemes(found, app.root)


def _find_known(
    former: tuple[tuple[object, ...], RouteDescription] | None,
    basis: tuple[object, ...],
    operation_id: str,
) -> RouteDescription | None:
    if former is None or len(former[0]) != len(basis) or former[1].id != operation_id:
        return None
    is_same = all(old is new for old, new in zip(former[0], basis, strict=True))
    return former[1] if is_same else None


def _describe_route(
    project: LoadedProject,
    route: Route,
    module: HandlerModule,
    place: RouteLocation,
    operation_id: str,
    read: SourceReader,
) -> RouteDescription:
    contract = project.plans[route].contract
    entries = select_route_middlewares(route, [*project.middlewares, *module.middlewares])
    reading = read(module.handler)
    called = _list_called_bases(module)
    if called:  # a body that a base reads is read of the same request
        bodies = [read(base.module.handler).calls for base in called]
        reading = reading._replace(calls=reading.calls.union(*bodies))
    readings = [reading, *map(read, contract.dependency_functions)]
    functions = [*contract.dependency_functions, *entries]
    marked = [security for entry in entries for security in read_security(entry)]
    described = RouteDescription(
        route=route,
        module=module,
        place=place,
        id=operation_id,
        contract=contract,
        reading=reading,
        raised=frozenset[int]().union(*(each.statuses for each in readings)),
        refused=frozenset(status for each in functions for status in read_error_statuses(each)),
        security=merge_security_requirements([*marked, *contract.security]),
        entries=entries,
        deprecation=project.deprecations.routes.get(route),
    )
    bases = (
        replace(
            described,
            route=base.route,
            module=base.module,
            contract=Contract(outputs=tuple(base.outputs)),
            reading=read(base.module.handler),
        )
        for base in called
    )
    return replace(described, bases=tuple(bases)) if called else described


def _list_called_bases(module: HandlerModule) -> list[CalledHandler]:
    """Return the handlers of base versions that a handler calls, and those that they call."""
    bases = list(module.bases.values())
    return [*bases, *(inner for base in bases for inner in _list_called_bases(base.module))]


def read_error_statuses(function: object) -> frozenset[int]:
    """Return the statuses that a credential or a check of the framework says of itself."""
    statuses = getattr(function, "error_statuses", None)
    return cast("frozenset[int]", statuses) if isinstance(statuses, frozenset) else frozenset()
