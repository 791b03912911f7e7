"""The folder on the disk that a handler path denotes.

Follows the existing tree, so that no folder is made that collides with one that is there, and never
out of it. Reads folder names only and writes nothing.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from treefold_router import parameter_name, version_number
from treefold_scaffold._errors import ScaffoldError


def find_latest_version(api: Path, *, unserved: Collection[str] = ()) -> str | None:
    """Name the version folder with the highest number.

    Args:
        api: the folder `Api/`.
        unserved: versions that do not count.

    Returns:
        The folder's name, or None when there is no version; of `v01` and `v1` it is `v1`.
    """
    names = (name for name in _list_folders(api) if name not in unserved)
    numbered = ((version_number(name), -len(name), name) for name in names)
    versions = ((number, length, name) for number, length, name in numbered if number is not None)
    return max(versions, default=(0, 0, None))[2]


def resolve_folder(
    api: Path, version: str, *, folders: Iterable[str], inherited: Collection[str] = ()
) -> Path:
    """Find or name the folder for `folders` below `version`.

    Args:
        api: the folder `Api/`.
        version: a version name.
        folders: folder names as `parse_path` gives them.
        inherited: POSIX paths below `api` of folders that the version inherits, as in a copy.

    Returns:
        A path below `api`; an existing folder that differs only in case is used.

    Raises:
        ScaffoldError: a link leads out of `api`, the parameter has another name at this place,
            or `version` would be a second spelling of a version.
    """
    place = _require_inside_api(api, _resolve_version_folder(api, version))
    for folder in folders:
        names = {*_list_folders(place), *_list_inherited(api, place, inherited)}
        name = _match_existing_folder_name(sorted(names), folder)
        place = _require_inside_api(api, place / name)
    return place


def _resolve_version_folder(api: Path, name: str) -> Path:
    plain = f"v{version_number(name)}"
    if name != plain and name not in _list_folders(api):
        raise ScaffoldError(f"Version {name!r} is a second spelling of {plain!r}; write {plain!r}")
    return api / name


def _list_inherited(api: Path, place: Path, inherited: Collection[str]) -> Iterator[str]:
    above = place.relative_to(api).as_posix()
    for path in inherited:
        parent, _, name = path.rpartition("/")
        if parent == above:
            yield name


def _match_existing_folder_name(names: Sequence[str], wanted: str) -> str:
    if wanted in names:
        return wanted
    same = [name for name in names if name.lower() == wanted.lower()]
    if same:
        return same[0]
    others = [name for name in names if parameter_name(name)] if parameter_name(wanted) else []
    if others:
        raise ScaffoldError(f"Parameter {wanted!r} is called {others[0]!r} here; use that name")
    return wanted


def _list_folders(parent: Path) -> list[str]:
    if not parent.is_dir():
        return []
    return sorted(entry.name for entry in parent.iterdir() if entry.is_dir())


def _require_inside_api(api: Path, place: Path) -> Path:
    if not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(api)):
        raise ScaffoldError(f"Folder {str(place)!r} is a link that leads out of 'Api'; use another")
    return place
