"""`treefold create`: one handler file.

Only messages and exit codes; the files and their places are made in treefold-scaffold.
"""

from typing import Annotated

from treefold_cli._console.completion import complete_methods, complete_paths
from treefold_cli._console.errors import MISUSE, OK, translate_to_command_error
from treefold_cli._console.options import AppDir, make_argument, make_flag
from treefold_cli._console.output import print_line
from treefold_cli._console.project import require_api_folder
from treefold_router import RouterError
from treefold_scaffold import Exists, ScaffoldError, create_handler

_PATH = "[vN/]<path>, such as user/[id]; the latest version without vN."


def create(
    path: Annotated[str, make_argument("PATH", _PATH, complete_paths)],
    method: Annotated[str, make_argument("METHOD", "An HTTP method, or socket.", complete_methods)],
    override: Annotated[
        bool, make_flag("--override", "Copy the file that the version inherits.")
    ] = False,
    app_dir: AppDir = ".",
) -> int:
    """Create a handler file, unless there is one."""
    require_api_folder(app_dir)
    with (
        translate_to_command_error(ScaffoldError, code=MISUSE),
        translate_to_command_error(RouterError),
    ):
        outcome = create_handler(app_dir, path, method=method, override=override)
    if isinstance(outcome, Exists):
        by = f" (inherited by {outcome.inherited_by})" if outcome.inherited_by else ""
        print_line(f"exists: {outcome.file}{by}")
    else:
        source = f", copied from {outcome.source}" if outcome.source else ""
        print_line(f"created: {outcome.file}  {outcome.method} {outcome.url}{source}")
        for segment in outcome.separated:
            print_line(f"for /{segment} name the folder {segment}")
    return OK
