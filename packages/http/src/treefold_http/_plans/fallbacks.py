"""Plans for requests that match no route: 404, 405, `OPTIONS`, and preflights of CORS.

Of `Api/v1/Shop/Get.py`, a `Put.py` beside it with `middlewares = [CORS([...])]`, and
`Api/v1/Page/Get.py`, in a project with `middlewares = [everywhere, under("/v1/shop", guard)]`:

    request                                          plan, and what runs      response
    GET /v1/nothing                                  common: everywhere       404
    GET /v1/shop/nothing, no template has this path  common: everywhere       404
    DELETE /v1/page                                  common: everywhere       405, Allow: GET
    DELETE /v1/shop                                  below: with guard        405, Allow: GET, PUT
    OPTIONS /v1/shop, asks for PUT                   preflights: with CORS    204 of the preflight
    OPTIONS /v1/shop, asks for GET                   below: with guard        405, Allow: GET, PUT

The middleware of a subtree (`under`) thus runs for every response at the path of a route below its
prefix, whatever the method. A preflight asks for a later request, by its field
`Access-Control-Request-Method`: it runs through the middleware of that request's route, as far as
that middleware answers preflights.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from treefold_http._chains.middleware_chain import (
    build_route_layers,
    compose_middleware_chain,
    select_covering_middlewares,
    select_route_middlewares,
    unwrap_middleware_entry,
)
from treefold_http._chains.subtrees import Under
from treefold_http._plans.plans import WEBSOCKET, OutermostLayer, Plan, wrap_in_outermost
from treefold_http._responses.response import Response
from treefold_http._wire.errors import (
    NOTHING_HERE,
    BadRequest,
    HTTPError,
    MethodNotAllowed,
    NotFound,
)
from treefold_router import (
    AutoOptions,
    Found,
    MalformedPath,
    MethodNotAllowed as WrongMethod,
    Route,
    RouteTable,
)

if TYPE_CHECKING:
    from treefold_http._plans.handlers import HandlerModule
    from treefold_http._plans.runtime import ProjectRuntime
    from treefold_http._requests.request import Request

ASKED = b"access-control-request-method"
"""The field of a preflight that names the method of the later request."""


@dataclass(frozen=True, slots=True)
class ScopedFallbacks:
    """The plans without a route that have more middleware than the common one.

    Attributes:
        below: by template, for templates that entries of a subtree cover: `{"/v1/shop": ...}`.
        preflights: by route, for modules with middleware that answers preflights: that of `Put.py`.
        versions: by version that is deprecated, for its paths that no route has.
    """

    below: Mapping[str, Plan] = field(default_factory=dict[str, Plan])
    preflights: Mapping[Route, Plan] = field(default_factory=dict[Route, Plan])
    versions: Mapping[str, Plan] = field(default_factory=dict[str, Plan])

    def __bool__(self) -> bool:
        return bool(self.below or self.preflights or self.versions)

    def find_fallback_plan(
        self, request: Request, table: RouteTable, path: bytes | str, version: str | None
    ) -> Plan | None:
        """Return the plan of a request that no route serves; None for the common plan."""
        preflight = request.fields.get(ASKED) if request.method == "OPTIONS" else None
        if preflight is not None and self.preflights:
            asked = preflight.decode("latin-1")
            outcome = table.resolve(asked, path, version)
            if isinstance(outcome, Found) and outcome.route in self.preflights:
                # Other methods of the path may have other middleware, or none.
                request.fallback = MethodNotAllowed(headers={"Allow": asked})
                return self.preflights[outcome.route]
        if not self.below and not self.versions:
            return None
        if (route := table.route_at(path, version)) is not None:
            return self.below.get(route.template)
        return self._find_version_plan(path) if self.versions else None

    def _find_version_plan(self, path: bytes | str) -> Plan | None:
        text = path if isinstance(path, str) else path.decode("latin-1")
        return self.versions.get(text.lstrip("/").partition("/")[0])


def plan_fallback(
    app: ProjectRuntime, entries: Sequence[Any], outermost: Sequence[OutermostLayer] = ()
) -> Plan:
    """Compose the plan that responds with `request.fallback`, inside middleware.

    Args:
        outermost: layers of the framework around the middleware.
    """
    layers = build_route_layers(None, entries)
    chain = compose_middleware_chain(app, layers, _respond_with_fallback)
    run = wrap_in_outermost(chain, outermost)
    return Plan(route=None, run=run, max_body=app.settings.max_body)


def plan_scoped_fallbacks(
    app: ProjectRuntime,
    modules: Mapping[Route, HandlerModule | Any],
    middlewares: Sequence[Any],
    version_layers: Mapping[str, Sequence[OutermostLayer]] = MappingProxyType({}),
) -> ScopedFallbacks:
    """Compose the additional plans for the templates and routes that need their own.

    Args:
        version_layers: by version, layers of the framework around all answers below it.
    """
    common = select_route_middlewares(None, middlewares)
    made: dict[tuple[int, ...], Plan] = {}

    def plan_once(entries: Sequence[Any], outermost: Sequence[OutermostLayer]) -> Plan:
        # thousands of routes have few different lists of middleware
        key = tuple(map(id, (*outermost, *entries)))
        if key not in made:
            made[key] = plan_fallback(app, entries, outermost)
        return made[key]

    below: dict[str, Plan] = {}
    preflights: dict[Route, Plan] = {}
    is_scoped = any(isinstance(entry, Under) for entry in middlewares)
    for route, module in modules.items():
        outermost = version_layers.get(route.version, ())
        if not is_scoped and not outermost and not getattr(module, "middlewares", ()):
            continue
        # Also where the only route is a socket: these plans answer requests.
        covering = select_covering_middlewares(
            middlewares, partial(Under.covers_route, route=route)
        )
        # `covering` holds all of `common`, so it differs only where it is longer
        if outermost or len(covering) > len(common):
            below[route.template] = plan_once(covering, outermost)
        own = [each for each in getattr(module, "middlewares", ()) if _answers_preflights(each)]
        own = select_route_middlewares(route, own)
        if own and route.method != WEBSOCKET:
            preflights[route] = plan_once([*covering, *own], outermost)
    versions = {name: plan_once(common, layers) for name, layers in version_layers.items()}
    return ScopedFallbacks(below, preflights, versions)


def build_routing_error(outcome: object) -> HTTPError:
    """Return the 404 or 400 of a path without a route."""
    if isinstance(outcome, MalformedPath):
        return BadRequest(outcome.reason)
    return NotFound(NOTHING_HERE)


def build_fallback_response(outcome: object) -> HTTPError | Response:
    """Return the answer to a path without a route: OPTIONS, 404, 405 or 400."""
    if isinstance(outcome, AutoOptions):
        return Response.empty(headers={"Allow": outcome.allow})
    if isinstance(outcome, WrongMethod):
        headers = {"Allow": outcome.allow}
        if outcome.allow == "WEBSOCKET":
            headers["Upgrade"] = "websocket"
        return MethodNotAllowed(f"This path answers {outcome.allow}", headers=headers)
    return build_routing_error(outcome)


def _answers_preflights(entry: Any) -> bool:
    return getattr(unwrap_middleware_entry(entry), "answers_preflights", False)


async def _respond_with_fallback(request: Request) -> Any:
    fallback = request.fallback
    if isinstance(fallback, HTTPError):
        raise fallback
    if isinstance(fallback, Response):
        return fallback
    answer = cast("Callable[[Request], Awaitable[Response]]", fallback)
    return await answer(request)
