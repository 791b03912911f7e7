"""`treefold shell`: a Python prompt with the project loaded.

Boots the application and lists the available names; the prompt with `await` is in
`_console.python_prompt`. Nothing is served: startup hooks do not run.
"""

import dataclasses
import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from treefold_cli._console.errors import FAILURE, OK, translate_to_command_error
from treefold_cli._console.options import AppDir, make_option
from treefold_cli._console.output import format_count
from treefold_cli._console.progress import show_progress
from treefold_cli._console.project import require_api_folder

if TYPE_CHECKING:
    from treefold_http import Application


def shell(
    command: Annotated[str, make_option("-c", "CODE", "Run this code and leave.")] = "",
    app_dir: AppDir = ".",
) -> int:
    """Open a Python prompt with the project loaded.

    The names in Redis are those of production, unless the setting environment says otherwise.
    The name app is the application, and every class of Models/ has its own name; await works.
    Code from a pipe, or after -c, runs as one program: exit code 1 when it raises.
    """
    require_api_folder(app_dir)
    from treefold_cli._console.python_prompt import run_prompt, run_python_program
    from treefold_http import TreefoldError
    from treefold_logging import flush

    try:
        with translate_to_command_error(TreefoldError), show_progress("Loading"):
            app = _create_shell_application(app_dir)
            app.boot()
    finally:
        flush()  # print the log of the boot first
    models = _collect_model_classes()
    names: dict[str, Any] = {"__name__": "__console__", "app": app, **models}
    if command or not sys.stdin.isatty():
        return OK if run_python_program(command or sys.stdin.read(), names) else FAILURE
    known = ", ".join(models) or "none"
    routes = format_count(app.report.routes, "route")
    run_prompt(names, banner=f"app: {app.root}, {routes}; models: {known}; await works")
    return OK


def _create_shell_application(app_dir: str) -> "Application":
    """Return the application with the conveniences of development, but the names of production."""
    from treefold_http import Application, Settings

    settings = Settings.load(Path(app_dir))
    if settings.environment is None and not os.environ.get("TREEFOLD_TEST_RUN"):
        settings = dataclasses.replace(settings, environment="production")
    app = Application(app_dir, dev=True, settings=settings)
    app.role = "command"
    return app


def _collect_model_classes() -> Mapping[str, type]:
    """Return the classes that the modules of `Models/` define, which the boot has imported."""
    loaded = sorted(sys.modules.copy().items())
    modules = [module for name, module in loaded if name.partition(".")[0] == "Models"]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }
