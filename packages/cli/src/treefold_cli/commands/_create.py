"""`treefold create`: one handler file.

Only messages and exit codes; the files and their places are made in treefold-scaffold.
"""

from typing import Annotated

import typer

from treefold_cli._console.completion import complete_methods, complete_paths
from treefold_cli._console.errors import MISUSE, OK, translate_to_command_error
from treefold_cli._console.options import AppDir
from treefold_cli._console.output import print_line
from treefold_cli._console.project import require_api_folder
from treefold_scaffold import Exists, ScaffoldError, create_handler


def create(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="[vN/]<path>, such as user/[id]; the latest version without vN.",
            autocompletion=complete_paths,
        ),
    ],
    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD",
            help="An HTTP method, or socket.",
            show_default=False,
            autocompletion=complete_methods,
        ),
    ],
    app_dir: AppDir = ".",
) -> int:
    """Create a handler file, unless there is one."""
    require_api_folder(app_dir)
    with translate_to_command_error(ScaffoldError, code=MISUSE):
        outcome = create_handler(app_dir, path, method=method)
    if isinstance(outcome, Exists):
        print_line(f"exists: {outcome.file}")
    else:
        print_line(f"created: {outcome.file}  {outcome.method} {outcome.url}")
        for segment in outcome.separated:
            print_line(f"for /{segment} name the folder {segment}")
    return OK
