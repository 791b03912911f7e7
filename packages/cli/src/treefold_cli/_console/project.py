"""Where the project is: the one check every command makes first, and its models for some.

No handler is imported here.
"""

import contextlib
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from treefold_cli._console.errors import MISUSE, CommandError, translate_to_command_error

if TYPE_CHECKING:
    from treefold_http import Application
    from treefold_http.extensions import Role

_typed_in = ""


def enter_project(app_dir: str) -> str:
    """Enter the root of the project that a command is typed in, if it is typed below that root.

    A project that is named with `--app-dir` is not entered: relative paths in its settings lead
    from the working folder.

    Args:
        app_dir: the application root as it was typed, '.' for none.

    Returns:
        The application root, from the working folder as it is now.
    """
    global _typed_in
    _typed_in = os.getcwd()
    if app_dir == os.curdir:
        os.chdir(find_project_root(Path(_typed_in)))
    return app_dir


def find_project_root(start: Path) -> Path:
    """Return the root of the project that a folder is in; the folder itself if it is in none.

    A root of another owner is passed over, as its code would run with the rights of this user.
    """
    owners = {os.stat(start).st_uid}
    if hasattr(os, "getuid"):
        owners.add(os.getuid())
    around = [
        folder
        for folder in start.parents
        if (folder / "Api").is_dir()
        and {folder.stat().st_uid, (folder / "Api").stat().st_uid} <= owners
    ]
    if (start / "Api").is_dir():
        around.insert(0, start)
    # `Api/v1/Api/` is a route of the outer project.
    roots = (one for one in around if not any(one.is_relative_to(each / "Api") for each in around))
    return next(roots, start)


def rebase_typed_path(path: str) -> str:
    """Return a path that was typed, as it leads from the working folder of now."""
    has_moved = bool(_typed_in) and _typed_in != os.getcwd()
    return os.path.relpath(os.path.join(_typed_in, path)) if has_moved else path


def require_app_dir(app_dir: str) -> None:
    """Refuse an `--app-dir` that is not a folder.

    Raises:
        CommandError: `app_dir` is no folder.
    """
    if not os.path.isdir(app_dir):
        raise CommandError(f"No folder {app_dir!r}; name another with --app-dir", code=MISUSE)


def require_api_folder(app_dir: str) -> Path:
    """Find the route folder of a project.

    Args:
        app_dir: the application root as it was typed.

    Returns:
        The folder `Api/` in it.

    Raises:
        CommandError: `app_dir` is no folder, or has no `Api/`.
    """
    require_app_dir(app_dir)
    api = Path(app_dir, "Api")
    if not api.is_dir():
        raise CommandError(
            f"No folder 'Api' in {app_dir!r}; run this at the root of a project, name one with"
            " --app-dir or make one with 'treefold new'"
        )
    return api


@contextlib.contextmanager
def load_project(
    app_dir: str, *, dev: bool = False, role: "Role" = "command"
) -> Generator["Application", None, None]:
    """Run a block with the extensions of a project set up and its models imported.

    Args:
        app_dir: the application root as it was typed.
        dev: load it as `treefold dev` does.
        role: of the application, which the block is given.

    Raises:
        CommandError: `app_dir` is no folder, or an extension or a model cannot be used.
    """
    require_app_dir(app_dir)
    import asyncio  # commands that need no project are done without it

    from treefold_http import Application, TreefoldError
    from treefold_http.extensions import load_models, release
    from treefold_logging import flush

    app = Application(app_dir, dev=dev)
    app.role = role
    try:
        # Output of models goes to standard error, not into the output of the command.
        with translate_to_command_error(TreefoldError), contextlib.redirect_stdout(sys.stderr):
            load_models(app)
        flush()
        yield app
    finally:
        flush()
        asyncio.run(release(app))
