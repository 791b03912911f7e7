"""A word while something takes long.

Says what is going on once a second has passed, on a terminal only, and takes it away again. What
is measured or done is not known here.
"""

import contextlib
import sys
import threading
from collections.abc import Generator

_PATIENCE = 1.0
"""Seconds until the word is said, and between two of its steps."""


@contextlib.contextmanager
def working(what: str) -> Generator[None, None, None]:
    """Show `what` and the seconds on standard error while the block runs, after the first second.

    Args:
        what: what is being done, such as `Comparing`.
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
        # The cursor goes back at once: what the block itself prints takes the place of the word.
        print(f"{what} ... {seconds} s\r", end="", file=sys.stderr, flush=True)
    if seconds:
        print("\x1b[K", end="", file=sys.stderr, flush=True)
