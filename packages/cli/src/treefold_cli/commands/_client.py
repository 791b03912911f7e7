"""`treefold client ts|python`: a client of the project, or of a lock."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from treefold_cli._console.completion import complete_choices, complete_versions
from treefold_cli._console.errors import (
    FAILURE,
    MISUSE,
    OK,
    CommandError,
    translate_to_command_error,
)
from treefold_cli._console.options import AppDir, make_argument, make_flag, make_option
from treefold_cli._console.output import print_error, print_line
from treefold_cli._console.project import rebase_typed_path, require_api_folder
from treefold_cli._contract.clients import DEFAULT_NAME, LANGUAGES, ClientTarget
from treefold_cli._contract.lock_file import build_lock, parse_lock

if TYPE_CHECKING:
    from treefold_contract import Lock, RouteWords


def client(
    language: Annotated[
        str, make_argument("ts|python", "The language.", complete_choices(*LANGUAGES))
    ],
    out: Annotated[str, make_option("--out", "DIR", "The folder of its files.")] = "",
    name: Annotated[str, make_option("--name", "NAME", "The name of its files.")] = DEFAULT_NAME,
    version: Annotated[
        str, make_option("--version", "vN", "Only this version of the API.", complete_versions)
    ] = "",
    lock: Annotated[
        str, make_option("--from", "FILE", "Read a lock in place of the project.")
    ] = "",
    is_check: Annotated[
        bool, make_flag("--check", "Write nothing; exit code 1 if a file would differ.")
    ] = False,
    app_dir: AppDir = ".",
) -> int:
    """Write a client of the API: its types, and one small file that sends.

    Files are written only if they differ. From the project, summaries and descriptions are shown by
    editors; a lock has none.
    """
    if language not in LANGUAGES:
        raise CommandError(f"Unknown language {language!r}; use ts or python", code=MISUSE)
    if not out:
        raise CommandError("Name the folder of the client: --out DIR", code=MISUSE)
    from treefold_contract import LockError, find_stale_client_files, update_client_files

    target = ClientTarget(language, Path(rebase_typed_path(out)), name, version)
    with translate_to_command_error(LockError, OSError):
        files = target.build_files(*_read_source(app_dir, lock))
        if not is_check:
            written = update_client_files(target.folder, files)
            for path in written:
                print_line(f"wrote {path}")
            if not written:
                print_line("nothing to write")
            return OK
        stale = find_stale_client_files(target.folder, files)
    for path in stale:
        print_error(f"{path} is not what would be written; run this without --check")
    return FAILURE if stale else OK


def _read_source(app_dir: str, file: str) -> "tuple[Lock, dict[str, RouteWords]]":
    if not file:
        require_api_folder(app_dir)
        made = build_lock(app_dir)
        return made.lock, made.words
    path = rebase_typed_path(file)
    if not os.path.isfile(path):
        raise CommandError(f"No file {file!r}; name a lock with --from", code=MISUSE)
    with translate_to_command_error(UnicodeDecodeError):
        text = Path(path).read_text(encoding="utf-8")
    return parse_lock(text, file), {}
