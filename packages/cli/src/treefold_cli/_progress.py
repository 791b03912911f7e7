"""A word while something takes long.

Shows the current activity after one second, on a terminal only, and removes it at the end.
"""

import contextlib
import sys
import threading
from collections.abc import Generator

_PATIENCE = 1.0
"""Seconds until the word is said, and between two of its steps."""


@contextlib.contextmanager
def working(what: str) -> Generator[None, None, None]:
    """Show `what` and the seconds on standard error from the first second on, during the block.

    Args:
        what: name of the activity, such as `Comparing`.
    """
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_tell, args=(what, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _tell(what: str, done: threading.Event) -> None:
    seconds = 0
    while not done.wait(_PATIENCE):
        seconds += 1
        # The cursor returns to the start: output of the block overwrites the line.
        print(f"{what} ... {seconds} s\r", end="", file=sys.stderr, flush=True)
    if seconds:
        print("\x1b[K", end="", file=sys.stderr, flush=True)
