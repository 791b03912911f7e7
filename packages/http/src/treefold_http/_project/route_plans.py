"""Plan the routes of a project: all of them at boot, those that a save has changed in a reload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from treefold_http._chains.middleware_chain import compose_middleware_chain
from treefold_http._plans.handlers import HandlerModule
from treefold_http._plans.plans import (
    WEBSOCKET,
    OutermostLayer,
    Plan,
    build_broken_file_plan,
    compose_route_plan,
    rewrap_plan_in_middleware,
)
from treefold_http._project.findings import Findings
from treefold_http._responses.endpoints import CallNext
from treefold_http._responses.response import Response
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._injection.providers import Key
    from treefold_http._plans.runtime import ProjectRuntime
    from treefold_http._requests.request import Request
    from treefold_http._runtime.boot_report import BrokenFile


def plan_routes(
    app: ProjectRuntime,
    modules: dict[Route, HandlerModule | BrokenFile],
    middlewares: Sequence[Any],
    findings: Findings | None = None,
    lookups_by_route: dict[Route, frozenset[Key]] | None = None,
    *,
    outermost: Mapping[Route, Sequence[OutermostLayer]] = MappingProxyType({}),
) -> dict[Route, Plan]:
    """Compose the plan of every route; a route whose parameters cannot be provided is broken.

    In a reload, a broken file keeps its last good module, written back to `modules`, and also its
    last good plan if no plan can be composed from that module now.

    Args:
        lookups_by_route: receives the keys of the providers that each plan has looked for.
        outermost: by route, the layers of the framework around all others.
    """
    findings = findings or Findings(str(app.root))
    plans: dict[Route, Plan] = {}
    for route, module in list(modules.items()):
        outer = outermost.get(route, ())
        if isinstance(module, HandlerModule):
            with app.providers.record_lookups(route, lookups_by_route):
                try:
                    plans[route] = compose_route_plan(app, route, module, middlewares, outer)
                    continue
                except Exception as error:  # reading a signature runs user code
                    module = findings.record_failure(
                        route.file, error, effective_file=route.effective_file
                    )
        if (good := findings.find_last_good_version(route.effective_file)) is None:
            plans[route] = build_broken_file_plan(app, route, module.error, middlewares, outer)
            continue
        modules[route], former = good
        try:
            plans[route] = compose_route_plan(app, route, good[0], middlewares, outer)
        except Exception:  # a provider is gone: the former plan still holds it
            plans[route] = replace(former, route=route)
    return plans


def rewrap_plans_in_middleware(
    app: ProjectRuntime,
    plans: Mapping[Route, Plan],
    modules: Mapping[Route, HandlerModule | BrokenFile],
    middlewares: Sequence[Any],
    outermost: Mapping[Route, Sequence[OutermostLayer]],
) -> dict[Route, Plan]:
    """Compose other middleware of the project around the planned handlers of routes.

    Args:
        outermost: as for `plan_routes`.

    Returns:
        The new plans; a route is missing if it must be planned again, which reports its failure.
    """
    wrapped: dict[Route, Plan] = {}
    for route, module in modules.items():
        if isinstance(module, HandlerModule):
            with suppress(Exception):  # an entry beside the handler may miss one outside
                wrapped[route] = rewrap_plan_in_middleware(
                    app, plans[route], module, middlewares, outermost.get(route, ())
                )
    return wrapped


def collect_last_good_plans(
    former: Mapping[str, tuple[HandlerModule, Plan]],
    modules: dict[Route, HandlerModule | BrokenFile],
    plans: dict[Route, Plan],
    findings: Findings,
) -> dict[str, tuple[HandlerModule, Plan]]:
    """Return, by file, the last module and plan that loaded, once routes are planned."""
    lost = {broken.place for broken in findings.broken if not broken.kept}
    good = dict(former)
    for route, module in modules.items():
        good.pop(route.effective_file, None)
        if isinstance(module, HandlerModule) and route.effective_file not in lost:
            good[route.effective_file] = (module, plans[route])
    return good


def add_broken_file_header(app: ProjectRuntime, plan: Plan, findings: Findings) -> Plan:
    """The same plan with a response header that names the broken file; only with `dev=True`."""
    if plan.route is not None and plan.route.method == WEBSOCKET:
        return plan
    first = findings.broken[0]
    # one line of ASCII: an error may quote any text, and a line break would end the field
    text = f"{first.cause}: {first.error}".encode("ascii", "backslashreplace").decode()
    value = "".join(char if char.isprintable() else " " for char in text).encode()

    async def add_broken_field(request: Request, call_next: CallNext) -> Response:
        request.add_answer_fields([(b"x-treefold-broken", value)])
        return await call_next(request)

    run = compose_middleware_chain(app, [add_broken_field], plan.run, status=plan.status)
    return replace(plan, run=run)
