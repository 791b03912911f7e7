"""Boot: read a project and build the `Site` that serves it.

Scan, import, `init()`, plan, compose, one summary line. A handler file that fails never stops the
boot; a boot file that fails does, after every failure has been reported. Nothing is served here:
the result is one `Site`, which the application swaps in as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from treefold_http._boot_files import read_boot_files
from treefold_http._connection import below_root
from treefold_http._development import development_entries, local_hosts
from treefold_http._errors import BootError
from treefold_http._findings import BrokenFile, Findings, cause_of
from treefold_http._loader import HandlerModule, load_handler
from treefold_http._middleware import compose, entries_for
from treefold_http._misses import ScopedMisses, plan_miss, plan_scoped_misses
from treefold_http._modules import ModuleSpace, dotted, write_bytecode
from treefold_http._plan import WEBSOCKET, Plan, broken_plan, make_plan
from treefold_http._response import Response
from treefold_http._types import CallNext
from treefold_logging import get_logger
from treefold_router import Route, RouterError, RouteTable, Skipped

if TYPE_CHECKING:
    from treefold_http._application import Application
    from treefold_http._request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class BootReport:
    """The result of a boot: counts, broken files, skipped files with their reasons."""

    routes: int
    middleware: int
    broken: tuple[BrokenFile, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A loaded project: everything that serves requests, replaced as a whole by a reload.

    Attributes:
        table: path to route.
        plans: route to plan.
        miss: the plan for 404, 405 and synthesised OPTIONS, inside the project's middleware.
        scoped_misses: the same for subtrees and routes with middleware of their own.
        modules: the handler module of each route, or the error of a broken file.
        middlewares: the middleware of every request: that of development mode, then `listed`.
        listed: the entries of `Middleware/`.
        default_version: the version that serves unversioned requests; None for no version.
        extensions: objects of `extensions.py`, in order.
        good: by file, the last module and plan that loaded; empty without `dev=True`.
        kept: a cache of values derived from the site, such as OpenAPI documents.
    """

    table: RouteTable
    plans: dict[Route, Plan]
    miss: Plan
    scoped_misses: ScopedMisses
    modules: dict[Route, HandlerModule | BrokenFile]
    middlewares: Sequence[Any]
    listed: Sequence[Any]
    on_startup: Sequence[Callable[..., Any]]
    on_shutdown: Sequence[Callable[..., Any]]
    report: BootReport
    default_version: str | None
    extensions: Sequence[Any]
    good: dict[str, tuple[HandlerModule, Plan]]
    kept: dict[str, Any] = field(init=False, default_factory=dict[str, Any])

    def masked_in(self, raw_path: bytes, root_path: str) -> tuple[int, ...]:
        """Return the indexes of the path segments to mask in logs, for a request without a route.

        The path may still belong to a route: one of another method, or one whose middleware refused
        the request.

        Args:
            root_path: the prefix that the application is mounted at.
        """
        path = below_root(raw_path, root_path)
        route = self.route_at(path)
        return () if route is None else self.plans[route].masked_in(raw_path)

    def route_at(self, path: bytes | str) -> Route | None:
        """Return a route at a path, below the default version where the path has none."""
        route = self.table.route_at(path)
        if route is None and self.default_version is not None:
            route = self.table.route_at(path, self.default_version)
        return route


def build_site(
    app: Application,
    former: Site | None = None,
    *,
    modules_before: Collection[str] = (),
    broken: Sequence[BrokenFile] = (),
) -> Site:
    """Read the project of an application.

    Args:
        former: in a reload, the site that serves now: a file that fails keeps its version there,
            and extensions are not set up again.
        modules_before: modules that were loaded and are imported again if their files exist.
        broken: known failures, which are not tried again.

    Raises:
        BootError: when there is no `Api/` folder or a boot file fails; the message says which.
    """
    started = time.perf_counter()
    table = _scan(app)
    space = ModuleSpace.of(app.root)
    space.enter()
    findings = Findings(str(space.root), former, list(broken))
    mounted = app.mounts.snapshot()
    files = read_boot_files(app, space, findings)
    modules = {route: _load(space, route, table.packages, findings) for route in table.routes}
    handlers = {dotted(f"Api/{route.file.removesuffix('.py')}") for route in table.routes}
    for name in sorted(set(modules_before) - handlers):
        _load_again(space, name, findings)
    middlewares = files.middlewares
    if app.dev:
        told = development_entries([*app.installed, *files.extensions])
        middlewares = [*told, *local_hosts(middlewares), *middlewares]
    plans = plan_routes(app, modules, middlewares, findings)
    miss = plan_miss(app, entries_for(None, middlewares))
    scoped_misses = plan_scoped_misses(app, modules, middlewares)
    good = _good(modules, plans, findings) if app.dev else {}
    if app.dev and findings.broken:
        plans = {route: _telling(app, plan, findings) for route, plan in plans.items()}
        miss = _telling(app, miss, findings)
    site = Site(
        table=table,
        plans=plans,
        miss=miss,
        scoped_misses=scoped_misses,
        modules=modules,
        middlewares=middlewares,
        listed=files.middlewares,
        on_startup=files.on_startup,
        on_shutdown=files.on_shutdown,
        default_version=_default_version(app, table),
        extensions=files.extensions,
        good=good,
        report=BootReport(
            routes=len(table.routes),
            middleware=len(files.middlewares),
            broken=tuple(findings.broken),
            skipped=table.skipped,
            notes=tuple(findings.notes),
        ),
    )
    write_bytecode()
    _log(site, former, time.perf_counter() - started)
    if findings.fatal:
        app.mounts.restore(mounted)
        message = f"{findings.fatal.file} cannot be used: {findings.fatal.error}"
        raise BootError(message, site.report)
    return site


def _scan(app: Application) -> RouteTable:
    automatic = {"auto_head": app.settings.auto_head, "auto_options": app.settings.auto_options}
    try:
        return RouteTable.scan(app.root / "Api", **automatic)
    except RouterError as error:
        raise BootError(str(error)) from error


def plan_routes(
    app: Application,
    modules: dict[Route, HandlerModule | BrokenFile],
    middlewares: Sequence[Any],
    findings: Findings | None = None,
) -> dict[Route, Plan]:
    """Compose the plan of every route; a route whose parameters cannot be provided is broken.

    In a reload, a broken file keeps its last good module, written back to `modules`, and also its
    last good plan if no plan can be composed from that module now.
    """
    findings = findings or Findings(str(app.root))
    plans: dict[Route, Plan] = {}
    for route, module in list(modules.items()):
        if isinstance(module, HandlerModule):
            try:
                plans[route] = make_plan(app, route, module, middlewares)
                continue
            except Exception as error:  # reading a signature runs user code
                module = findings.add(route.file, error)
        good = findings.last_good(route.file)
        if good is None:
            plans[route] = broken_plan(app, route, module.error, middlewares)
            continue
        modules[route], former = good
        try:
            plans[route] = make_plan(app, route, good[0], middlewares)
        except Exception:  # a provider is gone: the former plan still holds it
            plans[route] = replace(former, route=route)
    return plans


def _good(
    modules: dict[Route, HandlerModule | BrokenFile], plans: dict[Route, Plan], findings: Findings
) -> dict[str, tuple[HandlerModule, Plan]]:
    lost = {broken.file for broken in findings.broken if not broken.kept}
    return {
        route.file: (module, plans[route])
        for route, module in modules.items()
        if isinstance(module, HandlerModule) and route.file not in lost
    }


def _telling(app: Application, plan: Plan, findings: Findings) -> Plan:
    """The same plan with a response header that names the broken file; only with `dev=True`."""
    if plan.route is not None and plan.route.method == WEBSOCKET:
        return plan
    first = findings.broken[0]
    text = f"{first.cause}: {first.error}".encode("ascii", "backslashreplace").decode()

    async def tell(request: Request, call_next: CallNext) -> Response:
        response = await call_next(request)
        response.headers["X-Treefold-Broken"] = text
        return response

    return replace(plan, run=compose(app, [tell], plan.run, status=plan.status))


def _load(
    space: ModuleSpace, route: Route, packages: Collection[str], findings: Findings
) -> HandlerModule | BrokenFile:
    try:
        return load_handler(space, route, packages)
    except KeyboardInterrupt:
        raise  # Ctrl-C at the terminal ends the boot
    except BaseException as error:
        return findings.add(route.file, error)


def _load_again(space: ModuleSpace, name: str, findings: Findings) -> None:
    """Import a module that only function bodies import.

    Without this, its failure would surface in a request, with no last good version to fall back on.
    """
    try:
        space.load(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            return  # its file is gone
        cause = cause_of(error, findings.root) or name
        if cause not in [broken.cause for broken in findings.broken]:
            findings.add(cause.removeprefix("Api/"), error, fatal=True)


def _default_version(app: Application, table: RouteTable) -> str | None:
    chosen = app.settings.default_version
    return table.latest if chosen == "latest" else chosen


def _log(site: Site, former: Site | None, seconds: float) -> None:
    log = get_logger()
    report = site.report
    for skipped in report.skipped:
        if former is None or skipped not in former.report.skipped:
            log.warning("skipped %s: %s", skipped.file, skipped.reason)
    for duplicate in site.table.duplicates:
        if former is None or duplicate not in former.table.duplicates:
            log.warning(
                "duplicate %s %s: %s", duplicate.method, duplicate.url, ", ".join(duplicate.files)
            )
    if former is None:
        log.info(
            "booted in %.0f ms: routes %d, middleware %d, files with errors %d, skipped files %d",
            seconds * 1000,
            report.routes,
            report.middleware,
            len(report.broken),
            len(report.skipped),
        )
