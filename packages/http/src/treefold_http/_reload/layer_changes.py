"""What a save changes in versions that inherit: one file is the source of several modules.

    Api/v1/Book/shelf.py     saved: changes `Api.v1.Book.shelf` and `Api.v2.Book.shelf`
    Api/v2/Book/shelf.py     new: `Api.v2.Book.shelf` had the file of v1 before
    Api/v2/Book/shelf.gone   new: there is no `Api.v2.Book.shelf` any more
    Api/v2/version.toml      saved: any module of v2 may have another file, or none

Names of modules only; nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from treefold_http._modules.modules import folder_to_package_name
from treefold_http._modules.version_files import VersionFiles

if TYPE_CHECKING:
    from treefold_router import Layers

_GONE = ".gone"


def find_modules_of_changes(
    files: Collection[str],
    loaded: Mapping[str, ModuleType],
    versions: VersionFiles,
    *,
    former: Layers,
    layers: Layers,
) -> set[str]:
    """Return the names of modules whose file has changed, or is another one now.

    Args:
        files: the changed files, as paths below the root.
        loaded: the loaded modules by dotted name.
        versions: the files of versions as they are now.
        former: the layers before the change.
        layers: the layers now.
    """
    if not former.chains and not layers.chains:
        return set()
    found = {name for file in files for name in _name_in_heirs(file, former, layers)}
    # inherited now, or no longer: what tried to import such a module is imported again
    differing = {file for file, _ in former.files.items() ^ layers.files.items()}
    found |= {_name_module(f"Api/{file}") for file in differing}
    inheriting = {*former.chains, *layers.chains}
    for name, module in loaded.items():
        parts = name.split(".", 2)
        is_of_layers = parts[0] == "Api" and len(parts) > 1 and parts[1] in inheriting
        if is_of_layers and _has_other_file(name, module, versions):
            found.add(name)
    return found


def _name_in_heirs(file: str, former: Layers, layers: Layers) -> Iterator[str]:
    """Yield the names of a file of `Api/` in its version and in those that inherit it.

    A module that is not loaded counts too: what tried to import it is imported again.
    """
    top, _, below = file.partition("/")
    version, _, path = below.partition("/")
    if top != "Api" or not path:
        return
    for name in (version, *former.list_heirs(version), *layers.list_heirs(version)):
        yield _name_module(f"Api/{name}/{path}")


def _name_module(file: str) -> str:
    stem = file.removesuffix(".py").removesuffix(_GONE).removesuffix("/__init__")
    return folder_to_package_name(stem)


def _has_other_file(name: str, module: ModuleType, versions: VersionFiles) -> bool:
    below = _folder_of(name)
    file: str | None = getattr(module, "__file__", None)
    is_package = hasattr(module, "__path__")
    now = versions.find_effective_file(f"{below}/__init__.py" if is_package else f"{below}.py")
    if file is None:  # a folder without `__init__.py`
        return now is not None
    return now is None or f"{versions.api_folder}/{now}" != file.replace("\\", "/")


def update_package_paths(
    loaded: Mapping[str, ModuleType], versions: VersionFiles, inheriting: Collection[str]
) -> None:
    """Set the folders of loaded packages to those that have files now.

    Args:
        loaded: the loaded modules by dotted name.
        versions: the files of versions as they are now.
        inheriting: the versions to look at.
    """
    for name, module in loaded.items():
        path: Any = getattr(module, "__path__", None)
        if isinstance(path, list) and name.partition(".")[2].partition(".")[0] in inheriting:
            below = _folder_of(name)
            # a package without any folder would belong to no project
            path[:] = versions.find_effective_folders(below) or [f"{versions.api_folder}/{below}"]


def _folder_of(name: str) -> str:
    return "/".join(name.split(".")[1:]).replace("%2E", ".")
