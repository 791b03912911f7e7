"""The application of one worker process of `serve --workers`."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from treefold_cli._checks.broken_files import describe_refused_start, hide_findings_from_log
from treefold_cli._checks.deployment import start_deployment_check
from treefold_cli._checks.public_address import PUBLIC_VARIABLE
from treefold_http import Application, BootError
from treefold_logging import get_logger

PROCESSES_VARIABLE = "TREEFOLD_WORKER_PROCESSES"
"""Tells a worker how many there are."""


def create_worker_app() -> Application:
    """Create the application of a worker process, which does not start with broken files."""
    app = create_app_allowing_broken()
    app.allows_broken = False
    return app


def create_app_allowing_broken() -> WorkerApplication:
    """Do the same for an application that starts although files fail to load."""
    # Processes are numbered from 1, replacements too, so that only one process logs the warning.
    number = int(multiprocessing.current_process().name.rpartition("-")[2] or 1)
    return WorkerApplication(os.environ["TREEFOLD_APP_DIR"], number=number)


class WorkerApplication(Application):
    """Application of one worker process.

    Args:
        app_dir: the folder that holds `Api/`.
        number: counts the workers, replacements too, from 1. The first logs for all workers that
            start with it broken files and the state that they do not share.

    Attributes:
        allows_broken: start although files fail to load.
    """

    def __init__(self, app_dir: str, *, number: int) -> None:
        super().__init__(app_dir)
        self.has_own_server = True
        self.allows_broken = True
        self._logs = number == 1
        self._repeats = 1 < number <= int(os.environ.get(PROCESSES_VARIABLE, "1"))

    def boot(self) -> None:
        with hide_findings_from_log() if self._repeats else nullcontext():
            super().boot()
        if self.report.broken and not self.allows_broken:
            raise BootError(describe_refused_start(len(self.report.broken)), self.report)
        if self._logs:
            self._logs = False
            if PUBLIC_VARIABLE in os.environ:
                start_deployment_check(self)
            if own := list(dict.fromkeys(_describe_in_memory_state(self))):
                get_logger().warning("each process has its own %s", ", ".join(own))


def _describe_in_memory_state(app: Application) -> Iterator[str]:
    """Yield the state that each process keeps for itself, with a way to share it."""
    for entry in _collect_middleware(app):
        kind = type(entry).__name__
        if getattr(entry, "is_in_memory", False) and kind in _REMEDIES:
            yield _REMEDIES[kind]
    if "treefold_http.cache" in sys.modules:  # otherwise no cache is in use
        for alias in sys.modules["treefold_http.cache"].list_memory_aliases():
            yield f"cache {alias!r} (a Redis URL in the setting caches shares it)"


_REMEDIES = {
    "Sessions": "sessions (Sessions(store='redis') or 'database' shares them)",
    "RateLimit": "limits (RateLimit(redis=True) shares them)",
}


def _collect_middleware(app: Application) -> Iterator[Any]:
    """Yield all middleware of a project: of `Middleware/`, and of its handler modules."""
    listed = list(app.project.middlewares)
    for module in app.project.modules.values():
        listed += getattr(module, "middlewares", ())
    for entry in listed:
        yield getattr(entry, "entry", entry)
