"""Compose the plans of routes, once at boot.

`Plan.run` is the whole chain as one coroutine function. Without middleware, and with a handler that
takes only the request, it *is* the handler; every layer is added here and nowhere else.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from treefold_http._chains.cache_place import CacheLayer, collect_declared_names, has_cache
from treefold_http._chains.middleware_chain import (
    WEBSOCKET as WEBSOCKET,
    build_route_layers,
    compose_middleware_chain,
    has_project_middleware,
    prepare_middleware_entries,
    select_route_middlewares,
)
from treefold_http._chains.socket_chain import compose_socket_chain, require_layers_guard_socket
from treefold_http._chains.subtrees import Under
from treefold_http._extensions.calls import find_result_form
from treefold_http._injection.contract import OPAQUE, Contract
from treefold_http._injection.extension_inputs import admit_credential_names
from treefold_http._injection.inherited import BaseAnswer
from treefold_http._injection.resolver import (
    build_connection_only_contract,
    has_only_parameter,
    plan_call,
    plan_call_behind_cache,
)
from treefold_http._injection.secured import build_scope_checks
from treefold_http._plans.private_answers import build_private_answer_layers
from treefold_http._responses.coercion import PLAIN_STATUSES
from treefold_http._responses.endpoints import Endpoint
from treefold_http._responses.lines import find_declared_item_type, wrap_as_json_lines
from treefold_http._responses.return_types import check_return_type
from treefold_http._runtime.plan import RoutePlan
from treefold_http._types.outputs import Output, read_declared_outputs
from treefold_http._types.parameters import InjectionError
from treefold_http._wire.errors import HTTPError, ServiceUnavailable
from treefold_http._wire.limits import DEFAULT_LIMITS, Limits
from treefold_logging import is_sensitive
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._extensions.members import ResultForm
    from treefold_http._plans.handlers import HandlerModule
    from treefold_http._plans.runtime import ProjectRuntime


class OutermostLayer(Protocol):
    """A layer of the framework around all middleware of a route."""

    def wrap_endpoint(self, endpoint: Endpoint, /) -> Endpoint:
        """Return a chain of middleware inside the layer."""
        ...

    def wrap_socket(self, endpoint: Callable[[Any], Any], /) -> Callable[[Any], Any]:
        """Return the chain of a socket inside the layer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan(RoutePlan):
    """The plan of one route.

    Attributes:
        contract: what its handler takes and gives.
        inner: `run` without middleware; None if there is no handler.
        early: its dependencies that run before the look-up of a cache, which `inner` leaves out.
        has_cache: True if a cache keeps its answers.
    """

    contract: Contract = OPAQUE
    inner: Callable[[Any], Any] | None = None
    early: Endpoint | None = None
    has_cache: bool = False


def compose_route_plan(
    app: ProjectRuntime,
    route: Route,
    module: HandlerModule,
    project_middlewares: Sequence[Any],
    outermost: Sequence[OutermostLayer] = (),
) -> Plan:
    """Compose the plan of a route.

    Args:
        project_middlewares: the project's middleware, outermost first; the module's own run inside
            them.
        outermost: layers of the framework around all of them.

    Raises:
        InjectionError: when a parameter of the handler cannot be provided.
        TypeError: for a socket that an entry covers and cannot guard.
        ValueError: for an `under` of the module that does not cover its route.
    """
    if module.middlewares:
        prepare_middleware_entries(app, module.middlewares, app.extensions)
    chosen = _select_checked_route_middlewares(route, module, project_middlewares)
    form, outputs = find_declared_outputs(app, route, module)
    early, run, contract = _build_endpoint_and_contract(app, route, module, chosen)
    if module.bases:
        run = _pass_base_answers(run)
    if outputs:
        contract = replace(contract, outputs=outputs)
    if outputs and outputs[0].status is None:
        # Imported for the first module that has one: other projects do not pay for it.
        from treefold_http._responses.response_model import (
            apply_response_model,
            apply_result_form,
            apply_websocket_message_model,
        )

        if route.method == WEBSOCKET:
            run = apply_websocket_message_model(run, outputs, route.file)
        elif form is not None:
            run = apply_result_form(run, form, outputs, module.status_code, route.file)
        else:
            run = apply_response_model(run, outputs, module.status_code, route.file)
    if route.method != WEBSOCKET:
        run = _wrap_if_streaming_lines(run, route, module)
    if module.timeout is not None:
        run = _wrap_timeout(run, module.timeout)
        early = None if early is None else _wrap_timeout(early, module.timeout)
    entries = _build_and_configure_layers(route, chosen, contract, early)
    plan = Plan(
        route=route,
        contract=contract,
        run=_wrap_endpoint(app, route, entries, run, module.status_code, outermost, contract),
        inner=run,
        early=early,
        has_cache=has_cache(route, chosen),
        status=module.status_code,
        plain_status=_choose_plain_status(module.status_code),
        max_body=app.settings.max_body if module.max_body is None else module.max_body,
        form_limits=_build_form_limits(app.settings.max_body, module.max_body),
        masked=_find_masked_segments(route),
        log_payload=module.log_payload,
        is_layered=has_project_middleware(entries),
    )
    return _let_late_chain_replace_itself(plan)


def find_declared_outputs(
    app: ProjectRuntime, route: Route, module: HandlerModule
) -> tuple[ResultForm | None, tuple[Output, ...]]:
    """Return the types that the answers of a handler are held to; the model of success is first.

    Returns:
        What an extension adds to the results of the handler, None for nothing, and the types.

    Raises:
        InjectionError: for a model or an annotation that no response can be made of.
    """
    model, form = module.response_model, None
    if route.method != WEBSOCKET:
        annotated = check_return_type(module.handler, model)
        form = find_result_form(app.injection.extensions, model or annotated.annotation)
        model = model if form is None else form.type
    if model is None and not module.responses:
        return form, ()
    outputs = read_declared_outputs(model, module.responses)
    if form is not None:
        outputs = (replace(outputs[0], headers=tuple(form.headers.items())), *outputs[1:])
    return form, outputs


def rewrap_plan_in_middleware(
    app: ProjectRuntime,
    plan: Plan,
    module: HandlerModule,
    project_middlewares: Sequence[Any],
    outermost: Sequence[OutermostLayer] = (),
) -> Plan:
    """Return the plan of a route with other middleware of the project around its handler.

    Args:
        outermost: as for `compose_route_plan`.

    Raises:
        Exception: any exception of an entry.
    """
    if plan.route is None or plan.inner is None:
        raise ValueError("A plan without a handler cannot be wrapped; plan its route")
    chosen = _select_checked_route_middlewares(plan.route, module, project_middlewares)
    # `rewrap_plans_in_middleware` then leaves the route out, and it is planned whole
    if has_cache(plan.route, chosen) != plan.has_cache:
        raise ValueError("A handler is planned in another way behind a cache; plan its route")
    entries = _build_and_configure_layers(plan.route, chosen, plan.contract, plan.early)
    status, contract = module.status_code, plan.contract
    run = _wrap_endpoint(app, plan.route, entries, plan.inner, status, outermost, contract)
    rewrapped = replace(plan, run=run, is_layered=has_project_middleware(entries))
    return _let_late_chain_replace_itself(rewrapped)


def build_broken_file_plan(
    app: ProjectRuntime,
    route: Route,
    error: str,
    project_middlewares: Sequence[Any],
    outermost: Sequence[OutermostLayer] = (),
) -> Plan:
    """Return the plan of a file that failed to load: it answers 500.

    Args:
        outermost: as for `compose_route_plan`.
    """
    # in production the error stays in the log: it may quote a line of the source
    detail = f"handler failed to load: {error}" if app.dev else "handler failed to load"

    async def run(connection: Any) -> Any:
        raise HTTPError(500, detail)

    entries = build_route_layers(route, select_route_middlewares(route, project_middlewares))
    return Plan(
        route=route,
        run=_wrap_endpoint(app, route, entries, run, None, outermost),
        max_body=app.settings.max_body,
        masked=_find_masked_segments(route),
        is_layered=has_project_middleware(entries),
    )


def _select_checked_route_middlewares(
    route: Route, module: HandlerModule, project_middlewares: Sequence[Any]
) -> list[Any]:
    for entry in module.middlewares:
        # left out, the entry would guard nothing without a word
        if isinstance(entry, Under) and not entry.covers_route(route):
            raise ValueError(
                f"Prefix of under() in Api/{route.file} must cover its route {route.template}, got"
                f" {str(entry)!r}; leave under() out, or move the entry to Middleware/"
            )
    return select_route_middlewares(route, [*project_middlewares, *module.middlewares])


def _build_and_configure_layers(
    route: Route,
    chosen_entries: Sequence[Any],
    contract: Contract,
    run_before_cache: Endpoint | None,
) -> list[Any]:
    """Return the layers of a route; its cache learns what the handler declares."""
    admit_credential_names(contract, chosen_entries)
    is_split = run_before_cache is not None
    layers = build_route_layers(route, chosen_entries, has_steps_before_cache=is_split)
    if route.method == WEBSOCKET:
        require_layers_guard_socket(route.template, chosen_entries, layers)
        return layers
    for layer in layers:
        if isinstance(layer, CacheLayer):
            layer.early = run_before_cache
            layer.declared = collect_declared_names(contract, chosen_entries)
    return [*build_private_answer_layers(contract, chosen_entries), *layers]


def _wrap_endpoint(
    app: ProjectRuntime,
    route: Route,
    entries: Sequence[Any],
    run: Callable[[Any], Any],
    status: int | None,
    outermost: Sequence[OutermostLayer],
    contract: Contract = OPAQUE,
) -> Callable[[Any], Any]:
    """Return the endpoint of a route, which has no middleware yet, with its middleware.

    That of requests is composed at the first one: of the routes that a boot or a save plans, few
    are asked soon.
    """
    if app.usage is not None:
        outermost = [*outermost, app.usage.get_route(route, _list_query_names(contract))]
    if route.method == WEBSOCKET:
        chain = compose_socket_chain(entries, run)
        for layer in outermost:
            chain = layer.wrap_socket(chain)
        return chain
    if not entries:
        return wrap_in_outermost(run, outermost)
    compose = partial(compose_middleware_chain, app, entries, run, status=status)
    return _LateChain(lambda: wrap_in_outermost(compose(), outermost))


def wrap_in_outermost(chain: Endpoint, outermost: Sequence[OutermostLayer]) -> Endpoint:
    """Return a chain of middleware inside layers of the framework."""
    for layer in outermost:
        chain = layer.wrap_endpoint(chain)
    return chain


def _list_query_names(contract: Contract) -> list[str]:
    found = [sent for sent in contract.inputs if sent.place == "query"]
    return [each.name for sent in found for each in sent.members or (sent,)]


def _let_late_chain_replace_itself(plan: Plan) -> Plan:
    """Tell a late chain its plan, whose `run` it replaces: only the first request passes it."""
    if isinstance(plan.run, _LateChain):
        plan.run.plan = plan
    return plan


class _LateChain:
    """A chain of middleware that is composed at its first call.

    Attributes:
        plan: the plan whose `run` the composed chain becomes.
    """

    __slots__ = ("__weakref__", "_chain", "_compose", "plan")

    def __init__(self, compose: Callable[[], Endpoint]) -> None:
        self._compose = compose
        self._chain: Endpoint | None = None
        self.plan: Plan | None = None

    def __call__(self, connection: Any) -> Any:
        if self._chain is None:
            self._chain = self._compose()
            if self.plan is not None:
                object.__setattr__(self.plan, "run", self._chain)
        return self._chain(connection)


def _build_endpoint_and_contract(
    app: ProjectRuntime, route: Route, module: HandlerModule, chosen_entries: Sequence[Any]
) -> tuple[Endpoint | None, Endpoint, Contract]:
    """Return what runs before the look-up of a cache, the rest of the handler, and its contract."""
    handler, bases, names = module.handler, module.bases, route.parameters
    socket = route.method == WEBSOCKET
    if socket and not inspect.iscoroutinefunction(handler):
        message = "The handler of a WebSocket must be an `async def`: it awaits messages"
        raise InjectionError(message)
    name = "websocket" if socket else "request"
    # no chain and no compiled call: the handler is the plan
    is_plain = has_only_parameter(handler, name) and inspect.iscoroutinefunction(handler)
    if is_plain and not build_scope_checks(handler):
        return None, handler, build_connection_only_contract(handler)
    if has_cache(route, chosen_entries):
        return plan_call_behind_cache(handler, app.injection, path_parameters=names, bases=bases)
    return None, *plan_call(handler, app.injection, path_parameters=names, kind=name, bases=bases)


def _pass_base_answers(run: Endpoint) -> Endpoint:
    """Return an endpoint that answers as a base version whose answer is no success."""

    async def run_and_pass(connection: Any) -> Any:
        try:
            return await run(connection)
        except BaseAnswer as found:
            return found.response

    return run_and_pass


def _wrap_if_streaming_lines(run: Endpoint, route: Route, module: HandlerModule) -> Endpoint:
    """Return an endpoint that sends the iterators of a handler as lines, if it declares that."""
    item = find_declared_item_type(module.handler, module.response_model)
    if item is None:
        return run
    hold: Callable[[Any], Any] = _return_unchanged
    if module.response_model is not None:
        from treefold_http._responses.response_model import build_item_serializer

        hold = build_item_serializer(module.response_model, item, route.file)
    return wrap_as_json_lines(run, module.status_code, hold)


def _return_unchanged(value: Any) -> Any:
    return value


def _wrap_timeout(run: Endpoint, seconds: float) -> Endpoint:
    async def run_limited(connection: Any) -> Any:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await run(connection)
        except TimeoutError:
            # a TimeoutError of the handler's own, such as that of a client library
            if not limit.expired():
                raise
            raise ServiceUnavailable(f"The handler took longer than {seconds:g} seconds") from None

    return run_limited


def _choose_plain_status(status: int | None) -> int:
    if status is None:
        return 200
    return status if status in PLAIN_STATUSES else 0


@lru_cache(maxsize=64)
def _build_form_limits(default: int, module_limit: int | None) -> Limits:
    if module_limit is None:
        return replace(DEFAULT_LIMITS, urlencoded=default)
    return replace(DEFAULT_LIMITS, urlencoded=module_limit, total=module_limit)


def _find_masked_segments(route: Route) -> tuple[int, ...]:
    """The segments whose parameter name is sensitive, counted from the end of the path."""
    if not route.parameters:
        return ()
    segments = route.template.split("/")[1:]
    names = {i: s[1:-1] for i, s in enumerate(segments) if s.startswith("{")}
    return tuple(i - len(segments) for i, name in names.items() if is_sensitive(name))
