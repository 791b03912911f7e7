"""`version create`: create a whole version, or nothing.

Writes a plan into a hidden folder beside `Api/` and renames that in one step. A killed process
leaves only the hidden folder, which the next run removes. The content is made in `_version_plan`.
"""

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Any

from treefold_scaffold._errors import ScaffoldError
from treefold_scaffold._version_plan import Action, Entry, VersionPlan

DRAFT = ".treefold-version-"


def write_version(app_dir: str | os.PathLike[str], plan: VersionPlan) -> Path:
    """Write a planned version into `Api/`, completely or not at all.

    Args:
        app_dir: the application root, the folder that holds `Api/`.
        plan: the result of `plan_version`.

    Returns:
        The path of the new version folder.

    Raises:
        ScaffoldError: the folder has appeared since, or another process is making a version.
        OSError: the disk cannot be written. Nothing is left.
    """
    api = Path(app_dir, "Api")
    target = api / plan.target
    with lock_api(api):
        home = choose_draft_parent(Path(app_dir), api)
        for leftover in home.glob(f"{DRAFT}*"):
            remove_tree(leftover)
        draft = home / f"{DRAFT}{secrets.token_hex(4)}"
        try:
            draft.mkdir()
        except OSError as error:
            error.filename = str(target)  # not the name of the hidden folder
            raise
        try:
            _write_entries(draft / plan.target, plan, api=api)
            _rename_draft(draft / plan.target, target)
            target.chmod(plan.mode)  # last: a read-only folder cannot be moved to another parent
        finally:  # Ctrl-C leaves nothing behind either
            remove_tree(draft)
    return target


@contextlib.contextmanager
def lock_api(api: Path) -> Generator[None, None, None]:
    """Hold a lock on `Api/` until the process ends; systems without locks continue without one."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    folder = os.open(api, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = "Another process is making a version; wait for it and try again"
            raise ScaffoldError(message) from error
        except OSError:  # a network disk without locks
            pass
        yield
    finally:
        os.close(folder)


def choose_draft_parent(root: Path, api: Path) -> Path:
    """Return the folder for drafts of versions."""
    # Beside `Api/`, so that a watcher or a scan never sees a draft; but a rename needs one disk.
    return root if root.stat().st_dev == api.stat().st_dev else api


def _write_entries(folder: Path, plan: VersionPlan, *, api: Path) -> None:
    folder.mkdir()
    for entry in plan.entries:
        source = api / (entry.layer or plan.source) / entry.path
        write_entry(folder / entry.path, entry, source=source)
    # Modes last, inner folders first: a read-only folder accepts no files.
    for entry in reversed(plan.entries):
        if entry.action is Action.FOLDER:
            (folder / entry.path).chmod(entry.mode)


def write_entry(place: Path, entry: Entry, *, source: Path) -> None:
    """Write one entry of a plan.

    Args:
        place: its path.
        entry: the entry.
        source: the file that an unchanged copy is made of.
    """
    if entry.action is Action.FOLDER:
        place.mkdir()
        return
    if entry.content is None:
        shutil.copyfile(source, place)
    elif entry.action is Action.LINKED:
        os.symlink(os.fsdecode(entry.content), place)
        return
    else:
        place.write_bytes(entry.content)
    place.chmod(entry.mode)


def _rename_draft(draft: Path, target: Path) -> None:
    if os.path.lexists(target):  # created since the plan; a rename would replace an empty folder
        raise ScaffoldError(f"Target {str(target)!r} exists; choose another number or remove it")
    draft.rename(target)


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, read-only folders too."""

    def unlock(remove: Any, path: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), stat.S_IRWXU)
            os.chmod(path, stat.S_IRWXU)
            remove(path)

    # Twice: files in a read-only folder can be removed once it is writable.
    for _ in range(2):
        shutil.rmtree(folder, onerror=unlock)
        if not folder.exists():
            return
