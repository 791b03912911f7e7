"""Where the project is: the one check every command makes first, and its models for some.

No handler is imported here.
"""

import contextlib
import os
import sys
from collections.abc import Generator
from pathlib import Path

from treefold_cli._console.errors import MISUSE, CommandError, translated


def check_folder(app_dir: str) -> None:
    """Refuse an `--app-dir` that is not a folder.

    Raises:
        CommandError: `app_dir` is no folder.
    """
    if not os.path.isdir(app_dir):
        raise CommandError(f"No folder {app_dir!r}; name another with --app-dir", code=MISUSE)


def find_api(app_dir: str) -> Path:
    """Find the route folder of a project.

    Args:
        app_dir: the application root as it was typed.

    Returns:
        The folder `Api/` in it.

    Raises:
        CommandError: `app_dir` is no folder, or has no `Api/`.
    """
    check_folder(app_dir)
    api = Path(app_dir, "Api")
    if not api.is_dir():
        raise CommandError(
            f"No folder 'Api' in {app_dir!r}; run this at the root of a project, name one with"
            " --app-dir or make one with 'treefold new'"
        )
    return api


@contextlib.contextmanager
def loaded_project(app_dir: str) -> Generator[None, None, None]:
    """Run a block with the extensions of a project set up and its models imported.

    Args:
        app_dir: the application root as it was typed.

    Raises:
        CommandError: `app_dir` is no folder, or an extension or a model cannot be used.
    """
    check_folder(app_dir)
    import asyncio  # commands that need no project are done without it

    from treefold_http import Application, TreefoldError
    from treefold_http.extensions import load_models, release
    from treefold_logging import flush

    app = Application(app_dir)
    try:
        # Output of models goes to standard error, not into the output of the command.
        with translated(TreefoldError), contextlib.redirect_stdout(sys.stderr):
            load_models(app)
        flush()
        yield
    finally:
        flush()
        asyncio.run(release(app))
