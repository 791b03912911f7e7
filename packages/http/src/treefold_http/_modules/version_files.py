"""The files of versions that inherit, as modules see them: own ones and those of bases.

    Api/v2/Book/Get.py              own
    v2/Book/Services/shelf.py       of `Api/v1`, the file of the module `Api.v2.Book.Services.shelf`

The router says which files a version has; before a boot, as in a test that imports a service, the
disk is read. Modules of several versions that run one file share its compiled code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType

from treefold_router import Layers, RouterError, RouteTable


class VersionFiles:
    """The files of versions that inherit.

    Args:
        api_folder: path of `Api/`.
    """

    def __init__(self, api_folder: str) -> None:
        self.api_folder = api_folder
        self._layers: Layers | None = None
        self._shared: frozenset[str] = frozenset()
        self._codes: dict[str, tuple[object, CodeType | None]] = {}

    @property
    def layers(self) -> Layers:
        """The files that versions inherit; set by a boot, read from the disk before one.

        Raises:
            ImportError: a `version.toml` is invalid.
        """
        if (layers := self._layers) is None:
            layers = self.layers = _read_layers(self.api_folder)
        return layers

    @layers.setter
    def layers(self, layers: Layers) -> None:
        self._layers = layers
        self._shared = frozenset(f"{self.api_folder}/{file}" for file in layers.files.values())

    def find_effective_file(self, file: str) -> str | None:
        """Return the path below `Api/` of a file of a version that inherits, own or of a base."""
        if os.path.isfile(f"{self.api_folder}/{file}"):
            return file
        return self.layers.files.get(file)

    def find_effective_folders(self, folder: str) -> Sequence[str]:
        """Return the paths of the folders that a folder of such a version has its files in."""
        known = [f"{self.api_folder}/{each}" for each in self.layers.folders.get(folder, ())]
        own = f"{self.api_folder}/{folder}"
        return known if own in known or not os.path.isdir(own) else [own, *known]

    def find_base_version(self, name: str, path: str) -> str:
        """Return the version whose file a module runs, if that is not its own; else empty."""
        if self._layers is None or not self._layers.chains or not name.startswith("Api.v"):
            return ""
        version = name.split(".")[1]
        if version not in self._layers.chains:
            return ""
        layer = path.replace(os.sep, "/").removeprefix(f"{self.api_folder}/").partition("/")[0]
        return "" if layer == version else layer

    def is_shared_file(self, path: str) -> bool:
        """Return True for a file that modules of several versions run."""
        return path in self._shared

    def share_code(
        self, path: str, state: object, compile_code: Callable[[], CodeType | None]
    ) -> CodeType | None:
        """Return the code of a file, compiled once for all modules that run it.

        Args:
            path: path of the file.
            state: differs if the content of the file differs.
            compile_code: compiles it.
        """
        if path not in self._shared:
            return compile_code()
        known = self._codes.get(path)
        if known is None or known[0] != state:
            known = self._codes[path] = (state, compile_code())
        return known[1]


def _read_layers(api_folder: str) -> Layers:
    # most projects have no such file, and need no look at all of their folders
    if not any(Path(api_folder).glob("v*/version.toml")):
        return Layers()
    try:
        return RouteTable.scan(api_folder).layers
    except RouterError as error:
        raise ImportError(str(error)) from error
