"""Atomic replacement of a file: a reader sees the old or the new content, never a part."""

import contextlib
import os
import tempfile
from pathlib import Path


def replace_file(path: str, text: str) -> None:
    """Write a temporary file beside the target and rename it; the folder must exist.

    A link is followed: its target is replaced. An existing file keeps its permissions.

    Raises:
        OSError: the file cannot be written; an existing file is unchanged.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w", encoding="utf-8") as stream:  # a pipe or a device; a folder refuses
            stream.write(text)
        return
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_read_umask()
    try:
        handle, made = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        error.filename = path  # not the name of the temporary file
        raise
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(made, mode)
        os.replace(made, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
