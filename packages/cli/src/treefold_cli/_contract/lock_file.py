"""`routes.lock`: made of the project, and the one that lies in its folder."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from treefold_cli._console.errors import CommandError, translate_to_command_error
from treefold_cli._console.progress import show_progress

if TYPE_CHECKING:
    from treefold_contract import Lock
    from treefold_http.contract import ProjectLock

LOCK = "routes.lock"
ACCEPTED = "contract-accepted.txt"


def build_lock(app_dir: str) -> "ProjectLock":
    """Return the lock of a project, which is booted and not served.

    Raises:
        CommandError: the project cannot be read, or a file is broken.
    """
    from treefold_http import Application, Settings, TreefoldError
    from treefold_http.contract import UnreadableProject, build_project_lock
    from treefold_logging import flush

    try:
        with (
            contextlib.redirect_stdout(sys.stderr),
            translate_to_command_error(TreefoldError, UnreadableProject),
            show_progress("Reading the routes"),
        ):
            app = Application(app_dir, settings=Settings.load(Path(app_dir)).with_secret())
            app.role = "command"
            app.boot()
            return build_project_lock(app)
    finally:
        flush()


def read_lock_text(app_dir: str) -> str:
    """Return the text of the lock in the folder of a project; empty if there is none.

    Raises:
        CommandError: it cannot be read.
    """
    path = Path(app_dir, LOCK)
    if not path.is_file():
        return ""
    with translate_to_command_error(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")


def parse_lock(text: str, shown: str) -> "Lock":
    """Return the lock of a text.

    Args:
        text: the text.
        shown: where it comes from, for the message.

    Raises:
        CommandError: it is not a lock.
    """
    from treefold_contract import LockError, read_lock

    try:
        return read_lock(text)
    except LockError as error:
        raise CommandError(f"{shown}: {error}") from error


def require_lock(app_dir: str) -> "Lock":
    """Return the lock in the folder of a project.

    Raises:
        CommandError: there is none, or it cannot be read.
    """
    text = read_lock_text(app_dir)
    if not text:
        raise CommandError(f"No {LOCK}; write it with 'treefold contract lock'")
    return parse_lock(text, LOCK)
