"""The private names of the interpreter that this package uses: of asyncio, sys and its C API.

Checked on CPython 3.11 to 3.15; `tests/_wire/test_interpreter.py` fails where one of them is gone.
"""

import asyncio
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


def find_caller_frame(levels_up: int) -> FrameType:
    """Return the frame that is `levels_up` calls above the function that asks.

    `inspect.stack` would read the source files of all frames.
    """
    return sys._getframe(levels_up + 1)  # pyright: ignore[reportPrivateUsage]


def format_caller_location(levels_up: int) -> str:
    """Return `file:line` of the frame that is `levels_up` calls above the function that asks."""
    frame = find_caller_frame(levels_up + 1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def find_thread_frame(thread_id: int) -> FrameType | None:
    """Return the frame in which a thread is now; None if it has ended."""
    return sys._current_frames().get(thread_id)  # pyright: ignore[reportPrivateUsage]


def raise_in_thread(thread_id: int, exception_class: type[BaseException]) -> None:
    """Raise an exception in another thread, at its next instruction of Python."""
    import ctypes  # not needed where nothing is reloaded

    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_exception(ctypes.c_ulong(thread_id), ctypes.py_object(exception_class))


@contextmanager
def hide_running_loop() -> Generator[None]:
    """Hide the running event loop: at boot there is none, and imported modules may rely on that.

    Its task is hidden as well: since Python 3.14 no other begins beside it, on any loop.
    """
    loop, set_loop = asyncio._get_running_loop(), asyncio._set_running_loop
    task = None if loop is None else asyncio.current_task(loop)
    if loop is not None and task is not None:
        asyncio.tasks._leave_task(loop, task)
    set_loop(None)
    try:
        yield
    finally:
        set_loop(loop)
        if loop is not None and task is not None:
            asyncio.tasks._enter_task(loop, task)
