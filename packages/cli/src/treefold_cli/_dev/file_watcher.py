"""The file watcher of `dev`: reports changed files once they are written completely.

Events only wake the watcher; changes are found by comparing two snapshots of the disk.
"""

import asyncio
import contextlib
import importlib
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from treefold_cli._dev.snapshot import (
    Snapshot,
    find_changed_files,
    find_top_folders,
    needs_scan,
    refresh_snapshot_paths,
    take_snapshot,
)
from treefold_logging import get_logger

_log = get_logger("dev")

_SETTLE_TIME = 0.015
"""Seconds without another change after which a save counts as complete."""
_COMPILE_TIMEOUT = 0.15
"""Seconds after the last write before a file that does not compile is reloaded all the same."""
_MAX_COMPILED = 20
"""Most changed files that are compiled to detect incomplete saves; users save fewer at once."""
_MAX_SCAN_ON_LOOP = 0.01
"""Scans shorter than this many seconds run on the event loop, longer ones in a thread."""
_MAX_TOUCHED = 20
"""Most paths in events that are looked at one by one."""
_SCAN_INTERVAL = 1.0
"""Seconds after which the disk is scanned without an event; some systems lose events."""


class FileWatcher:
    """Reports changed files once they are written completely; a context manager.

    Args:
        root: the folder.
        seen: its files as they were.
        include: patterns of files besides code and settings.
    """

    def __init__(self, root: Path, seen: Snapshot, include: Sequence[str] = ()) -> None:
        self._include = include
        self._root = str(root)
        self._seen = seen
        self._touched: set[str] = set()
        self._woken = asyncio.Event()
        self._scan_time = 0.0
        self._next_scan = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "FileWatcher":
        self._woken.set()  # scan at once for changes since `seen`
        self._task = asyncio.create_task(self._wake_on_events())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None  # noqa: S101 - entered
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def wait_for_changes(self) -> set[str]:
        """Wait for the next change; return the changed files, relative to the root."""
        while True:
            with contextlib.suppress(TimeoutError):
                # Scans take 1% of the time at most.
                async with asyncio.timeout_at(self._next_scan):
                    await self._woken.wait()
            self._woken.clear()
            now = await self._take_snapshot()
            if find_changed_files(self._seen, now, self._touched):
                now = await self._wait_until_settled(now)
                found = find_changed_files(self._seen, now, self._touched)
                self._seen, self._touched = now, set()
                if found:
                    return found
            self._touched.clear()

    async def _wait_until_settled(self, now: Snapshot) -> Snapshot:
        """Scan until nothing changes any more and every changed file compiles, or time is up."""
        give_up = time.monotonic() + _COMPILE_TIMEOUT
        while True:
            await asyncio.sleep(_SETTLE_TIME)
            before, now = now, await self._take_snapshot()
            files = find_changed_files(self._seen, now, self._touched)
            if now != before:
                give_up = time.monotonic() + _COMPILE_TIMEOUT
            elif time.monotonic() > give_up or self._are_fully_written(files):
                return now

    def _are_fully_written(self, files: Collection[str]) -> bool:
        return all(
            _has_valid_syntax(
                Path(self._root, name), was_empty=self._seen.get(name, (0, 0, 0))[1] == 0
            )
            for name in sorted(files)[:_MAX_COMPILED]
            if name.endswith(".py")
        )

    async def _take_snapshot(self) -> Snapshot:
        """Return a snapshot: of the paths in events where these suffice, as the whole may be large.

        Many events at once may be the first of more; the scan finds all.
        """
        is_due = asyncio.get_running_loop().time() >= self._next_scan
        if is_due or not 0 < len(self._touched) <= _MAX_TOUCHED:
            return await self._scan_root()
        found = refresh_snapshot_paths(self._root, self._seen, self._touched, self._include)
        return found if found is not None else await self._scan_root()

    async def _scan_root(self) -> Snapshot:
        if self._scan_time < _MAX_SCAN_ON_LOOP:  # the switch to a thread takes longer
            now, self._scan_time = _take_timed_snapshot(self._root, self._include)
        else:
            now, self._scan_time = await asyncio.to_thread(
                _take_timed_snapshot, self._root, self._include
            )
        pause = max(_SCAN_INTERVAL, 100 * self._scan_time)
        self._next_scan = asyncio.get_running_loop().time() + pause
        return now

    async def _wake_on_events(self) -> None:
        """Wake up on events; watch the root without subfolders, as it may hold an environment."""
        works = True
        while works:
            try:
                folders = find_top_folders(self._root)
                async with asyncio.TaskGroup() as group:
                    group.create_task(
                        self._record_file_events([self._root], known_top_folders=folders)
                    )
                    group.create_task(self._record_file_events([path for path, _ in folders]))
            except* _OtherFolders:
                self._woken.set()
            except* FileNotFoundError:  # a folder has gone between the listing and the watch
                self._woken.set()
                await asyncio.sleep(_SETTLE_TIME)
            except* Exception as errors:  # such as the system limit of watched folders
                _log.warning(
                    "no events of the file system, the disk is scanned every second: %s",
                    errors.exceptions[0],
                )
                works = False

    def _filter_event(self, _: object, path: str) -> bool:
        return needs_scan(path, self._include)

    async def _record_file_events(
        self, folders: Collection[str], *, known_top_folders: Collection[object] | None = None
    ) -> None:
        if not folders:
            return
        # In a thread: the import of this optional package must not delay requests.
        watchfiles: Any = await asyncio.to_thread(importlib.import_module, "watchfiles")
        events = watchfiles.awatch(
            *folders,
            watch_filter=self._filter_event,
            debounce=50,
            step=5,
            recursive=known_top_folders is None,
        )
        asyncio.get_running_loop().call_soon(self._woken.set)  # events count from the next line on
        async with contextlib.aclosing(events):
            async for found in events:
                below = len(self._root) + 1
                self._touched |= {path[below:].replace("\\", "/") for _, path in found}
                self._woken.set()
                if (
                    known_top_folders is not None
                    and find_top_folders(self._root) != known_top_folders
                ):
                    raise _OtherFolders


def _take_timed_snapshot(root: str, include: Sequence[str]) -> tuple[Snapshot, float]:
    started = time.thread_time()
    return take_snapshot(root, include), time.thread_time() - started


class _OtherFolders(Exception):
    """The folders at the root have changed: the list of watched folders must be rebuilt."""


def _has_valid_syntax(file: Path, *, was_empty: bool) -> bool:
    if not file.is_file():  # gone, or a FIFO or device, which is not read
        return True
    try:
        source = file.read_bytes()
        compile(source, str(file), "exec", dont_inherit=True)
    except FileNotFoundError:
        return True
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return bool(source) or was_empty
