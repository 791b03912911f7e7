"""Connect handlers that take an `Inherited` with the handlers of the base version that they call.

Done once all files are loaded, before routes are planned: a module gets its `bases`, and the
options that it takes over from them. A handler without such a parameter is left as it is.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from treefold_http._injection.inherited import is_inherited, takes_inherited
from treefold_http._modules.function_sources import FunctionSources, unwrap_function
from treefold_http._modules.modules import ModuleSpace, folder_to_package_name
from treefold_http._plans.base_handlers import (
    adopt_base_options,
    build_base_handler,
    select_lost_guards,
)
from treefold_http._plans.handlers import CalledHandler, HandlerModule
from treefold_http._project.findings import Findings
from treefold_http._project.reuse import are_same_objects
from treefold_http._runtime.boot_report import BrokenFile
from treefold_http._types.parameters import (
    InjectionError,
    find_module_globals,
    list_parameters,
)
from treefold_http._types.read import resolve_annotation
from treefold_http._wire.aliases import AnyCallable
from treefold_router import Route, RouteTable

if TYPE_CHECKING:
    from treefold_http._plans.runtime import ProjectRuntime

Modules = dict[Route, HandlerModule | BrokenFile]
LoadModule = Callable[[Route], HandlerModule | BrokenFile]


def connect_inherited_handlers(
    app: ProjectRuntime,
    table: RouteTable,
    modules: Modules,
    routes: Sequence[Route],
    findings: Findings,
    load_module: LoadModule,
    *,
    middlewares: Sequence[Any],
) -> list[Route]:
    """Connect the handlers of routes; a handler whose base cannot be called becomes a broken file.

    Args:
        modules: the handler modules of the project, which are replaced by the connected ones.
        routes: those that were loaded just now.
        load_module: loads the file of a route.
        middlewares: the middleware of the project.

    Returns:
        The other routes that are connected again, because their base is another one now.
    """
    connector = _Connector(app, table, modules, findings, load_module, middlewares)
    loaded = set(routes)
    outdated = [
        route
        for route, module in modules.items()
        if isinstance(module, HandlerModule)
        and module.bases
        and route not in loaded
        and not connector.has_present_bases(route, module)
    ]
    for route in outdated:
        modules[route] = load_module(route)
    for route in (*routes, *outdated):
        connector.connect(route)
    return outdated


class _Connector:
    """Connects each handler once, its bases first."""

    def __init__(
        self,
        app: ProjectRuntime,
        table: RouteTable,
        modules: Modules,
        findings: Findings,
        load_module: LoadModule,
        middlewares: Sequence[Any],
    ) -> None:
        self._app = app
        self._table = table
        self._modules = modules
        self._findings = findings
        self._load_module = load_module
        self._middlewares = middlewares
        self._sources = FunctionSources()
        self._places: Mapping[tuple[str, ...], Route] = {}
        self._connected: set[Route] = set()
        self._beyond: dict[Route, HandlerModule | BrokenFile] = {}

    def has_present_bases(self, route: Route, module: HandlerModule) -> bool:
        """Return True if a module calls what its bases are now."""
        for base in module.bases.values():
            now = self._find_module(base.route)
            guards = select_lost_guards(route, base.route, self._middlewares)
            if (
                now is None
                or now.handler is not base.module.handler
                or self._find_place(base.route.version, route) is not base.route
                or not are_same_objects(guards, base.guards)
                or not (base.is_named or base.route.version == self._find_own_base(route))
                or not self.has_present_bases(base.route, base.module)
            ):
                return False
        return True

    def connect(self, route: Route, users: tuple[Route, ...] = ()) -> None:
        """Find the bases of the module of a route; a base that cannot be called is a failure of it.

        Args:
            users: the routes that are being connected, each of which calls the next one.
        """
        module = self._find_module(route)
        if module is None or route in self._connected:
            return
        self._connected.add(route)
        try:
            if takes_inherited(module.handler):
                wanted = {
                    each.name: resolve_annotation(each, module.handler)
                    for each in list_parameters(module.handler)
                    if is_inherited(each.annotation, find_module_globals(module.handler))
                }
                self._store(route, self._connect_module(route, module, wanted, (*users, route)))
        except Exception as error:  # an annotation is code of the project
            failure = self._findings.record_failure(
                route.file, error, effective_file=route.effective_file
            )
            self._store(route, failure)

    def _connect_module(
        self,
        route: Route,
        module: HandlerModule,
        wanted: Mapping[str, Any],
        users: tuple[Route, ...],
    ) -> HandlerModule:
        function = unwrap_function(module.handler)
        if function is not None and not inspect.iscoroutinefunction(function):
            raise InjectionError(
                f"The handler must be an `async def`: it awaits {', '.join(wanted)}"
            )
        bases: dict[str, CalledHandler] = {}
        for name, annotation in wanted.items():
            content, named = _read_annotation(name, annotation)
            base = self._find_base(route, named or self._find_own_base(route), users)
            self.connect(base, users)
            if (called := self._find_module(base)) is None:
                raise InjectionError(f"Api/{base.file}, which this handler calls, does not load")
            given = self._list_given_names(module.handler, name)
            guards = select_lost_guards(route, base, self._middlewares)
            bases[name] = build_base_handler(
                self._app, route, base, called, content, given, guards, is_named=bool(named)
            )
            if self._app.dev:
                # a save of the base then reloads this file too
                space = ModuleSpace.get_or_create_space(self._app.root)
                space.computed.setdefault(_name_module(route), set()).add(_name_module(base))
        return replace(adopt_base_options(module, list(bases.values())), bases=bases)

    def _find_own_base(self, route: Route) -> str:
        """Return the base that the version of a route's file inherits from; empty without one."""
        settings = self._table.layers.settings.get(route.layer)
        return "" if settings is None else settings.inherits

    def _find_base(self, route: Route, version: str, users: tuple[Route, ...]) -> Route:
        if not version:
            raise InjectionError(
                f"Inherited names no version, and Api/{route.layer}/version.toml has no 'inherits';"
                " write Inherited[..., 'v1']"
            )
        known = dict.fromkeys(each.version for each in self._list_routes())
        if version not in known or version == route.version:
            others = ", ".join(repr(each) for each in known if each != route.version)
            raise InjectionError(
                f"Inherited must name another version, got {version!r}; there is {others or 'none'}"
            )
        if (base := self._find_place(version, route)) is None:
            _, _, below = route.template[1:].partition("/")
            raise InjectionError(
                f"{version} has no {route.method} /{below}, which Inherited could call; see"
                " treefold routes"
            )
        if base in users:
            circle = " -> ".join(f"Api/{each.file}" for each in (*users[users.index(base) :], base))
            raise InjectionError(f"Handlers call each other: {circle}; break it at one of them")
        return base

    def _find_place(self, version: str, route: Route) -> Route | None:
        """Return the route of a version at the place of another route, for its method."""
        if not self._places:
            self._places = {_key_place(each.version, each): each for each in self._list_routes()}
        return self._places.get(_key_place(version, route))

    def _list_routes(self) -> Iterator[Route]:
        yield from self._table.routes
        yield from self._table.unserved_routes

    def _find_module(self, route: Route) -> HandlerModule | None:
        found = self._modules.get(route) or self._beyond.get(route)
        if found is None:  # of a version that is not served, or for a tool that loads one route
            found = self._beyond[route] = self._load_module(route)
        if isinstance(found, HandlerModule):
            return found
        good = self._findings.find_last_good_version(route.effective_file)
        return None if good is None else good[0]

    def _store(self, route: Route, module: HandlerModule | BrokenFile) -> None:
        (self._modules if route in self._modules else self._beyond)[route] = module

    def _list_given_names(self, handler: AnyCallable, name: str) -> frozenset[str]:
        function = unwrap_function(handler)
        node = None if function is None else self._sources.find_function(function)
        return frozenset() if node is None else list_names_of_all_calls(node, name)


def _read_annotation(name: str, annotation: Any) -> tuple[Any, str]:
    """Return the type and the version that an annotation names; the latter may be empty."""
    arguments = get_args(annotation)
    if not 1 <= len(arguments) <= 2:
        raise InjectionError(
            f"Parameter {name!r} must name the type of the answer, and may name a version:"
            " Inherited[Book] or Inherited[Book, 'v1']"
        )
    content, *named = arguments
    return content, "".join(map(str, get_args(named[0]))) if named else ""


def list_names_of_all_calls(function: ast.AST, name: str) -> frozenset[str]:
    """Return the keywords that every call of a name in a function gives.

    None where the function does something else with the name than to call it or read an attribute.
    """
    nodes = list(ast.walk(function))
    known = {id(each.value) for each in nodes if isinstance(each, ast.Attribute)}
    calls = [
        each
        for each in nodes
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == name
    ]
    known |= {id(each.func) for each in calls}
    uses = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
    if not calls or any(id(each) not in known for each in uses):
        return frozenset()
    given = [{each.arg for each in call.keywords if each.arg is not None} for call in calls]
    return frozenset(given[0].intersection(*given))


def _key_place(version: str, route: Route) -> tuple[str, ...]:
    segments = route.template.split("/")[2:]
    return (route.method, version, *("{}" if each[:1] == "{" else each for each in segments))


def _name_module(route: Route) -> str:
    return folder_to_package_name(f"Api/{route.effective_file.removesuffix('.py')}")
