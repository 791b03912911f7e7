"""The reload loop of `dev`: reloads the application at each change and logs the outcome.

The reload itself is in `treefold_http`, the restart of the process in `restart`.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from treefold_cli._checks.pending import PendingReport
from treefold_cli._dev.file_watcher import FileWatcher
from treefold_cli._dev.snapshot import Snapshot
from treefold_http import Application, Provider, TreefoldError
from treefold_http.reload import Reloaded, Reloader, RestartNeeded
from treefold_logging import get_logger

_log = get_logger("dev")

Outcome: TypeAlias = Reloaded | RestartNeeded | None


class RestartableServer(Protocol):
    """The part of a server that reloads need."""

    def request_restart(self) -> None:
        """Stop after the requests in progress, and restart the process."""
        ...

    def busy(self) -> set[asyncio.Task[None]]:
        """Return the tasks of the requests and WebSockets in progress."""
        ...

    def interruptible(self) -> AbstractContextManager[None]:
        """Raise KeyboardInterrupt on a stop signal during the block."""
        ...


async def reload_on_change(
    app: Application, server: RestartableServer, seen: Snapshot, report: PendingReport
) -> None:
    """Keep a served application up to date with its files, until cancelled.

    Args:
        app: the application, booted.
        server: its server, restarted for changes that a reload cannot apply.
        seen: the files as they were before the boot.
        report: called with the reloaded files.
    """
    reloads = ReloadLoop(app, server, report)
    async with FileWatcher(app.root, seen) as watcher:
        _log.info("watching %s", app.root)
        await reloads.prepare()
        restart(app, server, await reloads.run(watcher))


def restart(app: Application | None, server: RestartableServer, reason: str) -> None:
    """Log the reason, then restart the process after the requests in progress."""
    _log.info("restarting: %s", reason)
    if app is not None:
        app.begin_shutdown()
    server.request_restart()


async def wait_for_change(root: Path, server: RestartableServer, seen: Snapshot) -> None:
    """Restart the process at the next change of a file."""
    async with FileWatcher(root, seen) as watcher:
        files = sorted(await watcher.changes())
    restart(None, server, f"{files[0]} changed")


async def _on_the_loop(call: Callable[[], Any]) -> Any:
    """Call in a callback outside any task: imported modules may run an event loop."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    loop.call_soon(lambda: done.set_result(call()))
    return await done


class ReloadLoop:
    """Reloads the application at each change.

    Args:
        app: the application, booted.
        server: its server.
        report: called with the reloaded files.
    """

    def __init__(self, app: Application, server: RestartableServer, report: PendingReport) -> None:
        self._app = app
        self._report = report
        self._server = server
        self._reloader = Reloader(app)
        self._closing: set[asyncio.Task[None]] = set()

    async def prepare(self) -> None:
        """Do the work in advance that would delay the first reload."""
        await asyncio.to_thread(self._reloader.read_imports)

    async def run(self, watcher: FileWatcher) -> str:
        """Reload at each change until the process must restart; return the reason."""
        while True:
            files = await watcher.changes()
            outcome = await _on_the_loop(lambda files=files: self._reload(files))
            if isinstance(outcome, RestartNeeded):
                return outcome.reason
            if outcome is not None:
                _log_outcome(outcome, files)
                self._close_replaced(outcome.replaced)
            await self._report.after_reload(files)

    def _reload(self, files: Collection[str]) -> Outcome:
        try:
            with self._server.interruptible():
                return self._reloader.reload(files)
        except KeyboardInterrupt:
            return None  # the server is ending
        except TreefoldError as error:
            _log.error("not reloaded: %s", error)
        except BaseException as error:
            _log.error("not reloaded: %s", ", ".join(sorted(files)), exc_info=error)
        return None

    def _close_replaced(self, providers: Collection[Provider]) -> None:
        """Close the values of former providers once the requests that use them have ended."""
        if providers:
            users = {*self._server.busy(), *self._app.background.busy()}
            task = asyncio.create_task(_close(self._app, providers, users))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


async def _close(
    app: Application, providers: Collection[Provider], users: Collection[asyncio.Task[Any]]
) -> None:
    if users:
        await asyncio.wait(users)
    try:
        await app.providers.close(providers)
    except Exception as error:
        _log.error("a value of the application failed to close", exc_info=error)


def _log_outcome(outcome: Reloaded, files: Collection[str]) -> None:
    broken = {one.cause for one in outcome.broken}
    fresh = set(outcome.files) - broken
    if saved := sorted({*files} - broken - {*outcome.deferred} or fresh):
        text = _summary(saved, others=len(fresh.difference(files, saved)))
        _log.info("reloaded in %.0f ms: %s", outcome.seconds * 1000, text)
    for word, routes in (("new", outcome.added), ("gone", outcome.removed)):
        for route in routes:
            _log.info("%s: %s %s from Api/%s", word, route.method, route.template, route.file)
    for kept, what in ((True, "its last good version serves"), (False, "it answers 500")):
        causes = sorted({one.cause for one in outcome.broken if one.kept is kept})
        if causes:
            _log.warning("broken, %s: %s", what, ", ".join(causes))
    if outcome.deferred:
        _log.warning("restart deferred until no file is broken: %s", ", ".join(outcome.deferred))


def _summary(saved: Sequence[str], *, others: int) -> str:
    shown = ", ".join(saved[:3]) + (f" and {len(saved) - 3} more" if len(saved) > 3 else "")
    if not others:
        return shown
    return f"{shown} (with {others} that import{'s' if others == 1 else ''} it)"
