"""Static files: serve the regular files of a folder, and nothing else of it (S-47, D-22).

A name is checked twice: by its text, before any access to the disk, and by its real path, after
every symbolic link is followed. A refused name gets the same 404 as a missing file.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from treefold_http._responses.files import FileResponse
from treefold_http._responses.regular_file import NotRegularFileError, RegularFile
from treefold_http._responses.response import Response
from treefold_http._runtime.boot_report import BootError
from treefold_http._runtime.threads import run_in_disk_thread
from treefold_http._wire.errors import NOTHING_HERE, NotFound, require_read_method

if TYPE_CHECKING:
    from treefold_http._requests.request import Request

_forbidden = re.compile("[\x00-\x1f\x7f/\\\\:\ud800-\udfff]").search

# Error numbers for a name that cannot be served. Any other, such as no free file descriptor, is a
# failure of the server and not of the name.
_ABSENT = frozenset(
    {
        errno.EACCES,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENODEV,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENXIO,
        errno.EPERM,
    }
)


class StaticFiles:
    """A mount target for the files below a folder.

    Serves GET and HEAD with the validators, conditions and ranges of `FileResponse`. Answers 404
    for folders (there is no listing), names that start with a dot, symbolic links that lead out of
    the folder, and everything that is not a regular file; 405 for other methods.

    Args:
        directory: the folder; a relative one starts at the application root.
        index: the file to serve for a folder, such as `index.html`; None for 404.
        max_age: seconds that a client may cache a file; with 0 it revalidates each time, and gets
            a 304 while the file is unchanged.

    Raises:
        ValueError: for an index that is not a plain file name, or a negative `max_age`.
    """

    __slots__ = ("_cache_control", "directory", "index")

    def __init__(
        self, directory: str | os.PathLike[str], *, index: str | None = None, max_age: int = 0
    ) -> None:
        if index is not None and not _is_safe_file_name(index):
            raise ValueError(
                "The index of StaticFiles must be a plain file name such as 'index.html', got"
                f" {index!r}"
            )
        if max_age < 0:
            raise ValueError(f"max_age must be 0 or more seconds, got {max_age!r}")
        self.directory = Path(directory)
        self.index = index
        self._cache_control = f"max-age={max_age}" if max_age else "no-cache"

    def check(self, root: Path) -> None:
        """Refuse a folder that cannot be served; called when it is mounted.

        Args:
            root: the application root.

        Raises:
            BootError: when the folder does not exist, or holds the application's own source.
        """
        folder = root / self.directory
        if not folder.is_dir():
            message = f"Static folder {str(folder)!r} does not exist; create it or correct its name"
            raise BootError(message)
        code, files = root.resolve() / "Api", folder.resolve()
        if code.is_relative_to(files) or files.is_relative_to(code):
            raise BootError(
                f"Static folder {str(folder)!r} contains the application itself; choose a"
                " folder of public files"
            )

    async def response(self, path_segments: Sequence[str], request: Request) -> Response:
        """Return the response for a path below the mount.

        Args:
            path_segments: the path below the prefix, split at `/` and decoded once, without empty
                segments, as the router splits it.
            request: the request.

        Raises:
            NotFound: for a missing or refused name.
            MethodNotAllowed: for methods other than GET and HEAD.
        """
        require_read_method(request.method)
        if not all(_is_safe_file_name(segment) for segment in path_segments):
            raise NotFound(NOTHING_HERE)
        find, root = self._find_file_or_index, request.app.root
        found = await run_in_disk_thread(find, root, tuple(path_segments))
        if found is None:
            raise NotFound(NOTHING_HERE)
        path, is_index = found
        if is_index and not request.raw_path.endswith(b"/"):
            return _redirect_with_slash(request)
        return _StaticFile(path, headers={"Cache-Control": self._cache_control})

    def has_file(self, base: Path, path_segments: Sequence[str]) -> bool:
        """Return True if there is a file for a path below the mount; it blocks, and opens none.

        Args:
            base: the application root.
            path_segments: as for `response`.
        """
        plain = all(map(_is_safe_file_name, path_segments))
        return plain and self._find_file_or_index(base, tuple(path_segments)) is not None

    def has_path(self, base: Path, names: Sequence[str]) -> bool:
        """Return True if a path leads to something in the folder; it blocks, and opens no file.

        Args:
            base: the application root.
            names: the path in lower case; `*` is any name.
        """
        *folder, last = names
        found = (name.lower() for name in self.list_folder_names(base, folder))
        return any(last in ("*", name) for name in found)

    def list_folder_names(self, base: Path, folder: Sequence[str]) -> list[str]:
        """Return the names in the folders at a path, in any order; arguments as `has_path`."""
        places = [base / self.directory]
        for wanted in folder:
            inner = (place / name for place in places for name in _list_names(place))
            places = [place for place in inner if wanted in ("*", place.name.lower())]
        return [name for place in places for name in _list_names(place)]

    def _find_file_or_index(self, base: Path, segments: tuple[str, ...]) -> tuple[str, bool] | None:
        """In a disk thread, return the real path, and True for the index of a folder."""
        try:
            root = os.path.realpath(base / self.directory, strict=True)
            path = _resolve_visible_path(root, segments)
            mode = os.stat(path).st_mode if path else 0
            is_index = stat.S_ISDIR(mode) and self.index is not None
            if path and is_index and self.index:
                path = _resolve_visible_path(root, (*segments, self.index))
                mode = os.stat(path).st_mode if path else 0
        except OSError as error:
            if means_file_absent(error):
                return None
            raise
        return (path, is_index) if path and stat.S_ISREG(mode) else None


class _StaticFile(FileResponse):
    """A file that a client named: 404 if it has been removed before it is opened."""

    __slots__ = ()

    def _build_file_reader(self) -> RegularFile:
        # The path was resolved: a link at its end was created afterwards.
        return RegularFile(self.path, follow=False)

    def _translate_error(self, error: Exception) -> Exception:
        return NotFound(NOTHING_HERE) if means_file_absent(error) else error


def _list_names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # a file, or a folder that cannot be read and is not served either
        return []


def means_file_absent(error: Exception) -> bool:
    """Return True if an error means that the file does not exist, not that serving it failed."""
    if isinstance(error, NotRegularFileError):
        return True
    return isinstance(error, OSError) and error.errno in _ABSENT


def _is_safe_file_name(segment: str) -> bool:
    """Return True if a segment is one file name on every system, and not a hidden one.

    Also refused: the separators, drives and streams of Windows (`\\`, `:`), final dots and blanks,
    which it drops, and characters that are invalid in file names.
    """
    if not segment or segment[0] == "." or segment[-1] in ". ":
        return False
    return not _forbidden(segment)


def _resolve_visible_path(root: str, segments: tuple[str, ...]) -> str | None:
    """The real path of a name below the real root; None for a path outside, or a hidden one."""
    path = os.path.join(root, *segments)
    # strict: without it a missing part, or a circle of links, would be joined unresolved
    real = os.path.realpath(path, strict=True)
    if not Path(real).is_relative_to(root):
        return None
    # of the real path too: a link `public` could lead to a hidden `.secret`
    if any(part.startswith(".") for part in Path(real).relative_to(root).parts):
        return None
    if _is_case_insensitive(root, segments, real) and not has_exact_names(root, segments):
        return None
    return real


def _is_case_insensitive(root: str, segments: tuple[str, ...], real: str) -> bool:
    """Return True if the file system finds the same file under the name in the other case."""
    other = tuple(segment.swapcase() for segment in segments)
    try:
        return other != segments and os.path.samefile(real, os.path.join(root, *other))
    except OSError:
        return False


def has_exact_names(root: str, segments: Sequence[str]) -> bool:
    """Return True if each segment is listed in its folder with exactly this spelling.

    For file systems that find `secret.TXT` under `Secret.txt`: a file must have one URL, or rules
    about URLs can be bypassed.
    """
    folder = root
    for segment in segments:
        if segment not in os.listdir(folder):
            return False
        folder = os.path.join(folder, segment)
    return True


def _redirect_with_slash(request: Request) -> Response:
    """Redirect to the folder's URL with a slash, so that relative links work.

    The target is relative, so it never leaves the site: a browser would take an absolute one, such
    as `//evil.example/` of a path that begins with two slashes, for another host (S-17).
    """
    last = request.raw_path.rpartition(b"/")[2]
    query = request.scope.get("query_string", b"")
    target = f"./{quote(last, safe='%~!$&()*+,;=@')}/"
    if query:
        target += f"?{quote(query, safe='%/?~!$&()*+,;=:@')}"
    return Response(None, 307, {"Location": target})
