"""`new`: create a whole project, or nothing.

Checks the name, writes every file into a hidden folder beside the target and renames that in one
step. Knows nothing about single handlers or versions.
"""

import contextlib
import keyword
import os
import re
import secrets
import shutil
import sys
from pathlib import Path

from treefold_scaffold._devices import is_device
from treefold_scaffold._errors import ScaffoldError
from treefold_scaffold._templates import PROJECT, PROJECT_NAME

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def create_project(name: str, parent: str | os.PathLike[str] = ".") -> Path:
    """Write a new project into the folder `name` below `parent`, completely or not at all.

    Args:
        name: a letter, then at most 63 letters, digits, `_` or `-`; not a name that Python, the
            framework or an operating system already uses.
        parent: an existing folder.

    Returns:
        The path of the new project.

    Raises:
        ScaffoldError: the name is refused, or the target exists. Nothing was written.
        OSError: the disk cannot be written. Nothing is left.

    Source: interface specification, 'Scaffold layout'; security row S-123.
    """
    _check_name(name)
    target = Path(parent, name)
    if os.path.lexists(target):
        raise ScaffoldError(f"Target {str(target)!r} exists; choose another name or remove it")
    draft = target.with_name(f".{name}.{secrets.token_hex(4)}")
    try:
        draft.mkdir()
    except OSError as error:
        error.filename = str(target)  # not the name of the hidden folder
        raise
    try:
        _write_files(draft, name)
        _rename_draft(draft, target)
    except BaseException:  # Ctrl-C leaves nothing behind either
        with contextlib.suppress(OSError):
            shutil.rmtree(draft)
        raise
    return target


def _check_name(name: str) -> None:
    reason = _find_objection(name)
    if reason:
        raise ScaffoldError(f"Project name {name!r} {reason}; choose another, such as 'my-api'")


def _find_objection(name: str) -> str | None:
    if not _NAME.fullmatch(name):
        return "must be a letter followed by at most 63 letters, digits, '_' or '-' (ASCII)"
    module = name.replace("-", "_")
    if keyword.iskeyword(name):
        return "is a Python keyword"
    if module in sys.stdlib_module_names:
        return "is the name of a standard library module"
    if module.lower() == "treefold" or module.lower().startswith("treefold_"):
        return "is a name of the framework"
    if is_device(name):
        return "is a device name on Windows"
    return None


def _write_files(root: Path, name: str) -> None:
    for relative, text in PROJECT.items():
        file = root / relative
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(PROJECT_NAME, name), encoding="utf-8", newline="\n")


def _rename_draft(draft: Path, target: Path) -> None:
    try:
        draft.rename(target)
    except OSError as error:
        if os.path.lexists(target):  # another process made it since the check
            raise ScaffoldError(
                f"Target {str(target)!r} exists; choose another name or remove it"
            ) from error
        raise
