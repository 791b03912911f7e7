"""The application of one worker process of `serve --workers`."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from typing import TYPE_CHECKING

import treefold_http

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from treefold_http import Application


def create_app() -> Application:
    """Make the application, in a process that ends when the one that started it does.

    A supervisor that is killed tells nobody: its workers would serve on, and hold the port.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=[parent], daemon=True).start()
    return treefold_http.create_app()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
