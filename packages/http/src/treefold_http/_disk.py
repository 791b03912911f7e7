"""Threads for the disk, apart from those of sync handlers (R-25): one small set for the process.

Handlers that block all their threads must not stop downloads, static files or uploads, and a slow
disk must not stop handlers. All code that opens, reads, writes or looks up a file runs here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from treefold_http._threads import WorkerThreads

P = ParamSpec("P")
R = TypeVar("R")

LIMIT = 16
"""More calls at a time do not make a disk faster."""

_threads: WorkerThreads


def _fresh() -> None:
    global _threads  # one set for the process, a new one after a fork: threads do not survive it
    _threads = WorkerThreads(limit=LIMIT)


_fresh()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh)


async def run_on_disk(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function that waits for the disk; return its result or raise its exception.

    A cancelled caller stops waiting; the function itself runs to its end.
    """
    return await _threads.run(function, *args, **kwargs)


def release_disk_threads() -> None:
    """End the threads after the queued work; later work starts new ones."""
    _threads.shutdown()
