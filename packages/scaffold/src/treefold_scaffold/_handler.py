"""`create`: one handler file at its place in the tree.

Turns the words of the command into a file under `Api/` and writes it once. Which paths are allowed
is decided in `_path`, which folder they mean in `_place`; no handler is read or imported.
"""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from treefold_router import METHODS, method_of, parameter_name, segment_of
from treefold_scaffold._errors import ScaffoldError
from treefold_scaffold._path import parse_path
from treefold_scaffold._place import find_latest_version, resolve_folder
from treefold_scaffold._templates import DYNAMIC_HANDLER, SOCKET_HANDLER, STATIC_HANDLER

_SOCKET = "WEBSOCKET"


@dataclass(frozen=True, slots=True)
class Created:
    """The handler file was written.

    Attributes:
        file: POSIX path below the application root, such as `Api/v1/Order/[id]/Get.py`.
        method: the HTTP method it answers, or `WEBSOCKET`.
        url: the URL template it answers at, such as `/v1/order/{id}`.
        separated: segments of the wanted path whose `-` or `_` the URL lacks, such as `order-line`.
    """

    file: str
    method: str
    url: str
    separated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exists:
    """A file already answers this method at this place; it was left untouched.

    Attributes:
        file: POSIX path of that file below the application root.
    """

    file: str


def create_handler(app_dir: str | os.PathLike[str], path: str, *, method: str) -> Created | Exists:
    """Write a minimal handler for `method` at `path`, unless a file for it exists.

    Args:
        app_dir: the application root, the folder that holds `Api/`.
        path: `[vN/]<path>`. Static segments become PascalCase folders (`order-line` is
            `OrderLine`), bracket segments stay as they are. Without `vN` the latest existing
            version is meant, `v1` if there is none.
        method: an HTTP method, or `socket`, `ws` or `websocket`; in any case.

    Returns:
        `Created`, or `Exists` with the file that was already there.

    Raises:
        ScaffoldError: the path, the method or the folder is refused. Nothing was written.
        OSError: the disk refused.

    Source: interface specification, 'Command-line tool'; security row S-124.
    """
    verb = _parse_method(method)
    wanted = parse_path(path)
    api = Path(app_dir, "Api")
    if not api.is_dir():
        message = f"No folder 'Api' in {os.fspath(app_dir)!r}; name the root of a project"
        raise ScaffoldError(message)
    folder = resolve_folder(
        api, wanted.version or find_latest_version(api) or "v1", folders=wanted.folders
    )
    file = folder / f"{'Socket' if verb == _SOCKET else verb.capitalize()}.py"
    places = folder.relative_to(api).parts
    taken = _find_existing_handler(folder, verb)
    if taken is None and _write_if_absent(file, _choose_handler_template(verb, places)):
        name, url = _relative_to_project(api, file), _build_url_template(places)
        return Created(name, verb, url, wanted.separated)
    return Exists(_relative_to_project(api, taken or file))


def _parse_method(method: str) -> str:
    if (verb := method_of(method)) is None:
        known = ", ".join(name.lower() for name in METHODS)
        raise ScaffoldError(f"Unknown method {method!r}; use one of {known}, socket")
    return verb


def _find_existing_handler(folder: Path, verb: str) -> Path | None:
    if not folder.is_dir():
        return None
    files = (file for file in folder.iterdir() if file.suffix == ".py")
    return min((file for file in files if method_of(file.stem) == verb), default=None)


def _write_if_absent(file: Path, text: str) -> bool:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        stream = file.open("x", encoding="utf-8", newline="\n")
    except FileExistsError:  # another process was faster
        return False
    try:
        with stream:
            stream.write(text)
    except BaseException:  # a full disk must not leave half a handler
        with contextlib.suppress(OSError):
            file.unlink()
        raise
    return True


def _choose_handler_template(verb: str, places: Sequence[str]) -> str:
    if verb == _SOCKET:
        return SOCKET_HANDLER
    return DYNAMIC_HANDLER if any(map(parameter_name, places)) else STATIC_HANDLER


def _build_url_template(places: Sequence[str]) -> str:
    names = ((parameter_name(place), place) for place in places)
    return "".join(f"/{{{name}}}" if name else f"/{segment_of(place)}" for name, place in names)


def _relative_to_project(api: Path, file: Path) -> str:
    return file.relative_to(api.parent).as_posix()
