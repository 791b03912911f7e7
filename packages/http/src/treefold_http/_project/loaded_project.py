"""A loaded project: everything that serves requests, which a reload replaces as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from treefold_http._chains.middleware_chain import unwrap_middleware_entry
from treefold_http._plans.handlers import HandlerModule
from treefold_http._project.deprecated_routes import Deprecations
from treefold_http._project.masked_paths import MaskedPaths
from treefold_http._wire.root_path import below_root
from treefold_logging import get_logger, request_target

if TYPE_CHECKING:
    from treefold_http._chains.subtrees import Under
    from treefold_http._failures.error_format import ErrorFormat
    from treefold_http._injection.providers import Key
    from treefold_http._plans.fallbacks import ScopedFallbacks
    from treefold_http._plans.outside_plans import OutsidePlans
    from treefold_http._plans.plans import Plan
    from treefold_http._requests.connection import Connection
    from treefold_http._runtime.boot_report import BootReport, BrokenFile
    from treefold_http._runtime.runtime import Runtime
    from treefold_http._wire.aliases import AnyCallable
    from treefold_router import Route, RouteTable


class BootFiles(NamedTuple):
    """The entries of the boot files, in their order.

    Attributes:
        middlewares: those of `Middleware/`.
        extensions: the objects of `extensions.py`.
        on_startup: the functions of `hooks.py` that run before the first request.
        on_shutdown: those that run after the last one.
        error_format: the error format of `hooks.py`; None for problem documents.
    """

    middlewares: Sequence[Any]
    extensions: Sequence[Any]
    on_startup: Sequence[AnyCallable]
    on_shutdown: Sequence[AnyCallable]
    error_format: ErrorFormat | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedProject:
    """A loaded project: everything that serves requests, replaced as a whole by a reload.

    Attributes:
        table: path to route.
        handlers: the routes of each handler module, by dotted name.
        plans: route to plan.
        fallback: the plan for 404, 405 and synthesised OPTIONS, inside the project's middleware.
        scoped_fallbacks: the same for subtrees and routes with middleware of their own.
        outside: the plans of mounts, documents and probes that entries of a subtree cover.
        modules: the handler module of each route, or the error of a broken file.
        middlewares: the middleware of every request: that of development mode, then the entries of
            `Middleware/`.
        boot_files: the entries of the boot files.
        unserved: those of `Middleware/` whose prefix only a mount of a startup hook can cover.
        report: what a boot has counted, and the files that it found broken or left out.
        default_version: the version that serves unversioned requests; None for no version.
        default_level: the level of the log line of such a request: INFO where the setting says
            `latest`, because the version may change with a new folder; DEBUG for a fixed one.
        deprecations: those of its versions and routes.
        bare_plans: the plans without the header that names a broken file.
        asked: the keys of the providers that each plan has looked for; empty without `dev=True`.
        good: by `Route.effective_file`, the last module and plan that loaded; empty without
            `dev=True`.
        kept: a cache of values derived from the project, such as OpenAPI documents.
    """

    table: RouteTable
    handlers: dict[str, list[Route]]
    plans: dict[Route, Plan]
    fallback: Plan
    scoped_fallbacks: ScopedFallbacks
    outside: OutsidePlans
    modules: dict[Route, HandlerModule | BrokenFile]
    middlewares: Sequence[Any]
    boot_files: BootFiles
    unserved: Sequence[Under]
    report: BootReport
    default_version: str | None
    default_level: int
    deprecations: Deprecations
    bare_plans: dict[Route, Plan]
    asked: dict[Route, frozenset[Key]]
    good: dict[str, tuple[HandlerModule, Plan]]
    kept: dict[str, Any] = field(init=False, default_factory=dict[str, Any])

    def find_middleware_redis_urls(self, app: Runtime) -> set[str]:
        """Return the URLs of the Redis servers that its middleware entries need."""
        loaded = [each for each in self.modules.values() if isinstance(each, HandlerModule)]
        # a broken file serves its last good version, whose middleware still needs its Redis
        loaded += [module for module, _ in self.good.values()]
        own = {id(entry): entry for module in loaded for entry in module.middlewares}
        entries = map(unwrap_middleware_entry, [*self.middlewares, *own.values()])
        urls = [e.find_redis_url(app) for e in entries if hasattr(e, "find_redis_url")]
        return {url for url in urls if url is not None}

    def find_masked_segments(self, raw_path: bytes, root_path: str) -> tuple[int, ...]:
        """Return the indexes of the path segments to mask in logs, for a request without a route.

        The path may still belong to a route: one of another method, or one whose middleware refused
        the request. Otherwise its segments are masked as far as they look like those of a route.

        Args:
            root_path: the prefix that the application is mounted at.
        """
        route = self.find_route(below_root(raw_path, root_path))
        if route is not None:
            return self.plans[route].find_masked_segments(raw_path)
        paths: MaskedPaths | None = self.kept.get("masked_paths")
        if paths is None:
            paths = MaskedPaths(route.template for route in self.plans)
            self.kept["masked_paths"] = paths
        return paths.find_secret_segments(raw_path, root_path) if paths else ()

    def log_default_version_use(self, method: str, connection: Connection, route: Route) -> None:
        """Log that a route of the default version serves a request without a version."""
        log, level = get_logger(), self.default_level
        if log.isEnabledFor(level):
            masked = self.plans[route].find_masked_segments(connection.raw_path)
            shown = request_target(connection.raw_path, b"", masked_segments=masked)
            served = self.default_version
            log.log(level, "no version in %s %s -> served %s", method, shown, served)

    def find_route(self, path: bytes | str) -> Route | None:
        """Return a route at a path, below the default version where the path has none."""
        route = self.table.route_at(path)
        if route is None and self.default_version is not None:
            route = self.table.route_at(path, self.default_version)
        return route
