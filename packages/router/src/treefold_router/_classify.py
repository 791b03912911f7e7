"""One entry of the tree is an endpoint, skipped with a reason, or ordinary code.

Decided from names alone: no disk, no other entries. The reasons in `NOT_VERSIONED` and
`inside_non_route_folder` are the specification's words; `check` and the boot log print them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from treefold_router._naming import is_version_name, method_of
from treefold_router._path import MAX_SEGMENTS, has_control_character, is_utf8_encodable
from treefold_router._scan import Entry
from treefold_router._types import Skipped

NOT_VERSIONED = "not under a version folder (vN)"
NOT_UNICODE = "name is not valid UTF-8, no URL can reach it"
HAS_CONTROL_CHARACTER = "folder name holds a control character, no URL can reach it"
TOO_DEEP = f"more than {MAX_SEGMENTS} segments deep, no URL can reach it"

OPT_OUT = frozenset(("Services", "__pycache__"))
"""Names of the folders that hold no routes."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A file that serves one method at its place.

    Args:
        method: one of `METHODS`, or 'WEBSOCKET'.
        folders: folder names below `Api/`, the version first.
        file: path below `Api/` with forward slashes; in a base for one that is inherited.
    """

    method: str
    folders: tuple[str, ...]
    file: str


def classify_entry(entry: Entry) -> Endpoint | Skipped | None:
    """Classify an entry; None is ordinary code, which routing ignores.

    Source: the three kinds of file, routing rules 1, 3 and 7.
    """
    if entry.is_folder:
        return _classify_folder(entry)
    *folders, name = entry.parts
    stem = name.removesuffix(".py")
    method = method_of(stem)
    misplaced = _find_misplacement_reason(folders)
    if method is None:
        # The intended name is unknown, so the file is reported wherever it could be a route.
        if misplaced or is_utf8_encodable(stem):
            return None
        return _make_skipped_record(entry, NOT_UNICODE)
    reason = misplaced or entry.defect or _find_unreachable_reason(folders)
    if reason:
        return _make_skipped_record(entry, reason)
    return Endpoint(method, tuple(folders), entry.file)


def is_ordinary_code_file(entry: Entry) -> bool:
    """Return True for a file of ordinary code where a method file would be an endpoint."""
    *folders, name = entry.parts
    stem = name.removesuffix(".py")
    placed = not entry.is_folder and not entry.defect and not _find_misplacement_reason(folders)
    return placed and method_of(stem) is None and is_utf8_encodable(stem)


def describe_opt_out_folder(name: str) -> str:
    """Return the reason for a file below an opt-out folder."""
    return f"inside non-route folder '{name}'"


def _classify_folder(entry: Entry) -> Skipped | None:
    # The folder was not listed (a link that leads outside, a folder without read permission), so
    # only one that could contain routes is reported.
    if _find_misplacement_reason(entry.parts):
        return None
    return _make_skipped_record(entry, entry.defect)


def _find_misplacement_reason(folders: Sequence[str]) -> str:
    if not folders or not is_version_name(folders[0]):
        return NOT_VERSIONED
    for name in folders[1:]:
        if name in OPT_OUT:
            return describe_opt_out_folder(name)
    return ""


def _find_unreachable_reason(folders: Sequence[str]) -> str:
    path = "/".join(folders)
    if not is_utf8_encodable(path):
        return NOT_UNICODE
    if has_control_character(path):
        return HAS_CONTROL_CHARACTER
    return TOO_DEEP if len(folders) > MAX_SEGMENTS else ""


def _make_skipped_record(entry: Entry, reason: str) -> Skipped:
    path = "/".join(entry.parts)
    return Skipped(path if path.isprintable() else repr(path)[1:-1], reason)
