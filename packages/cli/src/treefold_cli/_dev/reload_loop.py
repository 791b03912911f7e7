"""The reload loop of `dev`: reloads the application at each change and logs the outcome.

The reload itself is in `treefold_http`, the restart of the process in `treefold_server`.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from treefold_cli._dev.file_watcher import FileWatcher
from treefold_cli._dev.held_failures import HeldFailures
from treefold_cli._dev.import_thread import call_in_thread
from treefold_cli._dev.snapshot import Snapshot, is_code_or_settings_file, is_included
from treefold_cli._dev.trial import find_retryable_files, loads_in_new_process
from treefold_cli._dev.watched import WatchedFolders
from treefold_http import Application, BrokenFile, Provider, TreefoldError
from treefold_http.reload import Reloaded, Reloader, RestartNeeded, remove_bytecode, without_broken
from treefold_logging import get_logger

_log = get_logger("dev")

_PATIENCE = 1.0
"""Seconds that a reload has to end, after the next save, before another process is tried."""

_SECOND_SAVE = 0.2
"""Seconds that a failed reload waits for another save before it is reported: 150 ms for the editor
that saves several files, and the time that a save takes to be seen."""

_BATCH = 300
"""Modules that are imported again together beside the requests."""

Outcome: TypeAlias = Reloaded | RestartNeeded | None


class RestartableServer(Protocol):
    """The part of a server that reloads need."""

    def request_restart(self) -> None:
        """Stop after the requests in progress, and restart the process."""
        ...

    def find_busy_tasks(self) -> set[asyncio.Task[None]]:
        """Return the tasks of the requests and WebSockets in progress."""
        ...


class AfterReload(Protocol):
    """What is told of each reload: pending steps, and files that follow the routes."""

    async def report_after_reload(self, files: Collection[str]) -> None:
        """Act on a reload of files; a short call."""
        ...


async def reload_on_change(
    app: Application,
    server: RestartableServer,
    watched: WatchedFolders,
    reports: Sequence[AfterReload],
    healed: set[tuple[str, str]],
) -> None:
    """Keep a served application up to date with its files, until cancelled.

    Args:
        app: the application, booted.
        server: its server, restarted for changes that a reload cannot apply.
        watched: the folders, with their files as they were before the boot.
        reports: called with the reloaded files.
        healed: files and the errors of their second import that a restart has healed; is updated.
    """
    reloads = ReloadLoop(app, server, reports, watched.include, healed)
    async with AsyncExitStack() as stack:
        watchers: dict[Path, FileWatcher] = {}
        for folder, seen in watched.seen.items():
            watcher = FileWatcher(folder, seen, watched.include)
            watchers[folder] = await stack.enter_async_context(watcher)
        _log.info("watching %s", ", ".join(map(str, watchers)))
        await reloads.prepare_reload()
        own = watchers.pop(watched.root)
        runs = [
            reloads.reload_until_restart_needed(own),
            *(_wait_for_outside_change(*other) for other in watchers.items()),
        ]
        begin_restart(app, server, await _await_first(runs))


async def _await_first(runs: Sequence[Coroutine[Any, Any, str]]) -> str:
    """Return the result of the coroutine that ends first; cancel the others."""
    tasks = [asyncio.ensure_future(run) for run in runs]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(iter(done)).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _wait_for_outside_change(folder: Path, watcher: FileWatcher) -> str:
    """Wait for a change in a folder besides the root; return the reason of the restart."""
    while True:
        files = await watcher.wait_for_changes()
        if good := without_broken(folder, files):
            for file in files:
                remove_bytecode(folder / file)
            return f"{folder / good[0]} changed"


def begin_restart(app: Application | None, server: RestartableServer, reason: str) -> None:
    """Log the reason, then restart the process after the requests in progress."""
    _log.info("restarting: %s", reason)
    if app is not None:
        app.begin_shutdown()
    server.request_restart()


async def restart_on_next_change(server: RestartableServer, watched: WatchedFolders) -> None:
    """Restart the process at the next change of a file."""

    async def wait_for_files(folder: Path, seen: Snapshot) -> str:
        async with FileWatcher(folder, seen, watched.include) as watcher:
            files = await watcher.wait_for_changes()
        for file in files:
            remove_bytecode(folder / file)
        return f"{min(files)} changed"

    begin_restart(
        None, server, await _await_first([wait_for_files(*one) for one in watched.seen.items()])
    )


async def _wait_for_any(*futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


class ReloadLoop:
    """Reloads the application at each change.

    Args:
        app: the application, booted.
        server: its server.
        reports: called with the reloaded files.
        include: patterns of files that are no code; a change of one restarts the process.
        healed: as in `reload_on_change`.
    """

    def __init__(
        self,
        app: Application,
        server: RestartableServer,
        reports: Sequence[AfterReload],
        include: Sequence[str],
        healed: set[tuple[str, str]],
    ) -> None:
        self._app = app
        self._healed = healed
        self._include = include
        self._reports = reports
        self._server = server
        self._reloader = Reloader(app, import_later=self._import_at_first_use)
        self._reloading = asyncio.Lock()
        self._importing: asyncio.Task[None] | None = None
        self._waiting_import: asyncio.Future[Outcome] | None = None  # the last one
        self._has_save = False
        self._restart: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._closing: set[asyncio.Task[None]] = set()
        self._broken: Sequence[BrokenFile] = ()
        self._failures = HeldFailures()
        self._changes: asyncio.Future[set[str]]

    async def prepare_reload(self) -> None:
        """Do the work in advance that would delay the first reload."""
        await asyncio.to_thread(self._reloader.read_imports)

    async def reload_until_restart_needed(self, watcher: FileWatcher) -> str:
        """Reload at each change until the process must restart; return the reason."""
        self._changes = asyncio.ensure_future(watcher.wait_for_changes())
        saved: set[str] = set()
        try:
            while True:
                if not saved:
                    await _wait_for_any(self._changes, self._restart)
                if self._restart.done():
                    return self._restart.result()
                files = saved or await self._await_next_changes(watcher)
                data = [
                    f
                    for f in sorted(files)
                    if not is_code_or_settings_file(f) and is_included(f, self._include)
                ]
                if data:
                    return f"{data[0]} changed"
                self._has_save = True  # no import of modules that waited begins any more
                if (running := self._waiting_import) is not None:
                    files, reason = await self._collect_saves_during_reload(running, watcher, files)
                    if reason:
                        return reason
                async with self._reloading:
                    self._has_save = False
                    outcome, saved, reason = await self._reload_saved_files(files, watcher)
                if isinstance(outcome, Reloaded) and self._failures.records:
                    self._broken = outcome.broken
                    reason = self._find_reason_of_repeated_restart(files)
                    if not reason:
                        saved = saved or await self._wait_for_second_save(watcher)
                    if saved and not reason:
                        self._failures.set_aside()
                        self._schedule_provider_close(outcome.replaced)
                        saved |= files
                        continue
                reason = reason or await self._process_reload_outcome(outcome, files)
                if not reason and not saved:
                    reason = await self._find_restart_reason_by_trial(files)
                if reason:
                    return reason
                if self._reloader.waiting and (self._importing is None or self._importing.done()):
                    self._importing = asyncio.create_task(self._import_waiting_modules())
        finally:
            self._changes.cancel()
            if self._importing is not None:
                self._importing.cancel()

    async def _await_next_changes(self, watcher: FileWatcher) -> set[str]:
        files = await self._changes
        self._changes = asyncio.ensure_future(watcher.wait_for_changes())
        return files

    async def _reload_saved_files(
        self, files: Collection[str], watcher: FileWatcher
    ) -> tuple[Outcome, set[str], str]:
        """Reload files; return the outcome, the files saved meanwhile, and a reason to restart."""
        with self._failures.hold_back():
            reload = call_in_thread(
                partial(self._catch_reload_errors, self._reloader.reload, files)
            )
            saved, reason = await self._collect_saves_during_reload(reload, watcher, ())
        return None if reason else reload.result(), saved, reason

    async def _import_at_first_use(self, module: str) -> None:
        try:
            await asyncio.wait_for(self._reloading.acquire(), _PATIENCE)
        except TimeoutError:  # beside an import that blocks, the former version serves
            return
        try:
            if not self._has_save:  # else the former version serves
                await self._reload_waiting_modules([module])
        finally:
            self._reloading.release()

    async def _import_waiting_modules(self) -> None:
        """Import what a save has left for its first use, also what no request uses."""
        await asyncio.sleep(_SECOND_SAVE)  # the next save may change what these import
        while names := list(self._reloader.waiting)[:_BATCH]:
            async with self._reloading:
                if self._has_save or not await self._reload_waiting_modules(names):
                    return
        if reason := await self._find_restart_reason_by_trial(()):
            self._ask_for_restart(reason)

    async def _reload_waiting_modules(self, names: Sequence[str]) -> bool:
        """Import modules that wait; return False if that changes nothing."""
        if self._reloader.waiting.isdisjoint(names):
            return True  # another request has asked for them
        # the loop does not wait: other requests need none of these modules
        self._waiting_import = call_in_thread(
            partial(self._catch_reload_errors, self._reloader.reload_waiting, names), at_once=0
        )
        # a request that asked for it may be cancelled, which must not hide that it runs
        outcome = await asyncio.shield(self._waiting_import)
        if isinstance(outcome, RestartNeeded):
            self._ask_for_restart(outcome.reason)
            return False
        if outcome is None:
            return False
        self._broken = outcome.broken
        _log_broken_files(outcome)
        self._schedule_provider_close(outcome.replaced)
        return True

    def _ask_for_restart(self, reason: str) -> None:
        if not self._restart.done():
            self._restart.set_result(reason)

    async def _wait_for_second_save(self, watcher: FileWatcher) -> set[str]:
        """Return the files that are saved at once after a reload that failed."""
        await asyncio.wait((self._changes,), timeout=_SECOND_SAVE)
        return await self._await_next_changes(watcher) if self._changes.done() else set()

    async def _collect_saves_during_reload(
        self, reload: asyncio.Future[Outcome], watcher: FileWatcher, files: Collection[str]
    ) -> tuple[set[str], str]:
        """Return the files that are saved until a reload ends, or a reason to restart instead.

        Args:
            reload: the reload.
            watcher: reports further saves.
            files: those that were saved before.
        """
        saved, is_known = {*files}, bool(files)
        while not reload.done():
            if not is_known:
                await _wait_for_any(reload, self._changes)
                if reload.done():
                    break
                saved |= await self._await_next_changes(watcher)
            is_known = False
            await asyncio.wait((reload,), timeout=_PATIENCE)
            if reload.done():
                break
            if await self._loads_in_new_process(reload):
                for file in saved:
                    remove_bytecode(self._app.root / file)
                return saved, f"{min(saved)} changed, and the import of a former save did not end"
            if not reload.done() and not self._changes.done():
                _log.warning(
                    "not reloaded: %s; the import of a former save has not ended, and the project"
                    " does not load in a new process",
                    ", ".join(sorted(saved)),
                )
        return saved, ""

    async def _process_reload_outcome(self, outcome: Outcome, files: Collection[str]) -> str:
        """Log the result of a reload; return the reason if the process must restart."""
        self._failures.log_unrepaired(self._app.report.broken)
        if isinstance(outcome, RestartNeeded):
            return outcome.reason
        self._broken = () if outcome is None else outcome.broken
        if outcome is not None:
            _log_reload_summary(outcome)
            self._schedule_provider_close(outcome.replaced)
        for report in self._reports:
            await report.report_after_reload(files)
        return ""

    async def _find_restart_reason_by_trial(self, files: Collection[str]) -> str:
        """Return a reason to restart if what does not load here loads in a new process.

        Args:
            files: the reloaded files.
        """
        failed = self._find_retryable_files()
        if not failed or not await self._loads_in_new_process():
            return ""
        self._healed |= self._list_errors(failed)
        return self._prepare_restart(files, failed)

    def _find_reason_of_repeated_restart(self, files: Collection[str]) -> str:
        """Return a reason to restart if every failure is one that a restart has healed before."""
        failed = self._find_retryable_files()
        if not failed or not self._list_errors(failed) <= self._healed:
            return ""
        if not all(one.kept for one in self._broken):  # another process did not load it
            return ""
        return self._prepare_restart(files, failed)

    def _find_retryable_files(self) -> list[str]:
        return find_retryable_files(self._broken, {file for file, _ in self._healed})

    def _list_errors(self, files: Collection[str]) -> set[tuple[str, str]]:
        """Return the kinds of the errors of broken files; their texts may name what has changed."""
        return {
            (one.cause, one.error.partition(":")[0]) for one in self._broken if one.cause in files
        }

    def _prepare_restart(self, files: Collection[str], failed: Sequence[str]) -> str:
        for file in (*files, *failed):
            remove_bytecode(self._app.root / file)
        return f"{failed[0]} loads in a new process"

    async def _loads_in_new_process(self, *cancelling_futures: asyncio.Future[Outcome]) -> bool:
        """Return True if the project loads in a new process.

        Args:
            cancelling_futures: end the trial, as does the next change of a file.
        """
        healed = {file for file, _ in self._healed}
        known = [one.cause for one in self._broken if not one.kept and one.cause not in healed]
        trial = asyncio.ensure_future(loads_in_new_process(self._app.root, known))
        try:
            await _wait_for_any(trial, self._changes, *cancelling_futures)
            ended = self._changes.done() or any(end.done() for end in cancelling_futures)
            return not ended and trial.result()
        finally:
            trial.cancel()
            await asyncio.gather(trial, return_exceptions=True)

    def _catch_reload_errors(
        self, reload: Callable[[Collection[str]], Outcome], files: Collection[str]
    ) -> Outcome:
        try:
            return reload(files)
        except TreefoldError as error:
            _log.error("not reloaded: %s", error)
        except BaseException as error:
            _log.error("not reloaded: %s", ", ".join(sorted(files)), exc_info=error)
        return None

    def _schedule_provider_close(self, providers: Collection[Provider]) -> None:
        """Close the values of former providers once the requests that use them have ended."""
        if providers:
            users = {*self._server.find_busy_tasks(), *self._app.background.list_unfinished_tasks()}
            task = asyncio.create_task(_close_providers_after_tasks(self._app, providers, users))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


async def _close_providers_after_tasks(
    app: Application, providers: Collection[Provider], users: Collection[asyncio.Task[Any]]
) -> None:
    if users:
        await asyncio.wait(users)
    try:
        await app.providers.close(providers)
    except Exception as error:
        _log.error("a value of the application failed to close", exc_info=error)


def _log_reload_summary(outcome: Reloaded) -> None:
    broken = {one.cause for one in outcome.broken}
    fresh = set(outcome.files) - broken
    if saved := sorted({*outcome.saved} - broken - {*outcome.deferred} or fresh):
        importers = len(fresh.difference(outcome.saved, saved)) + outcome.later
        text = _summarize_files(saved, importer_count=importers)
        _log.info("reloaded in %.0f ms: %s", outcome.seconds * 1000, text)
    for word, routes in (("new", outcome.added), ("gone", outcome.removed)):
        for route in routes:
            _log.info("%s: %s %s from Api/%s", word, route.method, route.template, route.file)
    _log_broken_files(outcome)
    if outcome.deferred:
        _log.warning("restart deferred until no file is broken: %s", ", ".join(outcome.deferred))


def _log_broken_files(outcome: Reloaded) -> None:
    for kept, what in ((True, "its last good version serves"), (False, "it answers 500")):
        causes = sorted({one.cause for one in outcome.broken if one.kept is kept and one.traceback})
        if causes:
            _log.warning("broken, %s: %s", what, ", ".join(causes))


def _summarize_files(saved: Sequence[str], *, importer_count: int) -> str:
    shown = ", ".join(saved[:3]) + (f" and {len(saved) - 3} more" if len(saved) > 3 else "")
    if not importer_count:
        return shown
    return f"{shown} (with {importer_count} that import{'s' if importer_count == 1 else ''} it)"
