"""Where the project is: the one check every command makes first.

Looks at two folders and nothing in them.
"""

import os
from pathlib import Path

from treefold_cli._errors import MISUSE, CommandError


def check_folder(app_dir: str) -> None:
    """Refuse an `--app-dir` that is no folder.

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
