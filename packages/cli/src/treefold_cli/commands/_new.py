"""`treefold new`: a project from nothing.

Only messages and exit codes; the files are made in treefold-scaffold.
"""

import os
import shlex
from pathlib import Path
from typing import Annotated

from treefold_cli._console.errors import MISUSE, OK, translate_to_command_error
from treefold_cli._console.options import make_argument, make_flag, make_option
from treefold_cli._console.output import print_line
from treefold_cli._console.project import require_app_dir
from treefold_scaffold import ScaffoldError, create_project, fill_folder


def new(
    name: Annotated[
        str, make_argument("NAME", "The name of the new folder; '.' for one that is there.")
    ],
    starter: Annotated[
        bool, make_flag("--starter", "Add .gitignore, treefold.toml, AGENTS.md, a first test.")
    ] = False,
    models: Annotated[bool, make_flag("--models", "Add a first model, and treefold.toml.")] = False,
    app_dir: Annotated[str, make_option("--app-dir", "DIR", "Where to make the folder.")] = ".",
) -> int:
    """Create a project in a new folder."""
    require_app_dir(app_dir)
    kept: tuple[str, ...] = ()
    with translate_to_command_error(ScaffoldError, code=MISUSE):
        if os.path.normpath(name or "..") == os.curdir:
            project = Path(app_dir)
            kept = fill_folder(project, starter=starter, models=models)
        else:
            project = create_project(name, app_dir, starter=starter, models=models)
    print_line(f"created: {project}")
    for file in kept:
        print_line(f"kept: {file}, which was there")
    steps = ["treefold makemigrations", "treefold dev --migrate"] if models else ["treefold dev"]
    if project != Path(os.curdir):
        steps.insert(0, f"cd {shlex.quote(str(project))}")
    print_line(f"next: {' && '.join(steps)}")
    return OK
