"""The watcher of `dev`: from events on the disk to a reload, and what is said about it.

Events only wake it up; what changed is seen by looking. What a change does to the application is
`treefold_http`'s business, and how a process starts again `_restart`'s.
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
"""Seconds without another change before a save counts as whole."""
_PATIENCE = 0.15
"""Seconds after the last write that a file which cannot be right is given to become whole."""
_AT_ONCE = 20
"""How many changed files are looked at for that: nobody writes more by hand."""
_SHORT = 0.01
"""Seconds that the loop may look at the disk itself."""
_ROUND = 1.0
"""Seconds after which the disk is looked at without an event; some systems lose them."""


async def follow(app: Application, server: Server, seen: Look, report: PendingReport) -> None:
    """Keep a served application as its files are, until cancelled.

    Args:
        app: the application, booted.
        server: what serves it; it is told to start again where only that helps.
        seen: the files as they were before the boot.
        report: is told which files were taken up.
    """
    follower = Follower(app, server, report)
    async with Watch(app.root, seen) as watch:
        _log.info("watching %s", app.root)
        await follower.look_around()
        start_again(app, server, await follower.run(watch))


def start_again(app: Application | None, server: Server, reason: str) -> None:
    """Say why, and have the process started again once what runs has ended."""
    _log.info("restarting: %s", reason)
    if app is not None:
        app.begin_shutdown()
    server.start_again()


async def wait_for_change(root: Path, server: Server, seen: Look) -> None:
    """Have the process started again with the next change."""
    async with Watch(root, seen) as watch:
        files = sorted(await watch.changes())
    start_again(None, server, f"{files[0]} changed")


class Watch:
    """Says which files have changed, once they are written; a context manager."""

    def __init__(self, root: Path, seen: Look) -> None:
        self._root = str(root)
        self._seen = seen
        self._touched: set[str] = set()
        self._woken = asyncio.Event()
        self._cost = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Watch":
        self._woken.set()  # what changed since `seen`
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None  # noqa: S101 - entered
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def changes(self) -> set[str]:
        """Wait for the next change; give the files below the root."""
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
        """Look until nothing changes any more and every changed file can be right."""
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
        if self._cost < _SHORT:  # a thread would wait for its turn longer than that
            now, self._cost = _timed_look(self._root)
        else:
            now, self._cost = await asyncio.to_thread(_timed_look, self._root)
        return now

    async def _listen(self) -> None:
        """Wake up on events; the root itself apart, so that an environment in it is not watched."""
        works = True
        while works:
            folders = top_folders(self._root)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._events([self._root], until_other_than=folders))
                    group.create_task(self._events([path for path, _ in folders]))
            except* _OtherFolders:
                self._woken.set()
            except* Exception as errors:  # such as more folders than the system watches
                _log.warning("watching by looking every second: %s", errors.exceptions[0])
                works = False

    async def _events(
        self, folders: Collection[str], *, until_other_than: Collection[object] | None = None
    ) -> None:
        if not folders:
            return
        # In a thread: it is an extra, and requests are not to wait until it is imported.
        watchfiles: Any = await asyncio.to_thread(importlib.import_module, "watchfiles")
        events = watchfiles.awatch(
            *folders,
            watch_filter=_is_worth_a_look,
            debounce=50,
            step=5,
            recursive=until_other_than is None,
        )
        asyncio.get_running_loop().call_soon(self._woken.set)  # it watches from the next line on
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
    """The folders at the root are others: they are to be watched anew."""


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
    """Call in a callback of its own, where no task is running: what it imports may run a loop."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    loop.call_soon(lambda: done.set_result(call()))
    return await done


class Follower:
    """Takes up changes as they come, startup hooks that run meanwhile included.

    Args:
        app: the application, booted.
        server: what serves it.
        report: is told which files were taken up.
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
        """Do what the first change would have to wait for."""
        await asyncio.to_thread(self._reloader.look_around)

    async def run(self, watch: Watch) -> str:
        """Take up changes until the process is to start again; give the reason."""
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
        await self._abandon()  # what they start on is not the newest any more
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
        """Make a call to the reloader; say what came of it and see to what follows."""
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
        """See that what only older requests have is cleaned up when these have ended."""
        if outcome.former is None and not outcome.replaced:
            return
        busy = {*self._server.busy(), *self._app.background.busy()}
        users = busy
        if outcome.former is not None:  # what began before it has a life of its own
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
