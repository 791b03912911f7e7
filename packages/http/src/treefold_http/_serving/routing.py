"""From the target of a connection to the plan that serves it.

The order of `route_request`: checks, routes, then what lies outside the versions (mounts, the
default version, probes, documents), and 404 or 405 last. Nothing of a handler runs here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treefold_http._plans.fallbacks import build_fallback_response, build_routing_error
from treefold_http._serving.mounted_app import MountedApp
from treefold_http._wire.errors import HTTPError, MethodNotAllowed
from treefold_http._wire.request_guard import (
    refuse_body_with_upgrade,
    replace_absolute_target,
    require_valid_head,
)
from treefold_http._wire.root_path import below_root
from treefold_router import Found, MalformedPath, NotFound as NoRoute

if TYPE_CHECKING:
    from treefold_http._plans.mounts import Mounted
    from treefold_http._plans.plans import Plan
    from treefold_http._project.loaded_project import LoadedProject
    from treefold_http._requests.connection import Connection
    from treefold_http._requests.request import Request
    from treefold_http._responses.response import Response
    from treefold_http._serving.host import Host
    from treefold_http._websockets.websocket import WebSocket
    from treefold_http._wire.asgi import Receive


def route_request(app: Host, project: LoadedProject, request: Request, receive: Receive) -> Plan:
    """Return the plan of the matched route, or the plan that answers 400, 404, 405 and OPTIONS."""
    scope = request.scope
    # in `path` an encoded slash is decoded: `/v1/a%2Fb` would have one segment more
    path = scope.get("raw_path") or scope["path"]
    try:
        require_valid_head(scope, request.fields, path)
        if b"upgrade" in request.fields:
            refuse_body_with_upgrade(request.fields, receive)
    except HTTPError as refusal:
        # not an answer at once: a refusal passes the project's middleware, as a 404 does
        return _set_fallback_plan(project, request, refusal)
    if scope.get("root_path"):
        path = below_root(path, scope["root_path"])
    outcome = project.table.resolve(scope["method"], path)
    if type(outcome) is Found:
        request.path_params = outcome.params
        plan = request.plan = project.plans[outcome.route]
        return plan
    # asked after the table, so that no other request pays for it: such a target has no route
    if _has_absolute_target(request):
        try:
            replace_absolute_target(scope, request.fields, app.settings.root_path)
        except HTTPError as refusal:
            return _set_fallback_plan(project, request, refusal)
        return route_request(app, project, request, receive)
    version = None
    is_unversioned = type(outcome) is NoRoute and outcome.unversioned
    if is_unversioned:
        if app.mounts and (mounted := app.mounts.find_mount(path)) is not None:
            return _set_mount_plan(project, request, mounted)
        if (version := project.default_version) is not None:
            outcome = project.table.resolve(request.method, path, version=version)
            if type(outcome) is Found:
                project.log_default_version_use(request.method, request, outcome.route)
                request.path_params = outcome.params
                plan = request.plan = project.plans[outcome.route]
                return plan
        # last, as a path that the project serves itself wins over probes and documents
        if type(outcome) is NoRoute and (
            plan := _find_and_set_builtin_plan(app, project, request, path)
        ):
            return plan
    plan = _set_fallback_plan(project, request, build_fallback_response(outcome))
    if project.outside and is_unversioned and type(outcome) is NoRoute:
        plan = request.plan = project.outside.find_middleware_page_plan(path) or plan
    if project.scoped_fallbacks:
        find = project.scoped_fallbacks.find_fallback_plan
        plan = find(request, project.table, path, version) or plan
        request.plan = plan
    return plan


def _has_absolute_target(connection: Connection) -> bool:
    return b"://" in connection.raw_path and not connection.raw_path.startswith(b"/")


def _find_and_set_builtin_plan(
    app: Host, project: LoadedProject, request: Request, path: bytes | str
) -> Plan | None:
    """Return the plan of a probe, a document or the docs; None if the path is none of them."""
    target = path if isinstance(path, bytes) else path.encode()
    if target in app.probes:
        plan = app.probes[target]
        if project.outside:
            plan = project.outside.get_or_wrap_probe_plan(target, plan)
        request.plan = plan
        return plan
    page = app.mounts.find_built_in(path)
    return None if page is None else _set_mount_plan(project, request, page)


def _set_mount_plan(project: LoadedProject, request: Request, mounted: Mounted) -> Plan:
    """Return the plan that a mount answers in: the entries that cover the path run around it."""
    plan = _set_fallback_plan(project, request, mounted)
    if project.outside:
        outside = project.outside
        found = outside.get_or_make_fallback_plan(mounted.segments, mounted.depth)
        plan = request.plan = found or plan
    return plan


def _set_fallback_plan(
    project: LoadedProject, request: Request, fallback: HTTPError | Response | Mounted
) -> Plan:
    request.fallback = fallback
    plan = request.plan = project.fallback
    return plan


def route_socket(app: Host, websocket: WebSocket) -> Plan:
    """Return the plan of the matched route.

    Raises:
        HTTPError: 400, 404 or 405, as for HTTP.
    """
    project = app.project
    scope = websocket.scope
    path = scope.get("raw_path") or scope["path"]
    if scope.get("root_path"):
        path = below_root(path, scope["root_path"])
    outcome = project.table.resolve_socket(path)
    if isinstance(outcome, MalformedPath) and _has_absolute_target(websocket):
        replace_absolute_target(scope, websocket.fields, app.settings.root_path)
        return route_socket(app, websocket)
    if app.mounts and isinstance(outcome, NoRoute) and outcome.unversioned:
        mounted = app.mounts.find_mount(path)
        if mounted is not None and isinstance(mounted.target, MountedApp):
            serve = mounted.target.serve_socket
            find = project.outside.get_or_make_socket_plan
            segments, depth = mounted.segments, mounted.depth
            plan = websocket.plan = find(mounted.mount_prefix, segments, depth, serve)
            return plan
    if isinstance(outcome, NoRoute) and outcome.unversioned and project.default_version:
        outcome = project.table.resolve_socket(path, version=project.default_version)
        if isinstance(outcome, Found):
            project.log_default_version_use("WEBSOCKET", websocket, outcome.route)
    if isinstance(outcome, Found):
        websocket.path_params = outcome.params
        plan = websocket.plan = project.plans[outcome.route]
        return plan
    if isinstance(outcome, (NoRoute, MalformedPath)):
        raise build_routing_error(outcome)
    message = "This path does not accept WebSocket connections"
    raise MethodNotAllowed(message, headers={"Allow": outcome.allow})
