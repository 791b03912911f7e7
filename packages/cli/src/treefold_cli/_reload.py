"""The file watcher of `dev`: turns events on the disk into reloads and logs the outcome.

Events only wake the watcher; changes are found by a scan of the disk. The reload itself is in
`treefold_http`, the restart of the process in `_restart`.
"""

import asyncio
import contextlib
import importlib
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from treefold_cli._files import Look, changed, look, may_matter, top_folders
from treefold_cli._pending import PendingReport
from treefold_cli._server import Server
from treefold_http import Application, TreefoldError
from treefold_http.reload import Reloaded, Reloader, RestartNeeded, Starting
from treefold_logging import get_logger

_log = get_logger("dev")

Outcome: TypeAlias = Reloaded | RestartNeeded | Starting | None

_QUIET = 0.015
"""Seconds without another change after which a save counts as complete."""
_PATIENCE = 0.15
"""Seconds after the last write before a file that does not compile is reloaded all the same."""
_AT_ONCE = 20
"""Most changed files that are compiled to detect incomplete saves; users save fewer at once."""
_SHORT = 0.01
"""Scans shorter than this many seconds run on the event loop, longer ones in a thread."""
_ROUND = 1.0
"""Seconds after which the disk is scanned without an event; some systems lose events."""


async def follow(app: Application, server: Server, seen: Look, report: PendingReport) -> None:
    """Keep a served application up to date with its files, until cancelled.

    Args:
        app: the application, booted.
        server: its server, restarted for changes that a reload cannot apply.
        seen: the files as they were before the boot.
        report: called with the reloaded files.
    """
    follower = Follower(app, server, report)
    async with Watch(app.root, seen) as watch:
        _log.info("watching %s", app.root)
        await follower.look_around()
        start_again(app, server, await follower.run(watch))


def start_again(app: Application | None, server: Server, reason: str) -> None:
    """Log the reason, then restart the process after the requests in progress."""
    _log.info("restarting: %s", reason)
    if app is not None:
        app.begin_shutdown()
    server.start_again()


async def wait_for_change(root: Path, server: Server, seen: Look) -> None:
    """Restart the process at the next change of a file."""
    async with Watch(root, seen) as watch:
        files = sorted(await watch.changes())
    start_again(None, server, f"{files[0]} changed")


class Watch:
    """Reports changed files once they are written completely; a context manager."""

    def __init__(self, root: Path, seen: Look) -> None:
        self._root = str(root)
        self._seen = seen
        self._touched: set[str] = set()
        self._woken = asyncio.Event()
        self._cost = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Watch":
        self._woken.set()  # scan at once for changes since `seen`
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None  # noqa: S101 - entered
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def changes(self) -> set[str]:
        """Wait for the next change; return the changed files, relative to the root."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(_ROUND, 100 * self._cost)):  # 1% at most
                    await self._woken.wait()
            self._woken.clear()
            now = await self._look()
            if changed(self._seen, now, self._touched):
                now = await self._whole(now)
                found = changed(self._seen, now, self._touched)
                self._seen, self._touched = now, set()
                if found:
                    return found
            self._touched.clear()

    async def _whole(self, now: Look) -> Look:
        """Scan until nothing changes any more and every changed file compiles, or time is up."""
        give_up = time.monotonic() + _PATIENCE
        while True:
            await asyncio.sleep(_QUIET)
            before, now = now, await self._look()
            files = changed(self._seen, now, self._touched)
            if now != before:
                give_up = time.monotonic() + _PATIENCE
            elif time.monotonic() > give_up or self._is_fit(files):
                return now

    def _is_fit(self, files: Collection[str]) -> bool:
        return all(
            _compiles(Path(self._root, name), was_empty=self._seen.get(name, (0, 0, 0))[1] == 0)
            for name in sorted(files)[:_AT_ONCE]
            if name.endswith(".py")
        )

    async def _look(self) -> Look:
        if self._cost < _SHORT:  # the switch to a thread takes longer
            now, self._cost = _timed_look(self._root)
        else:
            now, self._cost = await asyncio.to_thread(_timed_look, self._root)
        return now

    async def _listen(self) -> None:
        """Wake up on events; watch the root without subfolders, as it may hold an environment."""
        works = True
        while works:
            folders = top_folders(self._root)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._events([self._root], until_other_than=folders))
                    group.create_task(self._events([path for path, _ in folders]))
            except* _OtherFolders:
                self._woken.set()
            except* Exception as errors:  # such as the system limit of watched folders
                _log.warning("watching by looking every second: %s", errors.exceptions[0])
                works = False

    async def _events(
        self, folders: Collection[str], *, until_other_than: Collection[object] | None = None
    ) -> None:
        if not folders:
            return
        # In a thread: the import of this optional package must not delay requests.
        watchfiles: Any = await asyncio.to_thread(importlib.import_module, "watchfiles")
        events = watchfiles.awatch(
            *folders,
            watch_filter=_is_worth_a_look,
            debounce=50,
            step=5,
            recursive=until_other_than is None,
        )
        asyncio.get_running_loop().call_soon(self._woken.set)  # events count from the next line on
        async with contextlib.aclosing(events):
            async for found in events:
                below = len(self._root) + 1
                self._touched |= {path[below:].replace("\\", "/") for _, path in found}
                self._woken.set()
                if until_other_than is not None and top_folders(self._root) != until_other_than:
                    raise _OtherFolders


def _timed_look(root: str) -> tuple[Look, float]:
    started = time.thread_time()
    return look(root), time.thread_time() - started


def _is_worth_a_look(_: object, path: str) -> bool:
    return may_matter(path)


class _OtherFolders(Exception):
    """The folders at the root have changed: the list of watched folders must be rebuilt."""


def _compiles(file: Path, *, was_empty: bool) -> bool:
    try:
        source = file.read_bytes()
        compile(source, str(file), "exec", dont_inherit=True)
    except FileNotFoundError:
        return True
    except (OSError, SyntaxError, ValueError):
        return False
    return bool(source) or was_empty


async def _on_the_loop(call: Callable[[], Any]) -> Any:
    """Call in a callback outside any task: imported modules may run an event loop."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    loop.call_soon(lambda: done.set_result(call()))
    return await done


class Follower:
    """Reloads the application at each change, also while startup hooks of a reload still run.

    Args:
        app: the application, booted.
        server: its server.
        report: called with the reloaded files.
    """

    def __init__(self, app: Application, server: Server, report: PendingReport) -> None:
        self._app = app
        self._report = report
        self._server = server
        self._reloader = Reloader(app)
        self._starting: Starting | None = None
        self._hooks: asyncio.Task[None] | None = None
        self._awaiting: frozenset[str] = frozenset()
        self._older: set[asyncio.Task[Any]] = set()
        self._retiring: set[asyncio.Task[None]] = set()

    async def look_around(self) -> None:
        """Do the work in advance that would delay the first reload."""
        await asyncio.to_thread(self._reloader.look_around)

    async def run(self, watch: Watch) -> str:
        """Reload at each change until the process must restart; return the reason."""
        changes = asyncio.ensure_future(watch.changes())
        try:
            while True:
                waiting: set[asyncio.Future[Any]] = {changes, *filter(None, [self._hooks])}
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if self._hooks is not None and self._hooks.done():
                    outcome = await self._finish()
                else:
                    files = changes.result()
                    changes = asyncio.ensure_future(watch.changes())
                    outcome = await self._take_up(files)
                if isinstance(outcome, RestartNeeded):
                    return outcome.reason
        finally:
            changes.cancel()
            await self._abandon()

    async def _take_up(self, files: Collection[str]) -> Outcome:
        await self._abandon()  # the running startup hooks belong to an outdated version
        outcome = await self._heed(files, lambda: self._reloader.reload(files))
        if self._reloader.is_behind and not isinstance(outcome, RestartNeeded):
            return await self._heed((), lambda: self._reloader.reload(()))
        return outcome

    async def _finish(self) -> Outcome:
        starting, self._starting, self._hooks = self._starting, None, None
        assert starting is not None  # noqa: S101 - its hooks have run
        files: Collection[str] = ()
        if starting.failure is None:
            files, self._awaiting = self._awaiting, frozenset()
        return await self._heed(files, lambda: self._reloader.finish(starting))

    async def _abandon(self) -> None:
        starting, self._starting, self._hooks = self._starting, None, None
        if starting is not None:
            await starting.abandon()

    async def _heed(self, files: Collection[str], call: Callable[[], Outcome]) -> Outcome:
        """Run a step of the reloader, log its outcome, and start the steps that follow from it."""
        outcome = await _on_the_loop(lambda: self._guarded(files, call))
        if isinstance(outcome, Starting):
            self._starting, self._hooks = outcome, outcome.begin()
            self._awaiting |= frozenset(files)
            if outcome.names:
                _log.info("startup hooks run anew: %s", ", ".join(outcome.names))
        elif isinstance(outcome, Reloaded):
            _tell(outcome, files)
            self._retire(outcome)
        if outcome is None or isinstance(outcome, Reloaded):
            await self._report.after_reload(files)
        return outcome

    def _guarded(self, files: Collection[str], call: Callable[[], Outcome]) -> Outcome:
        try:
            with self._server.interruptible():
                return call()
        except KeyboardInterrupt:
            return None  # the server is ending
        except TreefoldError as error:
            _log.error("not reloaded: %s", error)
        except BaseException as error:
            _log.error("not reloaded: %s", ", ".join(sorted(files)), exc_info=error)
        return None

    def _retire(self, outcome: Reloaded) -> None:
        """Clean up replaced resources once the requests that use them have ended."""
        if outcome.former is None and not outcome.replaced:
            return
        busy = {*self._server.busy(), *self._app.background.busy()}
        users = busy
        if outcome.former is not None:  # tasks of an older generation use that one
            users, self._older = busy - self._older, busy
        task = asyncio.create_task(_end_former(self._app, outcome, users))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)


async def _end_former(
    app: Application, outcome: Reloaded, users: Collection[asyncio.Task[Any]]
) -> None:
    if users:
        await asyncio.wait(users)
    if outcome.former is not None and (names := await app.lifespan.end_life(outcome.former)):
        _log.info("shutdown hooks of the former code have run: %s", ", ".join(names))
    try:
        await app.providers.close(outcome.replaced)
    except Exception as error:
        _log.error("a value of the application failed to close", exc_info=error)


def _tell(outcome: Reloaded, files: Collection[str]) -> None:
    broken = {one.cause for one in outcome.broken}
    fresh = set(outcome.files) - broken
    if saved := sorted(set(files) - broken or fresh):
        text = _summary(saved, others=len(fresh.difference(files, saved)))
        _log.info("reloaded in %.0f ms: %s", outcome.seconds * 1000, text)
    for word, routes in (("new", outcome.added), ("gone", outcome.removed)):
        for route in routes:
            _log.info("%s: %s %s from Api/%s", word, route.method, route.template, route.file)
    for kept, what in ((True, "its last good version serves"), (False, "it answers 500")):
        causes = sorted({one.cause for one in outcome.broken if one.kept is kept})
        if causes:
            _log.warning("broken, %s: %s", what, ", ".join(causes))


def _summary(saved: Sequence[str], *, others: int) -> str:
    shown = ", ".join(saved[:3]) + (f" and {len(saved) - 3} more" if len(saved) > 3 else "")
    if not others:
        return shown
    return f"{shown} (with {others} that import{'s' if others == 1 else ''} it)"
