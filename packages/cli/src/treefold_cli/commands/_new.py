"""`treefold new`: a project from nothing.

Only messages and exit codes; the files are made in treefold-scaffold.
"""

import shlex
from typing import Annotated

import typer

from treefold_cli._console.errors import MISUSE, OK, translated
from treefold_cli._console.output import write
from treefold_cli._console.project import check_folder
from treefold_scaffold import ScaffoldError, create_project


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new folder.")],
    app_dir: Annotated[
        str, typer.Option("--app-dir", metavar="DIR", help="Where to make the folder.")
    ] = ".",
) -> int:
    """Create a project in a new folder."""
    check_folder(app_dir)
    with translated(ScaffoldError, code=MISUSE):
        project = create_project(name, app_dir)
    write(f"created: {project}")
    write(f"next: cd {shlex.quote(str(project))} && treefold dev")
    return OK
