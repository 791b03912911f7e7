"""`treefold typecheck`: mypy or pyright over a tree whose handlers share file names.

Chooses the checker and its arguments; how the tree becomes one that a checker takes is in
`_checks.typed_copy`.
"""

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from treefold_cli._console.errors import CommandError, translate_to_command_error
from treefold_cli._console.options import AppDir, make_argument, make_choice, parse_choice_option
from treefold_cli._console.output import format_count, print_error
from treefold_cli._console.progress import show_progress
from treefold_cli._console.project import require_api_folder
from treefold_cli._console.tools import require_tool, run_module
from treefold_router import RouterError, RouteTable

CHECKERS = ("mypy", "pyright")


def typecheck(
    arguments: Annotated[
        list[str] | None, make_argument("[OPTION]...", "Options of the checker.")
    ] = None,
    checker: Annotated[
        str, make_choice("--with", CHECKERS, "The checker; else the installed one.")
    ] = "",
    app_dir: AppDir = ".",
) -> int:
    """Run mypy or pyright on the project.

    Handlers may share file names and lie in bracket folders; messages name the real files. The
    settings of the checker are those of the project; options it knows are passed on. The exit code
    is that of the checker.
    """
    api = require_api_folder(app_dir)
    with translate_to_command_error(RouterError):
        layers = RouteTable.scan(api).layers
    chosen = _choose_checker(checker)
    from treefold_cli._checks.typed_copy import TypedCopy

    with tempfile.TemporaryDirectory(prefix="treefold-typecheck-") as place:
        copy = TypedCopy(Path(app_dir).absolute(), Path(place, "project"))
        copy.place.mkdir()
        copy.copy_sources()
        copy.copy_inherited_sources(layers)
        print_error(f"{format_count(len(copy.files), 'file')} with {chosen}")
        with show_progress(chosen):
            targets = ["."] if chosen == "mypy" else []
            given = [*_checker_arguments(chosen), *(arguments or []), *targets]
            variables = _checker_environment(copy.root)
            code, output = run_module(
                chosen, given, cwd=copy.place, environment=variables, capture=True
            )
    # As it is: a checker prints sources with tabs and colours on purpose.
    sys.stdout.write(copy.restore_names(output))
    return code


def _choose_checker(wanted: str) -> str:
    if wanted:
        name = parse_choice_option(wanted, "--with", choices=CHECKERS)
        require_tool(name, install=name)
        return name
    for name in CHECKERS:
        if importlib.util.find_spec(name) is not None:
            return name
    raise CommandError("No type checker is installed; pip install mypy, or pyright")


def _checker_arguments(checker: str) -> Sequence[str]:
    if checker == "mypy":
        bases = ["--explicit-package-bases", "--namespace-packages"]
        # The lists that a new project begins with are empty and bare: `middlewares = []`.
        lists = ["--disable-error-code", "var-annotated"]
        return [*bases, *lists, "--python-executable", sys.executable]
    return ["--pythonpath", sys.executable]


def _checker_environment(root: Path) -> dict[str, str]:
    """Return the environment of mypy, with a cache outside of the project for each project."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    cache = os.path.join(home, "treefold", "typecheck", name)
    return {"MYPY_CACHE_DIR": cache} | os.environ
