"""`treefold openapi`: the documents of a project, without serving it.

Boots the application as `check` does. Output of handlers during the import does not get into the
document.
"""

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

from treefold_cli._console.completion import complete_versions
from treefold_cli._console.errors import MISUSE, OK, CommandError, translate_to_command_error
from treefold_cli._console.options import (
    AppDir,
    make_choice,
    make_flag,
    make_option,
    parse_choice_option,
)
from treefold_cli._console.output import print_error
from treefold_cli._console.progress import show_progress
from treefold_cli._console.project import rebase_typed_path, require_api_folder
from treefold_cli._console.replace_file import replace_file
from treefold_cli._console.yaml import to_yaml

FORMATS = ("json", "yaml")


def openapi(
    app_dir: AppDir = ".",
    version: Annotated[
        str, make_option("--version", "vN", "Only this version of the API.", complete_versions)
    ] = "",
    output: Annotated[str, make_choice("--format", FORMATS, "How to write it.")] = "",
    out: Annotated[str, make_option("--out", "FILE", "Write a file instead of printing.")] = "",
    asyncapi: Annotated[
        bool, make_flag("--asyncapi", "The AsyncAPI document: sockets and event streams.")
    ] = False,
    unversioned: Annotated[
        bool, make_flag("--unversioned", "The default version, with paths without a version.")
    ] = False,
) -> int:
    """Print the OpenAPI document.

    The format follows the name of --out where --format is not given.
    """
    if asyncapi and unversioned:
        message = "--unversioned is for OpenAPI, got --asyncapi; leave one out"
        raise CommandError(message, code=MISUSE)
    default = "yaml" if out.lower().endswith((".yaml", ".yml")) else "json"
    form = parse_choice_option(output or default, "--format", choices=FORMATS)
    require_api_folder(app_dir)
    document = _boot_and_build_document(
        app_dir, version or None, asyncapi=asyncapi, unversioned=unversioned
    )
    text = to_yaml(document) if form == "yaml" else f"{json.dumps(document, indent=2)}\n"
    if out:
        replace_file(rebase_typed_path(out), text)
        print_error(f"wrote {out}")
    else:
        sys.stdout.write(text)
    return OK


def _boot_and_build_document(
    app_dir: str, version: str | None, *, asyncapi: bool, unversioned: bool
) -> dict[str, Any]:
    from treefold_http import Application, Settings, TreefoldError
    from treefold_http.openapi import asyncapi_document, openapi_document
    from treefold_logging import flush

    try:
        quiet = contextlib.redirect_stdout(sys.stderr)
        with quiet, translate_to_command_error(TreefoldError), show_progress("Describing"):
            app = Application(app_dir, settings=Settings.load(Path(app_dir)).with_secret())
            app.role = "command"
            app.boot()
            try:
                if asyncapi:
                    return asyncapi_document(app, version)
                return openapi_document(app, version, unversioned=unversioned)
            except ValueError as error:
                more = "" if unversioned else "; see --version"
                raise CommandError(f"{error}{more}") from error
    finally:
        flush()
