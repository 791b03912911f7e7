"""The start of an ASGI application, which a stop signal or a save cancels.

The application sees its lifespan cancelled, and undoes what it had completed. A startup that waits
is cancelled as any task is. One that blocks the event loop is interrupted first.

| Startup | What a cancellation does |
|---|---|
| `await queue.get()` | cancels the task of the lifespan, at once |
| `time.sleep(60)` in a coroutine | raises `StartupInterrupted` in that line, after 0.25 s |
| C code that does not return | nothing: Python's handlers run between its lines; SIGKILL ends it |
"""

import _thread
import asyncio
import logging
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import uvicorn
from uvicorn.lifespan.on import LifespanOn

from treefold_logging import flush

_PATIENCE = 0.25
"""Seconds after which the event loop counts as blocked."""


class StartupInterrupted(asyncio.CancelledError, KeyboardInterrupt):
    """Ends a startup that blocks the event loop: a cancelled task, and Ctrl-C for what it imports.

    A boot that goes on without a file that fails does not go on after this.
    """


class CancellableLifespan(LifespanOn):
    """The lifespan of an application, whose startup can be cancelled from a signal handler."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._task: asyncio.Task[None] | None = None
        self._has_started = threading.Event()
        self._is_heard = threading.Event()
        self._is_cancelled = False
        self._interrupts = False

    async def startup(self) -> None:
        """Start the application; return when it has started, has failed or is cancelled."""
        try:
            await super().startup()
        finally:
            self._has_started.set()
            if self._is_cancelled:
                # the loop waits for the threads of its executor when it is closed
                self._loop.set_default_executor(ThreadPoolExecutor(1))

    async def main(self) -> None:
        """Run the lifespan of the application."""
        self._task = asyncio.current_task()
        if self._is_heard.is_set():
            self._cancel_task()
        await super().main()

    def cancel_startup(self) -> bool:
        """Cancel a startup in progress, from any thread; return False if there is none."""
        if self._has_started.is_set():
            return False
        if not self._is_cancelled:
            self._is_cancelled = True
            self._loop.call_soon_threadsafe(self._cancel_task)
            threading.Thread(target=self._interrupt_blocked_loop, daemon=True).start()
        return True

    def _cancel_task(self) -> None:
        self._is_heard.set()
        if self._task is not None and not self._has_started.is_set():
            self.startup_failed = True
            self.logger = logging.Logger("uvicorn.cancelled", logging.CRITICAL)  # it was asked for
            self._task.cancel()

    def _interrupt_blocked_loop(self) -> None:
        while not self._is_heard.wait(_PATIENCE):
            self._interrupts = True
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(self._thread, signal.SIGINT)  # ends a call that waits, too
            else:
                _thread.interrupt_main()

    def raise_in_blocked_loop(self) -> bool:
        """Return True in the handler of a signal that is not from outside.

        Raises:
            StartupInterrupted: in the code that blocks the loop.
        """
        if not self._interrupts:
            return False
        self._interrupts = False
        if not self._is_heard.is_set() and asyncio.current_task(self._loop) is not None:
            raise StartupInterrupted
        return True


def exit_beside_stuck_threads() -> None:
    """End the process with code 0 if a thread of a cancelled startup would keep it alive.

    The call of an `asyncio.to_thread` goes on after its task is cancelled.
    """
    if any(not one.daemon for one in threading.enumerate() if one is not threading.main_thread()):
        flush()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)
