"""`create`: one handler file at its place in the tree.

Turns the words of the command into a file under `Api/` and writes it once. Which paths are allowed
is decided in `_path`, which folder they mean in `_place`; no handler is read or imported.
"""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from treefold_router import (
    METHODS,
    InheritedEntry,
    Layers,
    Overlay,
    method_of,
    parameter_name,
    segment_of,
)
from treefold_scaffold._errors import ScaffoldError
from treefold_scaffold._layered_tree import read_layers
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
        source: POSIX path of the file that it was copied from, if it overrides an inherited one.
    """

    file: str
    method: str
    url: str
    separated: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Exists:
    """A file already answers this method at this place; it was left untouched.

    Attributes:
        file: POSIX path of that file below the application root.
        inherited_by: the wanted version, if the file is one that it inherits; else empty.
    """

    file: str
    inherited_by: str = ""


def create_handler(
    app_dir: str | os.PathLike[str], path: str, *, method: str, override: bool = False
) -> Created | Exists:
    """Write a minimal handler for `method` at `path`, unless a file for it exists.

    Args:
        app_dir: the application root, the folder that holds `Api/`.
        path: `[vN/]<path>`. Static segments become PascalCase folders (`order-line` is
            `OrderLine`), bracket segments stay as they are. Without `vN` the latest existing
            version is meant, `v1` if there is none.
        method: an HTTP method, or `socket`, `ws` or `websocket`; in any case.
        override: copy the file that the version inherits into it, to be changed there.

    Returns:
        `Created`, or `Exists` with the file that was already there.

    Raises:
        ScaffoldError: the path, the method or the folder is refused, a mark removes the handler, or
            there is nothing to override. Nothing was written.
        RouterError: a `version.toml` is invalid.
        OSError: the disk refused.

    Source: interface specification, 'Command-line tool'; security row S-124.
    """
    verb = _parse_method(method)
    wanted = parse_path(path)
    api = Path(app_dir, "Api")
    if not api.is_dir():
        message = f"No folder 'Api' in {os.fspath(app_dir)!r}; name the root of a project"
        raise ScaffoldError(message)
    layers = read_layers(api)
    unserved = [name for name in layers.settings if not layers.is_served(name)]
    version = wanted.version or find_latest_version(api, unserved=unserved) or "v1"
    inherited = layers.folders if version in layers.chains else ()
    folder = resolve_folder(api, version, folders=wanted.folders, inherited=inherited)
    file = folder / f"{'Socket' if verb == _SOCKET else verb.capitalize()}.py"
    places = folder.relative_to(api).parts
    taken = _find_existing_handler(folder, verb)
    if taken is None and version in layers.chains:
        _require_no_mark(layers, (*places, file.name))
        base = find_inherited_file(layers, (*places, file.name))
        if base is not None and override:
            return _override_inherited_file(api, base, verb)
        if base is not None:
            return Exists(f"{api.name}/{base.file}", inherited_by=version)
    if taken is None and override:
        raise ScaffoldError(f"Version {version!r} inherits no {verb} here; leave out --override")
    if taken is None and _write_if_absent(file, _choose_handler_template(verb, places).encode()):
        name, url = _relative_to_project(api, file), _build_url_template(places)
        return Created(name, verb, url, wanted.separated)
    return Exists(_relative_to_project(api, taken or file))


def find_inherited_file(layers: Layers, path: tuple[str, ...]) -> InheritedEntry | None:
    """Return the inherited file that a file of a version would replace; None without one.

    Args:
        layers: the layers of the versions.
        path: names from below `Api/`, the version first.
    """
    rules = Overlay((), ())
    key = rules.identify_file(path[1:])
    entries = layers.inherited.get(path[0], ())
    # of files that differ in case only, the one visited last serves
    found = (entry for entry in entries if rules.identify_file(entry.parts[1:]) == key)
    return max(found, key=lambda entry: entry.parts, default=None)


def _require_no_mark(layers: Layers, path: tuple[str, ...]) -> None:
    for mark in layers.marks:
        beside = mark.parts[0] == path[0] and len(mark.parts) == len(path)
        if beside and Overlay((), [mark.parts[1:]]).find_mark(path[1:]) is not None:
            raise ScaffoldError(f"'Api/{mark.file}' removes this handler; delete that file first")


def _override_inherited_file(api: Path, base: InheritedEntry, verb: str) -> Created:
    from treefold_scaffold._version_plan import rewrite_version_in_source

    version, *folders, _ = base.parts
    file = api.joinpath(*base.parts)
    source = (api / base.file).read_bytes()
    below = "/".join(base.parts[1:])
    content, _ = rewrite_version_in_source(source, below, old=base.layer, new=version)
    if not _write_if_absent(file, content):
        raise ScaffoldError(f"File {str(file)!r} has appeared since; run it again")
    name = _relative_to_project(api, file)
    url = _build_url_template((version, *folders))
    return Created(name, verb, url, source=f"{api.name}/{base.file}")


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


def _write_if_absent(file: Path, content: bytes) -> bool:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        stream = file.open("xb")
    except FileExistsError:  # another process was faster
        return False
    try:
        with stream:
            stream.write(content)
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
