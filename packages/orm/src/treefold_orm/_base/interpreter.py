"""The private names of the interpreter that this package uses: of asyncio, importlib and sys.

Checked on CPython 3.11 to 3.15; `tests/test_private_names.py` fails where one of them is gone.
Nothing here imports asyncio, which takes long and which many programs never need.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any


def _bind_and_find_running_loop() -> Any:
    global running_loop  # noqa: PLW0603, RUF100 - from here on asyncio itself is asked
    if "asyncio.runners" not in sys.modules:
        return None  # there is no loop before asyncio is whole
    running_loop = sys.modules["asyncio.events"]._get_running_loop
    return running_loop()


running_loop: Callable[[], Any] = _bind_and_find_running_loop
"""Return the event loop that this thread runs, or None; call it as `interpreter.running_loop()`."""


@contextmanager
def leave_running_loop() -> Generator[None]:
    """Make room in the block for another loop, inside of the one that this thread runs.

    Its task is left as well: since Python 3.14 a thread has one current task, whatever its loops,
    and no other begins beside it.
    """
    events, tasks = sys.modules["asyncio.events"], sys.modules["asyncio.tasks"]
    loop, set_loop = events._get_running_loop(), events._set_running_loop
    task = tasks.current_task(loop)
    if task is not None:
        tasks._leave_task(loop, task)
    set_loop(None)
    try:
        yield
    finally:
        set_loop(loop)
        if task is not None:
            tasks._enter_task(loop, task)


def is_being_imported(module: str) -> bool:
    """Return True while the body of a module runs."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return spec is not None and spec._initializing


def find_external_caller_location() -> str:
    """Return `file:line` of the nearest frame outside of this package and the standard library's
    loop.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("treefold_orm", "asyncio", "contextlib")):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
