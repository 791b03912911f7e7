"""`new`: create a whole project, or nothing.

Checks the name, writes every file into a hidden folder and renames that in one step; a folder that
exists gets its entries one by one, or none. Knows nothing about single handlers or versions.
"""

import contextlib
import errno
import keyword
import os
import re
import secrets
import shutil
import sys
from collections.abc import Generator, Mapping
from pathlib import Path

from treefold_scaffold._devices import is_windows_device_name
from treefold_scaffold._errors import ScaffoldError
from treefold_scaffold._templates import MODELS, PROJECT, PROJECT_NAME, STARTER

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_PLAIN_TITLE = re.compile(r"\w[\w .-]*")
_NAMED_ENTRIES = 3


def create_project(
    name: str, parent: str | os.PathLike[str] = ".", *, starter: bool = False, models: bool = False
) -> Path:
    """Write a new project into the folder `name` below `parent`, completely or not at all.

    Args:
        name: a letter, then at most 63 letters, digits, `_` or `-`; not a name that Python, the
            framework or an operating system already uses.
        parent: an existing folder.
        starter: add `.gitignore`, `treefold.toml`, `AGENTS.md` and a first test.
        models: add a first model and `treefold.toml`, which names its database.

    Returns:
        The path of the new project.

    Raises:
        ScaffoldError: the name is refused, or the target exists. Nothing was written.
        OSError: the disk cannot be written. Nothing is left.

    Source: interface specification, 'Scaffold layout'; security row S-123.
    """
    _require_project_name(name)
    target = Path(parent, name)
    if os.path.lexists(target):
        raise ScaffoldError(f"Target {str(target)!r} exists; choose another name or remove it")
    draft = target.with_name(f".{name}.{secrets.token_hex(4)}")
    with _create_draft_folder(draft, target):
        _write_template_files(draft, name, _choose_template_files(starter=starter, models=models))
        _rename_draft(draft, target)
    return target


def fill_folder(
    folder: str | os.PathLike[str], *, starter: bool = False, models: bool = False
) -> tuple[str, ...]:
    """Write a new project into a folder that exists, completely or not at all.

    Args:
        folder: a folder without entries, or with dotfiles only, such as `.git` and `.venv`.
        starter: as for `create_project`.
        models: as for `create_project`.

    Returns:
        The dotfiles of the template that were there already and were kept.

    Raises:
        ScaffoldError: the folder holds other entries. Nothing was written.
        OSError: it is no folder, or the disk cannot be written. Nothing is left.
    """
    target = Path(folder)
    _require_empty_but_dotfiles(target)
    name = target.resolve().name
    title = name if _PLAIN_TITLE.fullmatch(name) else "API"
    draft = target / f".treefold-new.{secrets.token_hex(4)}"
    with _create_draft_folder(draft, target):
        _write_template_files(draft, title, _choose_template_files(starter=starter, models=models))
        kept = _move_entries_or_roll_back(draft, target)
    shutil.rmtree(draft)
    return kept


def _choose_template_files(*, starter: bool, models: bool) -> Mapping[str, str]:
    return {**PROJECT, **(STARTER if starter else {}), **(MODELS if models else {})}


@contextlib.contextmanager
def _create_draft_folder(draft: Path, target: Path) -> Generator[None, None, None]:
    try:
        draft.mkdir()
    except OSError as error:
        error.filename = str(target)  # not the name of the hidden folder
        raise
    try:
        yield
    except BaseException:  # Ctrl-C leaves nothing behind either
        with contextlib.suppress(OSError):
            shutil.rmtree(draft)
        raise


def _require_empty_but_dotfiles(folder: Path) -> None:
    if visible := sorted(name for name in os.listdir(folder) if not name.startswith(".")):
        named = ", ".join(map(repr, visible[:_NAMED_ENTRIES]))
        more = len(visible) - _NAMED_ENTRIES
        named += f" and {more} more" if more > 0 else ""
        raise ScaffoldError(
            f"Folder {str(folder)!r} must be empty but for dotfiles, it holds {named};"
            " move it away or give the name of a new folder"
        )


def _move_entries_or_roll_back(draft: Path, target: Path) -> tuple[str, ...]:
    # `Api` is first: of two processes, one finds it there and has moved nothing yet.
    entries = sorted(os.listdir(draft), key=lambda name: (name != "Api", name))
    kept: list[str] = []
    moved: list[str] = []
    try:
        for name in entries:
            if name.startswith(".") and os.path.lexists(target / name):
                kept.append(name)
                continue
            _move_entry_without_overwrite(draft / name, target / name)
            moved.append(name)
    except BaseException:
        for name in moved:
            (target / name).rename(draft / name)
        _require_empty_but_dotfiles(target)  # the reason, if it is an entry of another program
        raise
    return tuple(kept)


def _move_entry_without_overwrite(source: Path, target: Path) -> None:
    if os.path.lexists(target):  # a rename would replace a file
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    source.rename(target)


def _require_project_name(name: str) -> None:
    if reason := _find_project_name_objection(name):
        raise ScaffoldError(f"Project name {name!r} {reason}; choose another, such as 'my-api'")


def _find_project_name_objection(name: str) -> str | None:
    if not _NAME.fullmatch(name):
        return "must be a letter followed by at most 63 letters, digits, '_' or '-' (ASCII)"
    module = name.replace("-", "_")
    if keyword.iskeyword(name):
        return "is a Python keyword"
    if module in sys.stdlib_module_names:
        return "is the name of a standard library module"
    if module.lower() == "treefold" or module.lower().startswith("treefold_"):
        return "is a name of the framework"
    if is_windows_device_name(name):
        return "is a device name on Windows"
    return None


def _write_template_files(root: Path, name: str, files: Mapping[str, str]) -> None:
    for relative, text in files.items():
        file = root / relative
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(PROJECT_NAME, name), encoding="utf-8", newline="\n")


def _rename_draft(draft: Path, target: Path) -> None:
    try:
        draft.rename(target)
    except OSError as error:
        if os.path.lexists(target):  # another process made it since the check
            message = f"Target {str(target)!r} exists; choose another name or remove it"
            raise ScaffoldError(message) from error
        raise
