"""Jobs inside an application: its names and its log, and a check at the start.

Found by the entry point `jobs` of the group `treefold.extensions`, and set up after the databases.
Every boot imports this module: the rest of the package is imported when the project uses it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Protocol, cast

from treefold_jobs._process import LogContext, choose_queue_name, here


class Application(Protocol):
    """The attribute of an application that is read here; others where it has them."""

    root: Path


class Jobs:
    """One for each application."""

    _app: Application

    def setup(self, app: Application) -> None:
        """Take over the names of the application, by which its workers find its jobs."""
        self._app = app
        # it provides parameters, unless it is of a test
        here.app = cast("Any", app) if hasattr(app, "scope") else None
        here.dev = bool(getattr(app, "dev", False))
        here.queue = choose_queue_name(getattr(app, "names", None))

    def use_log(self, log: LogContext) -> None:
        """Keep the request log, for the ids and the lines of jobs."""
        here.log = log

    async def startup(self) -> None:
        """Keep the loop, on which async jobs of development run.

        Raises:
            ConfigurationError: the project uses jobs, and its database cannot keep them.
        """
        self.setup(self._app)  # another application may have been set up meanwhile
        here.loop = asyncio.get_running_loop()
        # after the routes are imported, so that a project with jobs has imported this module
        if "treefold_jobs._enqueueing" in sys.modules:
            from treefold_jobs._enqueueing import check_jobs_can_run

            # it parses the modules of the project, and would hold up the loop for so long
            await asyncio.to_thread(check_jobs_can_run, self._app.root)
