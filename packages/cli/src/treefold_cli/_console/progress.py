"""The name of an activity that takes long.

Shows the current activity after one second, on a terminal only, and removes it at the end.
"""

import contextlib
import sys
import threading
from collections.abc import Generator

STEP_SECONDS = 1.0
"""Seconds until the activity is shown, and between two updates."""


@contextlib.contextmanager
def show_progress(activity: str) -> Generator[None, None, None]:
    """Show the activity and the seconds on standard error during the block, after one second.

    Args:
        activity: its name, such as `Comparing`.
    """
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_show_seconds, args=(activity, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _show_seconds(activity: str, done: threading.Event) -> None:
    seconds = 0
    while not done.wait(STEP_SECONDS):
        seconds += 1
        # The cursor returns to the start: output of the block overwrites the line.
        print(f"{activity} ... {seconds} s\r", end="", file=sys.stderr, flush=True)
    if seconds:
        print("\x1b[K", end="", file=sys.stderr, flush=True)
