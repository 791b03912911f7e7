"""The application: an ASGI callable over a folder tree.

One request reads top to bottom in `__call__`: identify, route, run the plan, answer, log. `_boot`
reads the project and `_plan` composes a route; this module connects them.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

from treefold_http._background import BackgroundOwner
from treefold_http._boot import BootReport, Site, build_site, plan_routes
from treefold_http._capture import NONE, describe, read_ahead
from treefold_http._coercion import PLAIN, to_response
from treefold_http._connection import Connection, below_root
from treefold_http._datastructures import State
from treefold_http._departures import Departures
from treefold_http._errors import (
    BadRequest,
    ClientDisconnect,
    HTTPError,
    MethodNotAllowed,
    NotFound,
)
from treefold_http._exceptions import ExceptionHandler, ExceptionHandlers
from treefold_http._exposure import expose
from treefold_http._guard import check_request
from treefold_http._identity import request_identity
from treefold_http._injection import Injection
from treefold_http._installed import Installed
from treefold_http._json import quick_encode
from treefold_http._life import Life
from treefold_http._lifespan import Lifespan
from treefold_http._mounts import Answer, Mountable, Mounts
from treefold_http._overrides import Overrides
from treefold_http._plan import Plan
from treefold_http._problems import crash, departed, problem
from treefold_http._providers import Key, Provider, Providers, ProviderScope
from treefold_http._request import Request
from treefold_http._response import JSON_TYPE, Response, missing_in, plain_messages
from treefold_http._scope import Scope as InjectionScope
from treefold_http._settings import Settings
from treefold_http._sockets import OpenSockets, serve_socket
from treefold_http._teardown import leave_all, must_go_on
from treefold_http._threads import WorkerThreads
from treefold_http._types import Receive, Scope, Send
from treefold_http.extensions import explain
from treefold_logging import (
    configure,
    get_logger,
    keep_tail,
    log_request,
    request_id,
    request_target,
)
from treefold_router import (
    AutoOptions,
    Found,
    MalformedPath,
    MethodNotAllowed as WrongMethod,
    NotFound as NoRoute,
    RouteTable,
)

_NOSNIFF = (b"x-content-type-options", b"nosniff")
_CLOSE = (b"connection", b"close")
_LEFT = 499
"""The logged status of a request that the client or the server ended before its response."""

_INFO = logging.INFO
_ERROR = logging.ERROR
_is_logged = get_logger().isEnabledFor


class Application:
    """Serve the handlers below `Api/` of an application root.

    Making one is cheap; the project is read at lifespan startup, at the first request, or by
    `boot()`, whichever comes first, and once.

    Args:
        app_dir: the folder that holds `Api/`.
        dev: development: errors in answers, docs on.
        default_version: `latest` or `vN`: serve requests without a version from it.
        settings: replaces the settings files and the environment.

    Attributes:
        root: the application root.
        installed: the extensions of installed distributions, once they are looked up.
        state: attributes of your own; the lifespan copies them into the state of every request.
        overrides: dependency or provider to replacement, for tests.
    """

    def __init__(
        self,
        app_dir: str | os.PathLike[str] = ".",
        *,
        dev: bool = False,
        default_version: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.root = Path(app_dir).absolute()
        self.dev = dev
        self.installed = Installed()
        self.threads = WorkerThreads()
        self.background = BackgroundOwner(self.threads)
        self.overrides = Overrides(self.replan)
        self.providers = Providers(self.replan)
        self.providers.open_scope = self.scope
        self.providers.declared_here = self._declared_in_life
        self.injection = Injection(
            in_thread=self.in_thread, overrides=self.overrides, providers=self.providers
        )
        self.exception_handlers = ExceptionHandlers()
        self.departures = Departures()
        self.sockets = OpenSockets()
        self.mounts = Mounts()
        self.lifespan = Lifespan(self)
        self._default_version = default_version
        self._given_settings = settings
        self._site: Site | None = None
        self._probes: Mapping[bytes, Plan] = {}

    @cached_property
    def settings(self) -> Settings:
        """The settings, read at first use.

        Raises:
            SettingsError: for an unknown name or a wrong value.
        """
        settings = self._given_settings or Settings.load(self.root)
        if self._default_version is None:
            return settings
        return dataclasses.replace(settings, default_version=self._default_version)

    @property
    def has_docs(self) -> bool:
        """True if the OpenAPI documents and docs are served: the setting `docs`, or else `dev`."""
        return self.dev if self.settings.docs is None else self.settings.docs

    @property
    def site(self) -> Site:
        """The loaded project that serves requests; the first access boots."""
        if self._site is None:
            self.boot()
        assert self._site is not None  # noqa: S101 - boot sets it or raises
        return self._site

    @property
    def state(self) -> State:
        """Attributes of your own."""
        return (Life.of(self) or self.lifespan.life).state

    @property
    def stopping(self) -> asyncio.Event:
        """Set at shutdown; long-lived streams wait on it."""
        return self.lifespan.stopping

    @property
    def table(self) -> RouteTable:
        """The route table."""
        return self.site.table

    @property
    def extensions(self) -> Sequence[Any]:
        """The extensions: installed ones, then those of `extensions.py` once it is booted."""
        own = self._site.extensions if self._site is not None else ()
        return (*self.installed, *own)

    @property
    def report(self) -> BootReport:
        """The counts and the failures of the boot."""
        return self.site.report

    def boot(self) -> None:
        """Read the project; a second call does nothing.

        Raises:
            BootError: when there is no `Api/` folder or a boot file fails.
            SettingsError: when a setting is wrong.
        """
        if self._site is None:
            configure(
                log_format=self.settings.log_format,
                level=self.settings.log_level,
                json_encoder=quick_encode,
            )
            if self.settings.caches:
                from treefold_http.cache._aliases import configure_caches

                configure_caches(self.settings.caches)
            if self.dev and self.has_docs:
                keep_tail()  # before the boot, so that the docs show its log lines
            self._site = build_site(self)
            if self.settings.health:
                from treefold_http._health import Health

                self._probes = Health(self).plans
            if self.has_docs:  # imported here: an application without docs does not pay for them
                from treefold_http._docs import serve_docs
                from treefold_http.openapi import serve_documents

                serve_documents(self)
                serve_docs(self)

    def provide(
        self, key: Key, factory: Callable[..., Any], scope: ProviderScope = "request"
    ) -> None:
        """Provide parameters of a type or a name (rulings, 'Handlers and injection', 4).

        Args:
            key: a type, or the name of a parameter.
            factory: a function, class or generator, its own parameters provided in turn.
            scope: `app` for one value in the application's life, `request` for one per request.
        """
        self.providers.add(key, Provider(factory, scope))

    def scope(self) -> InjectionScope:
        """Return a scope for injection outside requests: `async with app.scope() as s: ...`.

        Boots the application first, so that the providers of `providers.py` are registered.

        Raises:
            BootError: as `boot`.
        """
        self.boot()
        return InjectionScope(self)

    def mount(self, prefix: str, target: Mountable) -> None:
        """Serve a folder of files at a prefix outside the versions, inside the middleware.

        Args:
            prefix: a path such as `/static`.
            target: a `StaticFiles`.

        Raises:
            ValueError: when the prefix is no path, lies in a version, or is taken.
            BootError: when the folder does not exist or holds the application itself.
        """
        target.check(self.root)
        self.mounts.add(prefix, target, again=self._begins_anew)

    def exception_handler(
        self, kind: type[BaseException]
    ) -> Callable[[ExceptionHandler], ExceptionHandler]:
        """Register the decorated function as handler of an exception type and its subclasses.

        The function, async or plain, takes the request and the exception, and may return any value
        that a route handler may return.
        """
        return self.exception_handlers.adder(kind)

    def begin_shutdown(self) -> None:
        """Begin the shutdown: event streams end, sockets close with 1012."""
        self.lifespan.begin_shutdown()

    def exchange_site(self, site: Site) -> None:
        """Replace the loaded project; requests in progress finish on the previous one."""
        self._site = site

    @property
    def _begins_anew(self) -> bool:
        """True inside a startup hook that runs during a reload."""
        return Life.of(self) not in (None, self.lifespan.life)

    def _declared_in_life(self) -> Mapping[Any, Any] | None:
        life = Life.of(self)
        return life.declared if life is not None else None

    def replan(self) -> None:
        """Compose the plans of all routes again, after a change of providers or overrides."""
        if self._site is not None and not self._begins_anew:
            site = self._site
            self._site = dataclasses.replace(
                site, plans=plan_routes(self, site.modules, site.middlewares)
            )

    async def in_thread(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a plain function in a worker thread; await its result here if it is awaitable."""
        outcome = await self.threads.run(function, *args, **kwargs)
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope (ASGI 3.0)."""
        if scope["type"] != "http":
            await self._serve_other(scope, receive, send)
            return
        if not self.lifespan.started:
            await self.lifespan.start()
        started = perf_counter()
        headers = scope["headers"]
        fields = dict(headers)
        identity = request_identity(fields, headers)
        request = Request(scope, receive, self, identity, fields)
        token = request_id.set(identity)
        has_body = b"content-length" in fields or b"transfer-encoding" in fields
        status = _LEFT
        response: Response | None = None  # most answers are a type and a body: nothing to keep
        kind, body = JSON_TYPE, b""
        try:
            try:
                plan = self._route(request)
                result = await plan.run(request)
                plain = PLAIN.get(result.__class__) if plan.status is None else None
                if plain is not None:
                    encode, kind = plain
                    body, status = encode(result), 200
                else:
                    response = to_response(result, plan.status)
                    status = response.status
            except BaseException as error:  # render re-raises cancellations
                response = await self.render(error, request)
                status = response.status
            common = [_NOSNIFF, (b"x-request-id", identity.encode())]
            added = request.answer_fields
            if added is not None:
                common += added if response is None else missing_in(response, added)
            if has_body and not request.reader.complete:
                await read_ahead(request)
                if not request.reader.complete:
                    common.append(_CLOSE)  # otherwise the server would read the rest of the body
            if response is None or type(response) is Response:
                head = scope["method"] == "HEAD"
                start, end = (
                    plain_messages(common, kind, body, head)
                    if response is None
                    else response.messages(common, head)
                )
                try:
                    await send(start)
                    await send(end)
                except OSError:  # raised by some servers after a disconnect (ASGI, HTTP 2.4)
                    status = _LEFT
            else:
                try:
                    await response.send(request, send, common)
                finally:
                    status = response.status  # a file decides between 200, 206, 304 and others
            if response is not None and response.background is not None:
                self.background.start(response.background)
            if request.work is not None:
                self.background.start(request.work)
            if request.leaves is not None:
                await self._leave(request, None)
        except BaseException as error:  # the response has begun: clean up and log
            await self._leave(request, error)
            if must_go_on(error):
                status, request.error = _LEFT, None
                raise
        finally:
            if request.error is not None:
                expose(scope, request.error)
            level = _ERROR if status >= 500 or request.error is not None else _INFO
            if _is_logged(level):
                self._log(request, status, perf_counter() - started, has_body)
            request_id.reset(token)

    async def _leave(self, request: Request, error: BaseException | None) -> None:
        leaves, request.leaves = request.leaves, None
        request.error = await leave_all(leaves, error) if leaves else error

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.lifespan.serve(scope, receive, send)
            return
        if not self.lifespan.started:
            await self.lifespan.start()
        await serve_socket(self, scope, receive, send)

    def _route(self, request: Request) -> Plan:
        """Return the plan of the matched route, or the plan that answers 404, 405 and OPTIONS."""
        scope = request.scope
        site = self._site or self.site
        path = scope.get("raw_path") or scope["path"]
        try:
            check_request(scope, request.fields, path)
        except HTTPError as refusal:
            return self._missed(request, refusal)
        if scope.get("root_path"):
            path = below_root(path, scope["root_path"])
        outcome = site.table.resolve(scope["method"], path)
        version = None
        if type(outcome) is not Found:
            if type(outcome) is NoRoute and outcome.unversioned:
                if self.mounts and (mounted := self.mounts.find(path)) is not None:
                    return self._missed(request, mounted)
                version = site.default_version
                outcome = self._resolve_default(site, request, path)
                if type(outcome) is NoRoute and request.raw_path in self._probes:
                    plan = request.plan = self._probes[request.raw_path]
                    return plan
                if type(outcome) is NoRoute and (page := self.mounts.find_built_in(path)):
                    return self._missed(request, page)
            if type(outcome) is not Found:
                plan = self._missed(request, _miss(outcome))
                if site.scoped_misses:
                    plan = site.scoped_misses.find(request, site.table, path, version) or plan
                    request.plan = plan
                return plan
        request.path_params = outcome.params
        plan = request.plan = site.plans[outcome.route]
        return plan

    def _missed(self, request: Request, miss: HTTPError | Response | Answer) -> Plan:
        request.miss = miss
        plan = request.plan = self.site.miss
        return plan

    def _resolve_default(self, site: Site, request: Request, path: bytes | str) -> Any:
        version = site.default_version
        if version is None:
            return NoRoute(unversioned=True)
        outcome = site.table.resolve(request.method, path, version=version)
        if type(outcome) is Found:
            masked = site.plans[outcome.route].masked_in(request.raw_path)
            shown = request_target(request.raw_path, b"", masked_segments=masked)
            get_logger().info("no version in %s %s -> served %s", request.method, shown, version)
        return outcome

    def masked_in(self, connection: Connection) -> tuple[int, ...]:
        """Return the indexes of the path segments to mask in logs; see `Plan.masked_in`."""
        plan = connection.plan
        if plan is not None and plan.route is not None:
            return plan.masked_in(connection.raw_path) if plan.masked else ()
        site = self._site  # none where the boot failed
        root_path = connection.scope.get("root_path", "")
        return () if site is None else site.masked_in(connection.raw_path, root_path)

    async def render(self, error: BaseException, request: Request) -> Response:
        """Return the response for an exception of a handler, a dependency or a middleware.

        A cancellation of the request's task is re-raised. Every other exception is answered, also
        `SystemExit` and `KeyboardInterrupt`: a request must not end the process (R-21).
        """
        if must_go_on(error):
            raise error
        if request.leaves:
            await self._leave(request, error)
            error, request.error = request.error or error, None
        try:
            handler = self.exception_handlers.find(error)
            if handler is not None:
                return to_response(await handler(self, request, error))
            if isinstance(error, HTTPError):
                return problem(error, request)
            if isinstance(error, ClientDisconnect):
                return departed(request)
        except BaseException as unfit:  # its headers cannot be sent, or its handler failed
            if must_go_on(unfit):
                raise
            error = unfit
        request.error = error
        await explain(self, error)
        return crash(error, request)

    def _log(self, request: Request, status: int, seconds: float, has_body: bool) -> None:
        plan = request.plan
        if plan is not None and plan.is_quiet and not _is_logged(logging.DEBUG):
            return
        payload = NONE
        if has_body and (plan is None or plan.log_payload):
            payload = describe(request)
        scope = request.scope
        raw_path = scope.get("raw_path") or request.raw_path
        target = request_target(raw_path, scope["query_string"], self.masked_in(request))
        log_request(scope["method"], target, status, seconds, request.id, payload, request.error)


def _miss(outcome: object) -> HTTPError | Response:
    if isinstance(outcome, AutoOptions):
        return Response.empty(headers={"Allow": outcome.allow})
    if isinstance(outcome, WrongMethod):
        headers = {"Allow": outcome.allow}
        if outcome.allow == "WEBSOCKET":
            headers["Upgrade"] = "websocket"
        return MethodNotAllowed(f"This path answers {outcome.allow}", headers=headers)
    if isinstance(outcome, MalformedPath):
        return BadRequest(outcome.reason)
    return NotFound("There is nothing at this path")


def create_app() -> Application:
    """Return the application of `TREEFOLD_APP_DIR`, or of the working directory.

    For servers that load an application by name: `uvicorn --factory treefold.asgi:create_app`.
    """
    dev = os.environ.get("TREEFOLD_DEV", "").lower() in ("1", "true", "yes", "on")
    return Application(os.environ.get("TREEFOLD_APP_DIR", "."), dev=dev)
