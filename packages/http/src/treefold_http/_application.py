"""The application: an ASGI callable over a folder tree.

One request reads top to bottom in `__call__`: identify, route, run the plan, answer, log.
`_project.boot` reads the project and `_plans.plans` composes a route; this module connects them.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from treefold_http._failures.error_format import ErrorFormat, Render, as_error_format
from treefold_http._failures.error_responses import ErrorResponses
from treefold_http._failures.exception_handlers import ExceptionHandler
from treefold_http._injection.context import InjectionContext
from treefold_http._injection.overrides import Overrides
from treefold_http._injection.providers import Key, Provider, Providers, ProviderScope
from treefold_http._injection.resolver import Injection
from treefold_http._json.json import quick_encode
from treefold_http._plans.installed import Installed
from treefold_http._plans.mounts import Mountable, Mounts
from treefold_http._plans.plans import Plan
from treefold_http._project.boot import load_project
from treefold_http._project.loaded_project import LoadedProject
from treefold_http._project.route_plans import plan_routes
from treefold_http._requests.log_payload import log_connection, read_small_unread_body
from treefold_http._requests.request import Request
from treefold_http._requests.usage import Usage
from treefold_http._responses.coercion import PLAIN, is_plain_pair, to_response
from treefold_http._responses.response import (
    JSON_TYPE,
    LENGTH_FIELDS,
    NOSNIFF,
    Response,
    find_missing_fields,
)
from treefold_http._runtime.background import BackgroundOwner
from treefold_http._runtime.boot_report import BootReport
from treefold_http._runtime.current_application import (
    enter_application,
    entered,
    leave_application,
    set_latest_application,
)
from treefold_http._runtime.disconnect_watcher import DisconnectWatcher
from treefold_http._runtime.exit_callbacks import is_outer_cancellation
from treefold_http._runtime.name_space import NameSpace
from treefold_http._runtime.runtime import Role
from treefold_http._runtime.server_lines import install_uvicorn_log_mask
from treefold_http._runtime.settings import Settings
from treefold_http._runtime.threads import WorkerThreads
from treefold_http._serving.lifespan import Lifespan
from treefold_http._serving.mounted_app import find_masked_in_mounts, wrap_mount_target
from treefold_http._serving.open_sockets import OpenSockets
from treefold_http._serving.routing import route_request
from treefold_http._serving.sockets import serve_socket
from treefold_http._wire.aliases import AnyCallable
from treefold_http._wire.asgi import ASGIApp, RawHeaders, Receive, Scope, Send
from treefold_http._wire.datastructures import State
from treefold_http._wire.request_guard import (
    HEAD_SIZE,
    KNOWN_HOSTS,
    MAX_FIELDS,
    MAX_HEADER_BYTES,
    MAX_TARGET_BYTES,
    is_plain_framing,
)
from treefold_http._wire.request_id import REQUEST_IDS, assign_request_id
from treefold_http._wire.root_path import add_root_prefix
from treefold_logging import configure, get_logger, keep_tail, request_id
from treefold_router import Route, RouteTable

_CLOSE = (b"connection", b"close")
_LEFT = 499
"""The logged status of a request that the client or the server ended before its response."""

_UNKNOWN_SIZE = MAX_HEADER_BYTES + 1
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
        role: `serve`, `worker`, `command` or `test`: hooks and extensions read where they run.
        installed: the extensions of installed distributions, once they are looked up.
        probes: the plans of the health probes, by path.
        usage: the counts of the setting `usage`; None without it, and before the boot.
        has_own_server: served by `treefold serve` or `dev`, which apply the settings `[serve]`.
        state: attributes of your own; the lifespan copies them into the state of every request.
        overrides: dependency or provider to replacement, for tests.
        threads, background: the threads of plain functions, and the tasks behind responses.
        providers, injection: the values by type, and the context in which calls are planned.
        errors: the responses for exceptions, those of the project's own included.
        disconnects, sockets: what is watched while streams are sent, and the open WebSockets.
        mounts: applications and folders outside of the versions.
        lifespan: startup and shutdown.
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
        self.role: Role = "serve"
        self.has_own_server = False
        self.installed = Installed()
        self.threads = WorkerThreads()
        self.background = BackgroundOwner(self.threads)
        self.overrides = Overrides(self._replan_routes)
        self.providers = Providers(self._replan_routes)
        self.providers.open_scope = self.scope
        self.injection = Injection(
            in_thread=self.run_in_thread, overrides=self.overrides, providers=self.providers
        )
        self.errors = ErrorResponses()
        self.disconnects = DisconnectWatcher()
        self.sockets = OpenSockets()
        self.mounts = Mounts()
        self.lifespan = Lifespan(self)
        self.state = State()
        self._default_version = default_version
        self._given_settings = settings
        # made by their first use; the project by the boot, and replaced by a reload
        self._settings: Settings | None = None
        self._names: NameSpace | None = None
        self._is_tested = False
        self._project: LoadedProject | None = None
        self.usage: Usage | None = None
        self.probes: Mapping[bytes, Plan] = {}
        set_latest_application(self)

    @property
    def settings(self) -> Settings:
        """The settings, read at first use.

        Raises:
            SettingsError: for an unknown name or a wrong value.
        """
        if (settings := self._settings) is None:
            settings = self._given_settings or Settings.load(self.root)
            if self._default_version is not None:
                settings = dataclasses.replace(settings, default_version=self._default_version)
            self._settings = settings
        return settings

    @property
    def names(self) -> NameSpace:
        """Its names in Redis: of the settings `name` and `environment`, or their defaults."""
        if (names := self._names) is None:
            names = self._names = NameSpace.from_settings(
                self.settings, self.root, dev=self.dev, is_test=self._is_tested
            )
        return names

    def use_test_names(self) -> None:
        """Take names and the role of this test run: a test meets no deployment on one Redis."""
        # without the names that were made before, which would be those of the deployment
        self._is_tested, self._names, self.role = True, None, "test"

    @property
    def has_docs(self) -> bool:
        """True if the OpenAPI documents and docs are served: the setting `docs`, or else `dev`."""
        return self.dev if self.settings.docs is None else self.settings.docs

    @property
    def project(self) -> LoadedProject:
        """The loaded project that serves requests; the first access boots."""
        if self._project is None:
            self.boot()
        assert self._project is not None  # noqa: S101 - boot sets it or raises
        return self._project

    @property
    def stopping(self) -> asyncio.Event:
        """Set at shutdown; long-lived streams wait on it."""
        return self.lifespan.stopping

    @property
    def table(self) -> RouteTable:
        """The route table."""
        return self.project.table

    @property
    def default_version(self) -> str | None:
        """The version that serves a path without one; None for no version."""
        return self.project.default_version

    @property
    def extensions(self) -> Sequence[Any]:
        """The extensions: installed ones, then those of `extensions.py` once it is booted."""
        own = self._project.boot_files.extensions if self._project is not None else ()
        return (*self.installed, *own)

    @property
    def report(self) -> BootReport:
        """The counts and the failures of the boot."""
        return self.project.report

    def boot(self) -> None:
        """Read the project; a second call does nothing.

        Raises:
            BootError: when there is no `Api/` folder or a boot file fails.
            SettingsError: when a setting is wrong.
        """
        if self._project is None:
            with enter_application(self):
                self._boot_project()

    def _boot_project(self) -> None:
        self.threads.limit = self.settings.worker_threads
        if self.settings.usage and self.usage is None:
            self.usage = Usage()
        configure(
            log_format=self.settings.log_format,
            level=self.settings.log_level,
            json_encoder=quick_encode,
            sensitive_words=self.settings.sensitive_words,
        )
        install_uvicorn_log_mask(self)
        if self.settings.caches:
            from treefold_http.cache._aliases import configure_caches

            configure_caches(self.settings.caches)
        if self.dev and self.has_docs:
            keep_tail()  # before the boot, so that the docs show its log lines
        self.replace_project(load_project(self))
        if self.settings.health:
            from treefold_http._built_in.health import Health

            self.probes = Health(self).plans
        if self.has_docs:  # imported here: an application without docs does not pay for them
            from treefold_http._built_in.docs import mount_docs
            from treefold_http.openapi import serve_documents

            serve_documents(self)
            mount_docs(self)

    def provide(self, key: Key, factory: AnyCallable, scope: ProviderScope = "request") -> None:
        """Provide parameters of a type or a name.

        Args:
            key: a type, or the name of a parameter.
            factory: a function, class or generator, its own parameters provided in turn.
            scope: `app` for one value in the application's life, `request` for one per request.
        """
        self.providers.add_provider(key, Provider(factory, scope))

    def scope(self) -> InjectionContext:
        """Return a scope for injection outside requests: `async with app.scope() as s: ...`.

        Boots the application first, so that the providers of `providers.py` are registered.

        Raises:
            BootError: as `boot`.
        """
        self.boot()
        return InjectionContext(self, self.injection)

    def mount(self, prefix: str, target: Mountable | ASGIApp) -> None:
        """Serve files or an ASGI application at a prefix, inside the log and the middleware.

        Args:
            prefix: a path such as `/static`, outside the versions.
            target: a `StaticFiles`, or an application (ASGI 3), whose lifespan runs with this one.

        Raises:
            ValueError: when the prefix is no path, lies in a version, or is taken.
            BootError: when the folder does not exist or holds the application itself.
            RuntimeError: for an application that is mounted after the startup.
            TypeError: for anything else.
        """
        mounted = wrap_mount_target(prefix, target, is_started=self.lifespan.started)
        mounted.check(self.root)
        self.mounts.add_mount(prefix, mounted)

    def exception_handler(
        self, kind: type[BaseException]
    ) -> Callable[[ExceptionHandler], ExceptionHandler]:
        """Register the decorated function as handler of an exception type and its subclasses.

        It takes the request, or a socket before `accept`, and the exception, and may return what a
        handler may return, or an `HTTPError`. A handler for `Exception` never gets an `HTTPError`.
        """
        return self.errors.handlers.make_decorator(kind)

    def error_format(self, render: Render | ErrorFormat) -> Render | ErrorFormat:
        """Declare the form of all error responses, as `error_format` of `hooks.py` does.

        Raises:
            TypeError: as `ErrorFormat`.
        """
        self.errors.declared = as_error_format(render)
        self._replan_routes()  # the documents of the project are written again
        return render

    def begin_shutdown(self) -> None:
        """Begin the shutdown: event streams end, sockets close with 1012."""
        self.lifespan.begin_shutdown()

    def replace_project(self, project: LoadedProject) -> None:
        """Replace the loaded project; requests in progress finish on the previous one."""
        self._project = project
        self.errors.loaded = project.boot_files.error_format

    def _replan_routes(self) -> None:
        """Compose the plans of all routes again, after a change of providers or overrides."""
        if self._project is not None:
            project = self._project
            outermost = project.deprecations.layers
            plans = plan_routes(self, project.modules, project.middlewares, outermost=outermost)
            self._project = dataclasses.replace(project, plans=plans, bare_plans=plans)

    async def run_in_thread(self, function: AnyCallable, /, *args: Any, **kwargs: Any) -> Any:
        """Call a plain function in a worker thread; await its result here if it is awaitable."""
        outcome = await self.threads.run(function, *args, **kwargs)
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope (ASGI 3.0)."""
        entry = None
        # one started application without a prefix has no step before a request: it enters no
        # context variable, and awaits nothing
        if scope["type"] != "http" or not self.lifespan.is_direct:
            if not self.lifespan.is_beside or scope["type"] != "http":
                if (prepared := await self._serve_unless_http(scope, receive, send)) is None:
                    return
                scope = prepared
            entry = entered.set(self)
        started = perf_counter()
        raw, method = scope["headers"], scope["method"]
        fields = dict(raw)
        is_named = b"x-request-id" in fields
        identity = assign_request_id(fields, raw) if is_named else REQUEST_IDS.make()
        request = Request(scope, receive, self, identity, fields)
        token = request_id.set(identity)
        has_body = b"content-length" in fields or b"transfer-encoding" in fields
        # Most answers are a type and a body: no response is made of them.
        # `_LEFT` stays if the client leaves before there is a response
        status, response, kind, body, code = _LEFT, None, JSON_TYPE, b"", 200
        try:
            try:
                # the attribute first: a property is one more call for each request
                project = self._project or self.project
                raw_path = scope.get("raw_path")
                # the checks of `route_request`, as most requests pass them: its calls take as long
                # as the handler of a small request
                if (
                    fields.get(b"host") in KNOWN_HOSTS
                    and len(fields) == len(raw) <= MAX_FIELDS
                    and (
                        scope.get(HEAD_SIZE, _UNKNOWN_SIZE) <= MAX_HEADER_BYTES
                        or len(b"".join([*fields, *fields.values()])) <= MAX_HEADER_BYTES
                    )
                    and raw_path
                    and len(raw_path) + len(scope["query_string"]) <= MAX_TARGET_BYTES
                    and scope.get("http_version") == "1.1"
                    and not (has_body and not is_plain_framing(fields))
                    and b"upgrade" not in fields
                    and not scope.get("root_path")
                    and (found := project.table.find(method, raw_path)) is not None
                ):
                    request.path_params = found.params
                    plan = request.plan = project.plans[found.route]
                else:
                    plan = route_request(self, project, request, receive)
                result = await plan.run(request)
                content, code = result, plan.plain_status
                if result.__class__ is tuple and is_plain_pair(result):
                    content, code = result
                plain = PLAIN.get(content.__class__) if code else None
                if plain is None:
                    response = to_response(result, plan.status)
                else:
                    encode, kind = plain
                    body = encode(content)
            except BaseException as error:  # render re-raises cancellations
                response = await self.render(error, request)
            id_field = (b"x-request-id", identity.encode())
            common: RawHeaders = (
                [NOSNIFF, id_field, kind, LENGTH_FIELDS[len(body)]]
                if response is None
                else [NOSNIFF, id_field]
            )
            if request.answer_fields is not None:
                common += find_missing_fields(response, request.answer_fields)
            if has_body and ((reader := request.opened_reader) is None or not reader.complete):
                # before the header is sent, which may have to say `Connection: close`
                await _drain_or_add_close_header(request, common)
            try:
                if response is None:
                    status = code
                    await send({"type": "http.response.start", "status": status, "headers": common})
                    body = b"" if method == "HEAD" else body
                    await send({"type": "http.response.body", "body": body})
                elif type(response) is Response:
                    status = response.status
                    start, end = response.messages(common, method == "HEAD")
                    await send(start)
                    await send(end)
                else:
                    request.sent_status = response.status
                    await response.send(request, send, common)
                    status = request.sent_status
            except OSError:  # raised by some servers after a disconnect (ASGI, HTTP 2.4)
                if response is not None and type(response) is not Response:
                    raise  # perhaps of a file that it reads
                status = _LEFT
            work = request.work if response is None else response.background or request.work
            if work is not None or request.exit_callbacks is not None:
                await self._run_after_response(request, response)
        except BaseException as error:  # the response has begun: clean up and log
            # a file decides between 200, 206, 304 and others when it is sent
            status = getattr(request, "sent_status", status)
            request.error = await request.leave(error)
            if is_outer_cancellation(error, identity):
                status, request.error = _LEFT, None
                raise
        finally:
            # a line that no level shows is not built
            if request.error is not None or _is_logged(_INFO if status < 500 else _ERROR):
                log_connection(request, method, status, perf_counter() - started, has_body)
            try:  # noqa: SIM105 - suppress() takes a twentieth of a request
                request_id.reset(token)
            except ValueError:  # a task that is closed from another context
                pass
            if entry is not None:
                leave_application(entry)

    async def _serve_unless_http(self, scope: Scope, receive: Receive, send: Send) -> Scope | None:
        """Return the scope of a request that waits to be served; serve any other scope."""
        if scope["type"] == "lifespan":
            await self.lifespan.serve_scope(scope, receive, send)
            return None
        if not self.lifespan.started:
            await self.lifespan.run_startup()
        if self.settings.root_path:
            scope = add_root_prefix(scope, self.settings.root_path)
        if scope["type"] == "http":
            return scope
        with enter_application(self):
            await serve_socket(self, scope, receive, send)
        return None

    async def _run_after_response(self, request: Request, response: Response | None) -> None:
        """Run the rest of generator dependencies, then start the background tasks."""
        if request.exit_callbacks is not None:
            # it cannot change the response any more
            request.error = await request.leave(None)
            if request.error is not None:
                request.drop_background_tasks()
        if response is not None and response.background is not None:
            self.background.start_work(response.background)
        if request.work is not None:
            self.background.start_work(request.work)

    def find_route(self, path: bytes | str) -> Route | None:
        """Return a route at a path, of any method; None without one, or before the boot."""
        return None if self._project is None else self._project.find_route(path)

    def find_masked_segments(self, raw_path: bytes, root_path: str) -> tuple[int, ...]:
        """Return the indexes of path segments to mask in logs, for a path without a plan."""
        if self._project is None:
            return ()
        found = self._project.find_masked_segments(raw_path, root_path)
        if self.mounts:
            return (*found, *find_masked_in_mounts(self, raw_path, root_path))
        return found

    async def render(self, error: BaseException, request: Request) -> Response:
        """Return the response for an exception of a handler, a dependency or a middleware.

        A cancellation of the request's task is re-raised; `ErrorResponses` answers all others.
        """
        if is_outer_cancellation(error, request.id):
            raise error
        if request.exit_callbacks:
            # before the response: a transaction rolls back first, and its own failure is answered
            error, request.error = await request.leave(error) or error, None
        request.drop_background_tasks()
        return await self.errors.respond_to_error(self, error, request)


async def _drain_or_add_close_header(request: Request, common: RawHeaders) -> None:
    """Read a small rest for the log; close the connection after an answer to an unread body."""
    await read_small_unread_body(request)
    if not request.reader.complete:
        common.append(_CLOSE)  # otherwise the server would read the rest of the body


def create_app() -> Application:
    """Return the application of `TREEFOLD_APP_DIR`, or of the working directory.

    For servers that load an application by name: `uvicorn --factory treefold.asgi:create_app`.
    """
    dev = os.environ.get("TREEFOLD_DEV", "").lower() in ("1", "true", "yes", "on")
    return Application(os.environ.get("TREEFOLD_APP_DIR", "."), dev=dev)
