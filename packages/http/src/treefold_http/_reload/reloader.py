"""Reload: build another site from the changed files, then swap it with the running one.

Changed modules and their importers are imported again; all other modules stay the same objects. A
file that fails keeps its last good version. A change that cannot be swapped asks for a restart of
the process. This module watches no files and handles no requests.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from treefold_http._modules.containers import Contents, snapshot_containers
from treefold_http._modules.import_graph import transitive_closure
from treefold_http._modules.import_watch import ImportWatch
from treefold_http._modules.modules import ModuleSpace, patch_import_functions
from treefold_http._plans.installed import wants_installed_extensions
from treefold_http._project.boot import keep_project_with_failures, load_project
from treefold_http._project.findings import build_broken_file
from treefold_http._project.loaded_project import LoadedProject
from treefold_http._redis.users import reset_used_servers
from treefold_http._reload.later_imports import (
    ImportLater,
    choose_modules_to_import_later,
    import_at_first_use,
)
from treefold_http._reload.layer_changes import find_modules_of_changes, update_package_paths
from treefold_http._reload.module_index import ModuleIndex
from treefold_http._reload.module_swap import ModuleSwap, SourceOnlyLoader
from treefold_http._reload.outcome import Reloaded, RestartNeeded, build_reload_report
from treefold_http._reload.plan import (
    ModuleGraph,
    ReloadPlan,
    collect_kept_module_names,
    is_compiled,
    path_to_module_name,
)
from treefold_http._reload.registrations import Registrations, find_extended_class
from treefold_http._reload.restart import (
    ExcludedChanges,
    ModulesExcluded,
    Restart,
    find_restart_marked_module,
    raise_if_restart_needed,
)
from treefold_http._reload.search_path import find_sys_path_modules, remove_bytecode, without_broken
from treefold_http._reload.time_limit import ImportTimeout, limit_import_time
from treefold_http._runtime.boot_report import BootError, BrokenFile
from treefold_http._runtime.settings import Settings
from treefold_http._wire.interpreter import hide_running_loop
from treefold_logging import get_logger
from treefold_router import RouterError

if TYPE_CHECKING:
    from treefold_http._serving.host import Host

_IMPORT_SECONDS = 10.0
"""Seconds that the import of one module may take."""

_MOST_TIMEOUTS = 3
"""Imports that may take too long in one reload before it is given up."""

_SETTINGS_FILES = frozenset({"pyproject.toml", "treefold.toml"})


class Reloader:
    """Keeps a booted application up to date with its files.

    Args:
        app: the application, with `dev=True`; without it no last good versions are kept.
        import_seconds: the limit for the import of one module, without those that it imports.
        import_later: called before the first request of a handler module that is not imported again
            yet; it calls `reload_waiting`. Without it no module waits.

    Attributes:
        waiting: the handler modules that wait for their first use, by dotted name, in any order.
    """

    def __init__(
        self,
        app: Host,
        *,
        import_seconds: float = _IMPORT_SECONDS,
        import_later: ImportLater | None = None,
    ) -> None:
        self._app = app
        self._import_later = import_later
        self.waiting: frozenset[str] = frozenset()
        self._space = ModuleSpace.get_or_create_space(app.root)
        self._settings = Settings.load(app.root)
        self._index = ModuleIndex(self._space.root)
        # the containers of each module, as they were at the end of the last reload
        self._contents: dict[str, Contents] = {}
        self._failed: frozenset[str] = frozenset()  # modules without their newest version
        self._pending: frozenset[str] = frozenset()  # changed files that no reload has taken yet
        self._import_seconds = import_seconds
        # modules whose import took too long: left out until one of their files changes
        self._blocking: list[ExcludedChanges] = []
        self._space.loader = SourceOnlyLoader
        patch_import_functions()

    def read_imports(self) -> None:
        """Read the imports of each module now, which makes the first reload faster."""
        with self._space.as_current_root():
            self._index.update_modules(self._space.find_loaded_modules(), self._space.computed)
            for name in transitive_closure(self._index.loaded, self._index.imports):
                # an import can enter something only into a module that another one imports
                if name in self._index.loaded and self._index.importers.get(name):
                    module = self._index.loaded[name]
                    self._contents[name] = snapshot_containers(module, self._index.loaded.keys())

    def reload(self, changed: Iterable[str]) -> Reloaded | RestartNeeded | None:
        """Reload changed files.

        Called in any thread, one call at a time: requests in other threads run the former modules
        meanwhile. Imported modules see no running loop, as at boot.

        Args:
            changed: files below the application root that are new, different or removed.

        Returns:
            The result; None if nothing that serves has changed.

        Raises:
            SettingsError: a changed settings file is invalid; the former settings stay.
            BootError: `Api/` is missing; the former project continues to serve.
            BaseException: an import raised `KeyboardInterrupt`, or several took longer than the
                limit; everything is as before.
        """
        changed = frozenset(changed)
        outcome = self._reload_files(changed, frozenset())
        if isinstance(outcome, RestartNeeded):
            for file in changed:  # the next process compares its times, in whole seconds
                remove_bytecode(self._app.root / file)
        return outcome

    def reload_waiting(self, names: Iterable[str]) -> Reloaded | RestartNeeded | None:
        """Import modules of `waiting` again; as `reload` for the rest."""
        wanted = self.waiting.intersection(names)
        return self._reload_files(frozenset(), wanted) if wanted else None

    def _reload_files(
        self, changed: frozenset[str], wanted: frozenset[str]
    ) -> Reloaded | RestartNeeded | None:
        touched = self._find_touched_files(changed)
        if touched and touched == changed:
            return None
        changed -= touched
        if (reason := self._find_sys_path_restart_reason(changed)) is not None:
            return RestartNeeded(reason)
        # before anything can raise: a reload that fails leaves its files to the next one
        self._pending |= changed
        if (reason := self._find_settings_restart_reason(self._pending)) is not None:
            return RestartNeeded(reason)
        apart = ExcludedChanges()
        self._blocking = [one for one in self._blocking if not self._may_unblock(changed, one)]
        for blocking in self._blocking:
            apart = apart.with_more_excluded(blocking)
        timeouts = 0
        with self._space.as_current_root(), hide_running_loop():
            self._space.remove_modules_imported_meanwhile()
            while True:
                try:
                    with limit_import_time(self._space, self._import_seconds):
                        outcome = self._build_project(changed, wanted, apart)
                    break
                except Restart as needed:
                    return RestartNeeded(str(needed))
                except ModulesExcluded as error:
                    apart = apart.with_more_excluded(error.changes)
                    if not error.changes.names:
                        outcome = self._keep_serving_and_report(changed, apart)
                        break
                except ImportTimeout as error:
                    timeouts += 1
                    if timeouts > _MOST_TIMEOUTS or not error.modules:
                        raise
                    self._blocking.append(self._exclude_blocking_modules(error))
                    apart = apart.with_more_excluded(self._blocking[-1])
        self._pending = apart.files
        return outcome

    def _find_touched_files(self, changed: frozenset[str]) -> frozenset[str]:
        """Return the files whose modules were made of their present content.

        None while a file is broken, or waits: to touch a file is to try it again.
        """
        if self._failed or self._pending or self._blocking or self._app.project.report.broken:
            return frozenset()
        with self._space.as_current_root():
            return frozenset(file for file in changed if self._has_running_content(file))

    def _has_running_content(self, file: str) -> bool:
        module = sys.modules.get(path_to_module_name(file))
        return (
            module is not None
            and self._index.find_module_file(module) == file
            and self._index.was_made_of_present_source(module)
        )

    def _exclude_blocking_modules(self, error: ImportTimeout) -> ExcludedChanges:
        """Leave out what was being imported, until one of these files or their imports change."""
        # the outermost is the file that the project lists, the innermost the one that blocks
        (name, *_), (file, *_) = error.modules.keys(), error.modules.values()
        cause = [*error.modules.values()][-1]
        shown = TimeoutError(str(error)).with_traceback(error.__traceback__)
        kept = name in self._index.loaded
        broken = build_broken_file(file.removeprefix("Api/"), shown, cause=cause, kept=kept)
        get_logger().error("%s failed to load: %s", cause, broken.error, exc_info=shown)
        return ExcludedChanges(frozenset(error.modules), (broken,))

    def _may_unblock(self, changed: Collection[str], blocking: ExcludedChanges) -> bool:
        used = transitive_closure(blocking.names, self._index.imports)
        return not used.isdisjoint(map(path_to_module_name, changed))

    def _find_sys_path_restart_reason(self, changed: Collection[str]) -> str | None:
        root = self._space.root
        elsewhere = find_sys_path_modules(root, changed)
        good = without_broken(root, elsewhere)
        return f"{good[0]} changed, which is imported as {elsewhere[good[0]]}" if good else None

    def _find_settings_restart_reason(self, changed: Collection[str]) -> str | None:
        if not self._app.installed.is_complete and wants_installed_extensions(self._app):
            return "the project has models now"
        names = sorted(name for name in changed if "/" not in name)
        for name in names:
            if name == ".env" or name.startswith(".env."):
                return f"{name} changed"
            # pyproject.toml holds the tables of other tools too, whose changes restart nothing
            if name in _SETTINGS_FILES and Settings.load(self._app.root) != self._settings:
                return f"the settings in {name} changed"
        return None

    def _build_project(
        self, changed: Collection[str], wanted: frozenset[str], excluded: ExcludedChanges
    ) -> Reloaded | None:
        versions, layers = self._space.versions, self._app.project.table.layers
        try:
            outcome = self._build_changed_project(changed, wanted, excluded)
        except BaseException:
            if versions.layers is not layers:
                inheriting = {*layers.chains, *versions.layers.chains}
                versions.layers = layers
                update_package_paths(self._space.find_loaded_modules(), versions, inheriting)
            raise
        return outcome

    def _build_changed_project(
        self, changed: Collection[str], wanted: frozenset[str], excluded: ExcludedChanges
    ) -> Reloaded | None:
        started = time.perf_counter()
        app, former, declared = self._app, self._app.project, self._app.providers.declared
        index = self._index
        index.update_modules(self._space.find_loaded_modules(), self._space.computed)
        # copies: swapped modules leave the index before their files are reported
        loaded, imports = dict(index.loaded), dict(index.imports)
        graph = ModuleGraph(index, self._collect_extension_module_groups())
        moved = self._find_modules_of_layers(loaded)
        # a module that waited is imported beside what has failed: a save tries that again
        tried = wanted or self._failed | moved
        plan = graph.plan_reload(self._pending, tried, excluded.names)
        later = self._choose_modules_to_import_later(plan, wanted, excluded) - moved
        plan = replace(plan, stale=plan.stale - later)
        for name in plan.stale:
            if is_compiled(loaded[name]):
                raise Restart(f"{index.find_module_file(loaded[name])} is compiled")
        self._space.refresh_top_level_names()
        # before the import, which would register the new classes beside the former ones
        undo = [one.reload(plan.stale) for one in app.extensions if hasattr(one, "reload")]
        staying = self._find_imported_unchanged_modules(plan.stale)
        entered = Registrations(staying, loaded.keys(), self._contents)
        try:
            with ModuleSwap(self._space, plan.stale) as swap, ImportWatch(index.root) as watch:
                project = load_project(
                    app,
                    former,
                    modules_to_reimport=plan.stale,
                    broken=(
                        *excluded.broken,
                        *self._select_untried_failures(plan, wanted, excluded),
                    ),
                    changed_api_files=self._find_new_or_gone_api_files(),
                )
                if plan.at_start and excluded.names.isdisjoint(plan.at_start):
                    raise_if_restart_needed(
                        former, project, plan, graph.select_files_used_at_start(self._pending)
                    )
                kept = collect_kept_module_names(project.report.broken)
                broken = plan.stale.intersection(kept)
                together = plan.stale & graph.include_related_modules(broken)
                # half of a group would refer to classes of the other half that do not serve
                if together > broken:
                    raise ModulesExcluded(ExcludedChanges(together, project.report.broken))
                self._check_reimport_safety(
                    former, project, plan, watch, entered, swap.former, excluded
                )
                # what a kept module imports comes back with it, unless it has a new version
                failed = swap.restore_modules(transitive_closure(kept, imports))
                # what imports a module that failed would wait for nothing new
                later -= transitive_closure(failed, index.importers)
        # ImportTimeout and Ctrl-C are no Exception, and must leave everything as it was too
        except BaseException:
            entered.restore_containers(plan.stale)
            app.providers.declared = declared
            _restore_in_extensions(undo, plan.stale)
            raise
        _restore_in_extensions(undo, frozenset(failed))
        fresh = plan.stale - failed
        self._failed = self._failed - plan.stale | failed | plan.left_out
        self.waiting = self.waiting - plan.stale - plan.left_out | later
        app.replace_project(self._import_at_first_use(project))
        reset_used_servers(app, project.find_middleware_redis_urls(app))
        for name in staying:
            self._contents[name] = snapshot_containers(staying[name], loaded.keys())
        for name in fresh:
            self._contents.pop(name, None)
            index.remove_module(name)  # otherwise old modules stay alive until the next reload
        used = set(app.providers.declared.values())
        present = self._space.find_loaded_modules().keys() - loaded.keys()
        first = {file for file in changed if path_to_module_name(file) in present}
        return build_reload_report(
            former,
            project,
            saved=tuple(sorted(changed)),
            files=tuple(sorted({index.find_module_file(loaded[name]) for name in fresh} | first)),
            deferred=tuple(sorted(excluded.files & {*changed})),
            later=len(later),
            replaced=tuple(one for one in declared.values() if one not in used),
            seconds=time.perf_counter() - started,
        )

    def _choose_modules_to_import_later(
        self, plan: ReloadPlan, wanted: frozenset[str], excluded: ExcludedChanges
    ) -> frozenset[str]:
        if self._import_later is None or wanted or plan.at_start or excluded.names:
            return frozenset()
        saved = {path_to_module_name(file) for file in self._pending} | self._failed
        return choose_modules_to_import_later(plan.stale, saved, self._app.project, self._index)

    def _find_modules_of_layers(self, loaded: Mapping[str, ModuleType]) -> frozenset[str]:
        """Return the modules of versions that inherit whose file has changed, or is another one.

        The files are those after the change from here on, for every import of this reload.
        """
        former, versions = self._app.project.table.layers, self._space.versions
        changed = self._find_new_or_gone_api_files()
        if not former.chains and not any(name.endswith("/version.toml") for name in changed):
            return frozenset()
        try:
            versions.layers = self._app.project.table.rescan(changed).layers
        except RouterError as error:
            raise BootError(str(error)) from error
        inheriting = {*former.chains, *versions.layers.chains}
        update_package_paths(loaded, versions, inheriting)
        found = find_modules_of_changes(
            self._pending, loaded, versions, former=former, layers=versions.layers
        )
        return frozenset(found)

    def _select_untried_failures(
        self, plan: ReloadPlan, wanted: frozenset[str], excluded: ExcludedChanges
    ) -> list[BrokenFile]:
        """Return the failures of files that an import of waiting modules does not try again."""
        return [
            one
            for one in (self._app.project.report.broken if wanted else ())
            if one not in excluded.broken
            and plan.stale.isdisjoint(collect_kept_module_names([one]))
        ]

    def _import_at_first_use(self, project: LoadedProject) -> LoadedProject:
        if self._import_later is None or not self.waiting:
            return project
        return import_at_first_use(
            project,
            self.waiting,
            self._import_later,
            lambda route: self._app.project.plans.get(route),
        )

    def _keep_serving_and_report(
        self, changed: Collection[str], excluded: ExcludedChanges
    ) -> Reloaded | None:
        """Take up nothing of a save, and report what is broken and what waits."""
        started = time.perf_counter()
        former = self._app.project
        project = keep_project_with_failures(self._app, former, excluded.broken)
        self._app.replace_project(self._import_at_first_use(project))
        return build_reload_report(
            former,
            project,
            saved=tuple(sorted(changed)),
            files=(),
            deferred=tuple(sorted(excluded.files & {*changed})),
            later=0,
            replaced=(),
            seconds=time.perf_counter() - started,
        )

    def _find_imported_unchanged_modules(self, stale: Collection[str]) -> dict[str, ModuleType]:
        """Return the modules that the stale ones import, and could enter something into."""
        reached = transitive_closure(stale, self._index.imports)
        names = (reached & self._index.loaded.keys()).difference(stale)
        return {name: self._index.loaded[name] for name in names}

    def _check_reimport_safety(
        self,
        former: LoadedProject,
        project: LoadedProject,
        plan: ReloadPlan,
        watch: ImportWatch,
        registrations: Registrations,
        before: Mapping[str, ModuleType],
        excluded: ExcludedChanges,
    ) -> None:
        """Ask for a restart if modules were imported that cannot be imported twice."""
        loaded = self._space.find_loaded_modules()
        fresh = {name: loaded[name] for name in plan.stale if name in loaded}
        reason = ""
        if watch.seen:
            file, what = next(iter(watch.seen.items()))
            reason = f"{file} {what}"
        elif (name := registrations.find_module_with_changed_containers(fresh.keys())) is not None:
            reason = f"what was imported enters something into {name}"
        elif (name := registrations.find_module_that_keeps_objects(plan.stale)) is not None:
            reason = f"{name} keeps what the former import has entered"
        elif found := find_extended_class(fresh, loaded.keys() - fresh.keys(), self._index.asking):
            reason = f"{found[0]} extends {found[1]}, which keeps its subclasses"
        # the former version counts: what it has registered stays, also when its mark is removed
        elif marked := find_restart_marked_module(before) or find_restart_marked_module(fresh):
            reason = f"{marked} has restart_on_change"
        broken = tuple(one for one in project.report.broken if one.kept)
        # a new process has no last good version of the broken file: the restart waits
        if reason and broken:
            more = plan.stale - excluded.names
            # Without one the reason is in a new file, which cannot be left out alone.
            told = broken if more else project.report.broken
            raise ModulesExcluded(ExcludedChanges(more, told, self._pending))
        if reason:
            raise Restart(reason)

    def _collect_extension_module_groups(self) -> list[Collection[str]]:
        offers = [one.related() for one in self._app.extensions if hasattr(one, "related")]
        return [group for groups in offers for group in groups]

    def _find_new_or_gone_api_files(self) -> list[str]:
        """Return the paths below `Api/` of the files that no change of their content explains."""
        root = self._space.root
        return [
            file.removeprefix("Api/")
            for file in self._pending
            if file.startswith("Api/")
            and not (self._index.by_file.get(file) and (root / file).is_file())
        ]


def _restore_in_extensions(
    restorers: Iterable[Callable[[frozenset[str]], Any] | None], names: frozenset[str]
) -> None:
    for restore in restorers:
        if restore is not None and names:
            restore(names)
