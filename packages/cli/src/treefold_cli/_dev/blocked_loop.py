"""Name the line that blocks the event loop of `dev`, which then serves no other request.

A thread asks the loop for a sign of life. Without one for half a second, it looks where the thread
of the loop is, and logs the innermost line of the project, each line once:

    # Api/v1/Report/Get.py
    async def handler(request):
        time.sleep(2)  # Api/v1/Report/Get.py, line 3, blocks the event loop for over 500 ms
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import FrameType

from treefold_logging import get_logger

_log = get_logger("dev")

_PAUSE = 0.05
"""Seconds between two signs of life."""
_PATIENCE = 0.45
"""Seconds after which one is late: with the pause before it, half a second."""


@contextlib.contextmanager
def warn_of_blocking_lines(root: Path) -> Generator[None]:
    """Warn of lines of a project that block the running event loop in the block."""
    watch = _LoopWatch(root)
    watch.start()
    try:
        yield
    finally:
        watch.ended.set()


class _LoopWatch(threading.Thread):
    """Watches the loop that runs in the thread that makes it.

    Attributes:
        ended: set when the loop is not watched any more.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(name="treefold-loop-watch", daemon=True)
        self.ended = threading.Event()
        self._prefix = os.path.join(os.path.realpath(root), "")  # as modules are imported
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._reported: set[tuple[str, int]] = set()

    def run(self) -> None:
        while not self.ended.wait(_PAUSE):
            alive = threading.Event()
            try:
                self._loop.call_soon_threadsafe(alive.set)
            except RuntimeError:  # the loop is closed
                return
            if not alive.wait(_PATIENCE):
                self._report_blocking_line()
                while not alive.wait(_PAUSE) and not self.ended.is_set():
                    pass

    def _report_blocking_line(self) -> None:
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] - the only way
        line = self._find_project_line(frames.get(self._loop_thread))
        if line is not None and line not in self._reported:
            self._reported.add(line)
            _log.warning(
                "%s, line %d, blocks the event loop for over 500 ms, and all other requests with"
                " it; await the call, or make it in a plain `def`, which runs in a thread",
                *line,
            )

    def _find_project_line(self, frame: FrameType | None) -> tuple[str, int] | None:
        while frame is not None:
            path = frame.f_code.co_filename
            # an environment may lie in the root
            if path.startswith(self._prefix) and "site-packages" not in path:
                return path.removeprefix(self._prefix).replace(os.sep, "/"), frame.f_lineno
            frame = frame.f_back
        return None
