"""Files that are replaced as a whole: a reader sees the old one or the new one, never a part."""

import contextlib
import os
import tempfile
from pathlib import Path


def replace_file(path: str, text: str) -> None:
    """Write a file beside its place, then move it there; the folder must exist.

    A link is followed, so that what it points at is replaced. A file that was there keeps its
    permissions.

    Raises:
        OSError: it cannot be written; what was there is as it was.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w", encoding="utf-8") as stream:  # a pipe or a device; a folder refuses
            stream.write(text)
        return
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    try:
        handle, made = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        error.filename = path  # not the name that nobody typed
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
