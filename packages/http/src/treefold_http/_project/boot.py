"""Boot: read a project and build the `LoadedProject` that serves it.

Scan, import, `init()`, plan, compose, one summary line. A handler file that fails never stops the
boot; a boot file that fails does, after every failure has been reported. Nothing is served here:
the result is one `LoadedProject`, which the application swaps in as a whole.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from treefold_http._chains.middleware_chain import select_route_middlewares
from treefold_http._chains.subtrees import Under
from treefold_http._injection.inherited import takes_inherited
from treefold_http._json.json import use_stdlib_encoder
from treefold_http._modules.modules import ModuleSpace, patch_import_module_to_track
from treefold_http._modules.source_loader import write_queued_bytecode_in_thread
from treefold_http._plans.fallbacks import plan_fallback, plan_scoped_fallbacks
from treefold_http._plans.handlers import HandlerModule, load_handler
from treefold_http._plans.outside_plans import OutsidePlans
from treefold_http._project.boot_files import read_boot_files
from treefold_http._project.coverage import are_prefixes_unchanged, check_coverage_or_keep_former
from treefold_http._project.deprecated_routes import NO_DEPRECATIONS, find_deprecations
from treefold_http._project.development import build_development_entries, build_missing_host_check
from treefold_http._project.findings import IS_FINDING, Findings, find_failed_import_file
from treefold_http._project.loaded_project import BootFiles, LoadedProject
from treefold_http._project.lost_guards import LostGuard, find_lost_guards
from treefold_http._project.reuse import (
    are_same_objects,
    group_routes_by_module,
    has_no_own_middleware,
    select_present_routes,
    select_routes_to_load,
    select_routes_to_replan,
)
from treefold_http._project.route_plans import (
    add_broken_file_header,
    collect_last_good_plans,
    plan_routes,
    rewrap_plans_in_middleware,
)
from treefold_http._runtime.boot_report import BootError, BrokenFile
from treefold_logging import get_logger
from treefold_router import Route, RouterError, RouteTable

if TYPE_CHECKING:
    from treefold_http._plans.runtime import ProjectRuntime


def load_project(
    app: ProjectRuntime,
    former: LoadedProject | None = None,
    *,
    modules_to_reimport: Collection[str] = (),
    broken: Sequence[BrokenFile] = (),
    changed_api_files: Collection[str] | None = None,
) -> LoadedProject:
    """Read the project of an application.

    Args:
        former: in a reload, the project that serves now: a file that fails keeps its version there,
            and extensions are not set up again.
        modules_to_reimport: modules that were loaded and are imported again if their files exist.
        broken: known failures, which are not tried again.
        changed_api_files: in a reload, the paths below `Api/` of files that are new or gone: no
            other folder of it is listed. None if all are.

    Raises:
        BootError: when there is no `Api/` folder or a boot file fails; the message says which.
    """
    started = time.perf_counter()
    findings = Findings(str(app.root.resolve()), former, list(broken))
    # extensions mount in their setup, which the next attempt runs again
    mounted = app.mounts.take_snapshot()
    sources = _load_project_sources(
        app, findings, modules_to_reimport, changed_api_files=changed_api_files
    )
    project = _plan_and_compose_project(app, sources, findings)
    write_queued_bytecode_in_thread()
    if former is None:
        findings.log_repeated_failures()
    _log_boot(project, former, time.perf_counter() - started)
    if findings.fatal:
        app.mounts.restore_snapshot(mounted)
        raise BootError(findings.fatal_message, project.report)
    return project


def keep_project_with_failures(
    app: ProjectRuntime, former: LoadedProject, broken: Sequence[BrokenFile]
) -> LoadedProject:
    """Return the project that serves now with other failures to report; read no file."""
    findings = Findings(str(app.root.resolve()), former, list(broken))
    sources = _Sources(
        table=former.table,
        handlers=former.handlers,
        kept=former,
        files=former.boot_files,
        routes=(),
        modules=dict(former.modules),
        middlewares=former.middlewares,
        unserved=former.unserved,
        is_wrapped_alike=True,
    )
    return _plan_and_compose_project(app, sources, findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """What the files of a project say, before it is planned.

    Attributes:
        kept: the former project if its other plans still hold; None if all routes are planned.
        routes: the routes to plan.
        modules: the handler modules of all routes.
        middlewares: the middleware of every request.
        unserved: as in `LoadedProject`.
        is_wrapped_alike: True if that is the former project's.
    """

    table: RouteTable
    handlers: dict[str, list[Route]]
    kept: LoadedProject | None
    files: BootFiles
    routes: Sequence[Route]
    modules: dict[Route, HandlerModule | BrokenFile]
    middlewares: Sequence[Any]
    unserved: Sequence[Under]
    is_wrapped_alike: bool


def _load_project_sources(
    app: ProjectRuntime,
    findings: Findings,
    modules_to_reimport: Collection[str],
    *,
    changed_api_files: Collection[str] | None,
) -> _Sources:
    """Scan the tree, read the boot files and import the handlers; arguments as `load_project`."""
    former = kept = findings.former
    table = _scan_routes(app, former, changed_api_files)
    is_same_table = former is not None and table is former.table
    space = ModuleSpace.get_or_create_space(app.root)
    space.versions.layers, space.guard = table.layers, None
    space.make_current_root()
    if app.dev:
        patch_import_module_to_track()
    # before the boot files replace them: routes that look for a changed one are planned again
    providers = app.providers.declared
    files, unserved = read_boot_files(app, space, findings), ()
    if not is_same_table or not are_prefixes_unchanged(findings, files):
        files, unserved = check_coverage_or_keep_former(app, table, files, findings)
    if former is None:
        handlers, routes, modules = group_routes_by_module(table), table.routes, {}
    else:
        handlers = former.handlers if is_same_table else group_routes_by_module(table)
        routes = select_routes_to_load(former, table, modules_to_reimport)
        modules = select_present_routes(former.modules, former, table)
    modules |= _load_handlers(app, space, table, files, routes, findings)
    again = _connect_handlers(app, space, table, files, modules, routes, findings)
    routes = [*routes, *again] if again else routes
    for name in sorted(set(modules_to_reimport) - handlers.keys()):
        _reimport_module(space, name, findings)
    _switch_encoder_for_pydantic(space, None if kept is None else modules_to_reimport)
    middlewares = _prepend_dev_middlewares(app, files, former) if app.dev else files.middlewares
    if kept is not None and not are_same_objects(kept.boot_files.extensions, files.extensions):
        kept, routes = None, table.routes
    elif kept is not None:
        asking = select_routes_to_replan(kept, providers, app.providers.declared)
        routes = list(dict.fromkeys([*routes, *(route for route in asking if route in modules)]))
    return _Sources(
        table=table,
        handlers=handlers,
        kept=kept,
        files=files,
        routes=routes,
        modules=modules,
        middlewares=middlewares,
        unserved=unserved,
        is_wrapped_alike=kept is not None and are_same_objects(kept.middlewares, middlewares),
    )


def _plan_and_compose_project(
    app: ProjectRuntime, sources: _Sources, findings: Findings
) -> LoadedProject:
    """Plan the routes to plan, and compose the project from these and the former plans."""
    kept, files, middlewares = sources.kept, sources.files, sources.middlewares
    chosen = {route: sources.modules[route] for route in sources.routes}
    former = NO_DEPRECATIONS if kept is None else kept.deprecations
    deprecations = find_deprecations(
        sources.table, sources.modules, findings, former, is_fatal=not app.dev
    )
    if kept is not None:
        changed = deprecations.list_changed_routes(former)
        chosen |= {route: sources.modules[route] for route in changed if route in sources.modules}
    plans, asked, good = {}, {}, {}
    if kept is not None:
        plans = select_present_routes(kept.bare_plans, kept, sources.table)
        asked = select_present_routes(kept.asked, kept, sources.table)
        files_left = {route.effective_file for route in sources.table.routes}
        good = {file: one for file, one in kept.good.items() if file in files_left}
    if kept is not None and not sources.is_wrapped_alike:
        others = {r: module for r, module in sources.modules.items() if r not in chosen}
        wrapped = rewrap_plans_in_middleware(app, plans, others, middlewares, deprecations.layers)
        chosen |= {route: others[route] for route in others.keys() - wrapped.keys()}
        plans |= wrapped
        good |= {
            r.effective_file: (good[r.effective_file][0], p)
            for r, p in wrapped.items()
            if r.effective_file in good
        }
    plans |= plan_routes(
        app,
        chosen,
        middlewares,
        findings,
        asked if app.dev else None,
        outermost=deprecations.layers,
    )
    modules = sources.modules | chosen
    if app.dev:
        good = collect_last_good_plans(good, chosen, plans, findings)
    fallback = plan_fallback(app, select_route_middlewares(None, middlewares))
    told = plans
    if app.dev and findings.broken:
        told = {route: add_broken_file_header(app, plan, findings) for route, plan in plans.items()}
        fallback = add_broken_file_header(app, fallback, findings)
    default_version = _resolve_default_version(app, sources.table, findings)
    return LoadedProject(
        table=sources.table,
        handlers=sources.handlers,
        plans=told,
        bare_plans=plans,
        asked=asked,
        fallback=fallback,
        scoped_fallbacks=kept.scoped_fallbacks
        if kept is not None
        and kept.table is sources.table
        and sources.is_wrapped_alike
        and has_no_own_middleware(kept.modules, chosen)
        else plan_scoped_fallbacks(app, modules, middlewares, deprecations.version_layers),
        outside=OutsidePlans(app, middlewares),
        modules=modules,
        middlewares=middlewares,
        boot_files=files,
        unserved=sources.unserved,
        default_version=default_version,
        default_level=logging.INFO if app.settings.default_version == "latest" else logging.DEBUG,
        deprecations=deprecations,
        good=good,
        report=findings.build_report(sources.table, middleware=len(files.middlewares)),
    )


def _prepend_dev_middlewares(
    app: ProjectRuntime, files: BootFiles, former: LoadedProject | None
) -> Sequence[Any]:
    if former is not None:
        before, now = ([*each.middlewares, *each.extensions] for each in (former.boot_files, files))
        if are_same_objects(before, now):
            return former.middlewares
    told = build_development_entries([*app.installed, *files.extensions])
    return [*told, *build_missing_host_check(files.middlewares), *files.middlewares]


def _scan_routes(
    app: ProjectRuntime, former: LoadedProject | None, changed: Collection[str] | None
) -> RouteTable:
    try:
        if former is not None:
            is_same = changed is not None and not changed
            return former.table if is_same else former.table.rescan(changed)
        return RouteTable.scan(
            app.root / "Api",
            auto_head=app.settings.auto_head,
            auto_options=app.settings.auto_options,
            keep_listing=app.dev,
        )
    except RouterError as error:
        raise BootError(str(error)) from error


def load_error(app: ProjectRuntime, table: RouteTable, route: Route, files: BootFiles) -> str:
    """Return why the file of a route cannot serve, in one line; empty if it can.

    For tools that explain one route: no other handler is imported.

    Args:
        files: the boot files of the project.
    """
    space = ModuleSpace.get_or_create_space(app.root)
    space.versions.layers = table.layers
    findings = Findings(str(space.root))
    modules = _load_handlers(app, space, table, files, [route], findings)
    _connect_handlers(app, space, table, files, modules, [route], findings)
    plan_routes(app, modules, files.middlewares, findings)
    return findings.broken[0].error if findings.broken else ""


def load_route_middlewares(app: ProjectRuntime, table: RouteTable, route: Route) -> Sequence[Any]:
    """Return the `middlewares` of the file of a route; none if it cannot be loaded.

    For tools, as `load_error`.
    """
    space = ModuleSpace.get_or_create_space(app.root)
    space.versions.layers = table.layers
    module = _load_handler_or_failure(app, space, route, table.packages, Findings(str(space.root)))
    return module.middlewares if isinstance(module, HandlerModule) else ()


def _load_handlers(
    app: ProjectRuntime,
    space: ModuleSpace,
    table: RouteTable,
    files: BootFiles,
    routes: Sequence[Route],
    findings: Findings,
) -> dict[Route, HandlerModule | BrokenFile]:
    """Load the files of routes; those of versions that inherit after all others.

    The former routes register what a process has once, and the latter must add nothing to it.
    """
    if not table.layers.chains:
        return {
            route: _load_handler_or_failure(app, space, route, table.packages, findings)
            for route in routes
        }
    from treefold_http._modules.inherited import InheritanceGuard

    found: dict[Route, HandlerModule | BrokenFile] = {}
    for inherits in (False, True):
        if inherits:
            space.guard = InheritanceGuard(space, [*app.installed, *files.extensions])
        for route in routes:
            if (route.version in table.layers.chains) is inherits:
                found[route] = _load_handler_or_failure(app, space, route, table.packages, findings)
    return {route: found[route] for route in routes}


def _connect_handlers(
    app: ProjectRuntime,
    space: ModuleSpace,
    table: RouteTable,
    files: BootFiles,
    modules: dict[Route, HandlerModule | BrokenFile],
    routes: Sequence[Route],
    findings: Findings,
) -> list[Route]:
    """Connect handlers with those of base versions that they call; see `inherited_handlers`."""
    known = (each for each in modules.values() if isinstance(each, HandlerModule) and each.bases)
    loaded = (modules[route] for route in routes)
    if not any(known) and not any(
        isinstance(each, HandlerModule) and takes_inherited(each.handler) for each in loaded
    ):
        return []
    from treefold_http._project.inherited_handlers import connect_inherited_handlers

    def load_module(route: Route) -> HandlerModule | BrokenFile:
        return _load_handler_or_failure(app, space, route, table.packages, findings)

    return connect_inherited_handlers(
        app, table, modules, routes, findings, load_module, middlewares=files.middlewares
    )


def _load_handler_or_failure(
    app: ProjectRuntime,
    space: ModuleSpace,
    route: Route,
    packages: Collection[str],
    findings: Findings,
) -> HandlerModule | BrokenFile:
    if (known := findings.find_known_failure(route.effective_file)) is not None:
        return known
    try:
        holds = app.settings.response_model
        return load_handler(space, route, packages, holds_annotations=holds)
    except KeyboardInterrupt:
        raise  # Ctrl-C at the terminal ends the boot
    except BaseException as error:
        return findings.record_failure(route.file, error, effective_file=route.effective_file)


def _reimport_module(space: ModuleSpace, name: str, findings: Findings) -> None:
    """Import a module that only function bodies import.

    Without this, its failure would surface in a request, with no last good version to fall back on.
    """
    try:
        space.load_module(name)
    except KeyboardInterrupt:
        raise
    # a `SystemExit` at the top of one file must not end the server
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            return  # its file is gone
        cause = find_failed_import_file(error, findings.root) or name
        if cause not in [broken.cause for broken in findings.broken]:
            findings.record_failure(cause.removeprefix("Api/"), error, fatal=True)


def _resolve_default_version(
    app: ProjectRuntime, table: RouteTable, findings: Findings
) -> str | None:
    chosen = app.settings.default_version
    if chosen is None or chosen == "latest":
        return table.latest if chosen else None
    # A version folder without a route is no wrong setting. In development the folder may be renamed
    # at any time: the other paths are served.
    if chosen not in table.versions and not (app.root / "Api" / chosen).is_dir():
        known = ", ".join(("'latest'", *table.versions))
        findings.record_setting_failure(
            f"Setting default_version must name a folder of Api/, got {chosen!r}; use {known}",
            fatal=not app.dev,
        )
    return chosen


def _switch_encoder_for_pydantic(space: ModuleSpace, module_names: Collection[str] | None) -> None:
    """Change the JSON encoder if a module has a dataclass of pydantic.

    Args:
        module_names: the names of the modules to look at; None for all of the project.
    """
    if "pydantic.dataclasses" not in sys.modules:
        return
    loaded = space.find_loaded_modules()
    marks = "__dataclass_fields__", "__pydantic_serializer__"
    for name in loaded if module_names is None else loaded.keys() & set(module_names):
        values = list(vars(loaded[name]).values())
        if any(isinstance(each, type) and all(hasattr(each, m) for m in marks) for each in values):
            use_stdlib_encoder()
            return


def _list_lost_guards(project: LoadedProject) -> list[LostGuard]:
    return find_lost_guards(project.table, project.boot_files.middlewares, project.modules)


def _log_boot(project: LoadedProject, former: LoadedProject | None, seconds: float) -> None:
    log = get_logger()
    report = project.report
    for skipped in report.skipped:
        if former is None or skipped not in former.report.skipped:
            log.warning("skipped %s: %s", skipped.file, skipped.reason, extra=IS_FINDING)
    for duplicate in project.table.duplicates:
        if former is None or duplicate not in former.table.duplicates:
            log.warning(
                "duplicate %s %s: %s",
                duplicate.method,
                duplicate.url,
                ", ".join(duplicate.files),
                extra=IS_FINDING,
            )
    known = [] if former is None else _list_lost_guards(former)
    for lost in _list_lost_guards(project):
        if lost not in known:
            log.warning("lost guard: %s", lost, extra=IS_FINDING)
    if project.deprecations is not NO_DEPRECATIONS:
        today = datetime.now(UTC).date()
        known = [] if former is None else former.deprecations.list_passed_sunsets(today)
        for text in project.deprecations.list_passed_sunsets(today):
            if text not in known:
                log.warning("%s", text)
    if former is None:
        log.info(
            "booted in %.0f ms: routes %d, middleware %d, files with errors %d, skipped files %d",
            seconds * 1000,
            report.routes,
            report.middleware,
            len(report.broken),
            len(report.skipped),
        )
