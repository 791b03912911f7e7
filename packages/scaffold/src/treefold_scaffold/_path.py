"""Parse the argument `[vN/]<path>` of a command.

Text only: the disk is never read. A segment is a plain word or a whole bracket name; all else
is refused by one rule, so that dots, slashes, control characters and drive letters need no rules
of their own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from treefold_router import parameter_name, version_number
from treefold_scaffold._devices import is_windows_device_name
from treefold_scaffold._errors import ScaffoldError

_WORD = re.compile(r"[A-Za-z0-9_-]{1,200}")  # below the limit of file systems, 255 bytes
_BRACKET = re.compile(r"\[[\w-]{1,60}\]")  # at most four bytes per character
_MEANT_AS_VERSION = re.compile(r"v[0-9]+([-_].*)?", re.IGNORECASE)
_NOT_ROUTES = frozenset({"services", "__pycache__"})  # interface specification, routing rule 7


@dataclass(frozen=True, slots=True)
class HandlerPath:
    """Where a handler is wanted.

    Attributes:
        version: the version named first, such as `v2`, or None for the latest.
        folders: folder names below the version, PascalCase or bracketed.
        separated: segments as typed, in lower case, whose `-` or `_` the folder name lacks.
    """

    version: str | None
    folders: tuple[str, ...]
    separated: tuple[str, ...] = ()


def parse_path(path: str) -> HandlerPath:
    """Check `path` and split it into a version and folder names.

    Args:
        path: `[vN/]<path>`, such as `v2/order-line/[id]`; one leading and one trailing slash are
            ignored.

    Returns:
        The version, if the first segment is one, and the folders.

    Raises:
        ScaffoldError: a segment is neither a plain word nor a whole bracket name, never is a
            route, or repeats a parameter.
    """
    segments = path.removeprefix("/").removesuffix("/").split("/")
    for position, segment in enumerate(segments):
        if reason := _find_segment_objection(segment, before=segments[:position]):
            raise ScaffoldError(f"Path {path!r} is refused: {reason}")
    version = None if version_number(segments[0]) is None else segments.pop(0)
    folders = tuple(map(_to_folder_name, segments))
    pairs = zip(segments, folders, strict=True)
    separated = (typed.lower() for typed, folder in pairs if typed.lower() != folder.lower())
    return HandlerPath(version, folders, tuple(dict.fromkeys(separated)))


def _find_segment_objection(segment: str, *, before: Sequence[str]) -> str | None:
    if _BRACKET.fullmatch(segment):
        if segment in before:
            return f"parameter {segment!r} is repeated; give each parameter a name of its own"
        return None
    if not segment:
        return "a segment is empty; write it like 'v1/user/[id]'"
    if not _WORD.fullmatch(segment) or not segment.strip("-_"):
        return f"segment {segment!r} must be letters, digits, '-' and '_', or a whole '[name]'"
    if {segment.lower(), _to_folder_name(segment).lower()} & _NOT_ROUTES:
        return f"segment {segment!r} names a folder that never holds routes; choose another name"
    if is_windows_device_name(_to_folder_name(segment)):
        return f"segment {segment!r} is a device name on Windows; choose another name"
    if not before and _MEANT_AS_VERSION.fullmatch(segment) and version_number(segment) is None:
        return f"segment {segment!r} is not a version; write 'v' and digits, such as 'v1'"
    return None


def _to_folder_name(segment: str) -> str:
    if parameter_name(segment):
        return segment
    words = re.split("[-_]+", segment)
    return "".join(word[:1].upper() + word[1:] for word in words)
