"""Boot: read a project and make the site that serves it.

Scan, import, `init()`, plan, compose, one summary line. A handler file that fails never stops it;
a boot file that fails does, after everything wrong has been reported. Nothing is served here: the
result is one `Site`, which the application swaps in as a whole.
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
    """What the boot found: counts, broken files, skipped files with their reasons."""

    routes: int
    middleware: int
    broken: tuple[BrokenFile, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Everything that serves requests, exchanged as a whole.

    Attributes:
        table: path to route.
        plans: route to plan.
        miss: what answers 404, 405 and synthesised OPTIONS, inside the project's middleware.
        scoped_misses: the same where a subtree or a route has middleware of its own.
        modules: what each route's file defines, or why it is broken.
        middlewares: what goes around every request: what development adds, then what is `listed`.
        listed: the entries of `Middleware/`.
        default_version: the version that unversioned requests get; None where none do.
        extensions: objects of `extensions.py`, in order.
        good: by file, what served last without an error; empty without `dev=True`.
        kept: what is made of the site when it is first asked for; it dies with the site.
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
        """Give the segments that the log must not show of a path that no plan of a route served.

        Routes may be there all the same: for other methods, or behind a gate that was shut.

        Args:
            root_path: what the application is mounted at.
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
        former: what serves now, in a reload: a file that fails keeps what it has there, and what
            was set up once (extensions) is not set up again.
        modules_before: modules that were loaded, and are to be again where their files are there.
        broken: what is known to fail, and is not tried.

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
    """Compose the plan of every route; one whose parameters cannot be provided counts as broken.

    In a reload a broken file's module, and its plan where that cannot be composed anew, are the
    last good ones; `modules` then names these.
    """
    findings = findings or Findings(str(app.root))
    plans: dict[Route, Plan] = {}
    for route, module in list(modules.items()):
        if isinstance(module, HandlerModule):
            try:
                plans[route] = make_plan(app, route, module, middlewares)
                continue
            except Exception as error:  # user code decides what its signature raises
                module = findings.add(route.file, error)
        good = findings.last_good(route.file)
        if good is None:
            plans[route] = broken_plan(app, route, module.error, middlewares)
            continue
        modules[route], former = good
        try:
            plans[route] = make_plan(app, route, good[0], middlewares)
        except Exception:  # what it asks for is provided no more: to it, as it was
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
    """The same plan, its answers with a header that names the broken file; only with `dev=True`."""
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
        raise  # somebody at the terminal wants the boot to end
    except BaseException as error:
        return findings.add(route.file, error)


def _load_again(space: ModuleSpace, name: str, findings: Findings) -> None:
    """Import what only functions import, or it would fail in a request and have no last version."""
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
