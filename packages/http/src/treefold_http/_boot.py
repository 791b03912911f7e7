"""Boot: read a project and make the site that serves it.

Scan, import, `init()`, plan, compose, one summary line. A handler file that fails never stops it;
a boot file (`Middleware/`, `hooks.py`) that fails does, after everything wrong has been reported.
Nothing is served here: the result is one `Site`, which the application swaps in as a whole.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from treefold_http._errors import BootError, HTTPError
from treefold_http._loader import HandlerModule, load_handler
from treefold_http._middleware import check_entry, compose, entries_for
from treefold_http._modules import ModuleSpace, write_bytecode
from treefold_http._plan import Plan, broken_plan, make_plan
from treefold_http._response import Response
from treefold_logging import get_logger
from treefold_router import Route, RouterError, RouteTable, Skipped

if TYPE_CHECKING:
    from treefold_http._application import Application
    from treefold_http._request import Request


_LONGEST_ERROR = 500


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that could not be loaded.

    Attributes:
        file: its path below the application root's `Api/`, or the boot file's name.
        error: what went wrong, in one line.
        traceback: the whole of it.
    """

    file: str
    error: str
    traceback: str


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
        modules: what each route's file defines, or why it is broken.
        default_version: the version that unversioned requests get; None where none do.
        extensions: objects of `extensions.py`, in order.
        kept: what is made of the site when it is first asked for; it dies with the site.
    """

    table: RouteTable
    plans: dict[Route, Plan]
    miss: Plan
    modules: dict[Route, HandlerModule | BrokenFile]
    middlewares: Sequence[Any]
    on_startup: Sequence[Callable[..., Any]]
    on_shutdown: Sequence[Callable[..., Any]]
    report: BootReport
    default_version: str | None
    extensions: Sequence[Any]
    kept: dict[str, Any] = field(init=False, default_factory=dict[str, Any])


@dataclass(slots=True)
class _Findings:
    """What goes wrong while a project is read."""

    broken: list[BrokenFile] = field(default_factory=list[BrokenFile])
    notes: list[str] = field(default_factory=list[str])
    fatal: BrokenFile | None = None

    def add(self, file: str, error: BaseException, *, fatal: bool = False) -> BrokenFile:
        found = BrokenFile(file, _one_line(error), "".join(traceback.format_exception(error)))
        self.broken.append(found)
        if fatal:
            self.fatal = found
        get_logger().error("%s failed to load: %s", file, found.error, exc_info=error)
        return found


def build_site(app: Application) -> Site:
    """Read the project of an application.

    Raises:
        BootError: when there is no `Api/` folder or a boot file fails; the message says which.
    """
    started = time.perf_counter()
    try:
        table = RouteTable.scan(
            app.root / "Api",
            auto_head=app.settings.auto_head,
            auto_options=app.settings.auto_options,
        )
    except RouterError as error:
        raise BootError(str(error)) from error
    space = ModuleSpace.of(app.root)
    space.enter()
    findings = _Findings()
    mounted = app.mounts.snapshot()
    middlewares = _middlewares(space, findings)
    _provide(app, _boot_module(space, "providers", findings), findings)
    extensions = _extensions(app, _boot_module(space, "extensions", findings), findings)
    hooks = _boot_module(space, "hooks", findings)
    on_startup = _callables(hooks, "on_startup", findings)
    on_shutdown = _callables(hooks, "on_shutdown", findings)
    modules = {route: _load(space, route, findings) for route in table.routes}
    plans = plan_routes(app, modules, middlewares, findings)
    site = Site(
        table=table,
        plans=plans,
        miss=Plan(
            route=None,
            run=compose(app, entries_for(None, middlewares), _answer_miss),
            max_body=app.settings.max_body,
        ),
        modules=modules,
        middlewares=middlewares,
        on_startup=on_startup,
        on_shutdown=on_shutdown,
        default_version=_default_version(app, table),
        extensions=extensions,
        report=BootReport(
            routes=len(table.routes),
            middleware=len(middlewares),
            broken=tuple(findings.broken),
            skipped=table.skipped,
            notes=tuple(findings.notes),
        ),
    )
    write_bytecode()
    _log(site, time.perf_counter() - started)
    if findings.fatal:
        app.mounts.restore(mounted)
        message = f"{findings.fatal.file} cannot be used: {findings.fatal.error}"
        raise BootError(message, site.report)
    return site


def plan_routes(
    app: Application,
    modules: Mapping[Route, HandlerModule | BrokenFile],
    middlewares: Sequence[Any],
    findings: _Findings | None = None,
) -> dict[Route, Plan]:
    """Compose the plan of every route; one whose parameters cannot be provided counts as broken."""
    findings = findings or _Findings()
    plans: dict[Route, Plan] = {}
    for route, module in modules.items():
        if isinstance(module, HandlerModule):
            try:
                plans[route] = make_plan(app, route, module, middlewares)
                continue
            except Exception as error:  # user code decides what its signature raises
                module = findings.add(route.file, error)
        plans[route] = broken_plan(app, route, module.error, middlewares)
    return plans


def _load(space: ModuleSpace, route: Route, findings: _Findings) -> HandlerModule | BrokenFile:
    try:
        return load_handler(space, route)
    except KeyboardInterrupt:
        raise  # somebody at the terminal wants the boot to end
    except BaseException as error:
        return findings.add(route.file, error)


def _boot_module(space: ModuleSpace, name: str, findings: _Findings) -> ModuleType | None:
    file = space.root / f"{name}.py"
    if not file.is_file() and not (space.root / name / "__init__.py").is_file():
        return None
    shown = file.name if file.is_file() else f"{name}/__init__.py"
    try:
        return space.load(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        findings.add(shown, error, fatal=True)
        return None


def _middlewares(space: ModuleSpace, findings: _Findings) -> Sequence[Any]:
    module = _boot_module(space, "Middleware", findings)
    entries: Any = getattr(module, "middlewares", [])
    try:
        if not isinstance(entries, (list, tuple)):
            raise TypeError(f"`middlewares` is {type(entries).__qualname__!r}; make it a list")
        listed = cast("Sequence[Any]", entries)
        for entry in listed:
            check_entry(entry)
    except TypeError as error:
        findings.add("Middleware/__init__.py", error, fatal=True)
        return []
    return listed


def _callables(
    module: ModuleType | None, name: str, findings: _Findings
) -> Sequence[Callable[..., Any]]:
    entries: Any = getattr(module, name, [])
    if isinstance(entries, (list, tuple)):
        listed = cast("Sequence[Any]", entries)
        if all(callable(entry) for entry in listed):
            return listed
    error = TypeError(
        f"`{name}` holds something that cannot be called; make it a list of functions"
    )
    findings.add("hooks.py", error, fatal=True)
    return []


def _provide(app: Application, module: ModuleType | None, findings: _Findings) -> None:
    providers: Any = getattr(module, "providers", {})
    try:
        if not isinstance(providers, dict):
            raise TypeError(f"`providers` is {type(providers).__qualname__!r}; make it a dict")
        for key, provider in cast("dict[Any, Any]", providers).items():
            app.providers.add(key, provider)
    except TypeError as error:
        findings.add("providers.py", error, fatal=True)


def _extensions(app: Application, module: ModuleType | None, findings: _Findings) -> Sequence[Any]:
    entries: Any = getattr(module, "extensions", [])
    try:
        if not isinstance(entries, (list, tuple)):
            raise TypeError(f"`extensions` is {type(entries).__qualname__!r}; make it a list")
        listed = cast("Sequence[Any]", entries)
        for extension in listed:
            if (setup := getattr(extension, "setup", None)) is not None:
                setup(app)
    except (Exception, SystemExit) as error:
        findings.add("extensions.py", error, fatal=True)
        return []
    return listed


def _default_version(app: Application, table: RouteTable) -> str | None:
    chosen = app.settings.default_version
    return table.latest if chosen == "latest" else chosen


async def _answer_miss(request: Request) -> Any:
    miss = request.miss
    if isinstance(miss, HTTPError):
        raise miss
    return miss if isinstance(miss, Response) else await miss(request)


def _one_line(error: BaseException) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}..."


def _log(site: Site, seconds: float) -> None:
    log = get_logger()
    report = site.report
    for skipped in report.skipped:
        log.warning("skipped %s: %s", skipped.file, skipped.reason)
    for duplicate in site.table.duplicates:
        log.warning(
            "duplicate %s %s: %s", duplicate.method, duplicate.url, ", ".join(duplicate.files)
        )
    log.info(
        "booted in %.0f ms: routes %d, middleware %d, files with errors %d, skipped files %d",
        seconds * 1000,
        report.routes,
        report.middleware,
        len(report.broken),
        len(report.skipped),
    )
