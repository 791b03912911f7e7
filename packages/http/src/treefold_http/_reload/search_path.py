"""Files of a project that are imported over another entry of `sys.path`, such as `src/`.

Their names say nothing about their place, and their loader is Python's: they are never swapped, a
change restarts the process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType

from treefold_http._modules.modules import folder_to_package_name
from treefold_http._modules.source_loader import SourceLoader
from treefold_logging import get_logger

_FOREIGN = frozenset({"site-packages", "dist-packages", "node_modules"})


def find_sys_path_modules(root: Path, files: Iterable[str]) -> dict[str, str]:
    """Return those of some files, below the root, that are loaded modules, with their names."""
    paths = {
        str(root / file): file
        for file in files
        if file.endswith(".py") and _FOREIGN.isdisjoint(Path(file).parts)
    }
    if not paths:
        return {}
    prefix = os.path.join(root, "")
    leaves = {os.path.basename(path) for path in paths}
    found: dict[str, str] = {}
    for name, module in sys.modules.copy().items():
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and os.path.basename(path) in leaves:
            # Handlers share their file names: the links of thousands are not resolved.
            inside = path.startswith(prefix)
            file = paths.get(path if inside else os.path.realpath(path))
            # a name that follows from the path belongs to the project's loader, and is swapped
            if file is not None and not _is_project_module(name, module, file):
                found[file] = name
    return found


def _is_project_module(name: str, module: ModuleType, file: str) -> bool:
    if name == folder_to_package_name(_strip_module_suffix(file)):
        return True
    loader = getattr(module, "__loader__", None)
    # the file of a base, as a module of a version that inherits it
    return isinstance(loader, SourceLoader) and bool(loader.base)


def _strip_module_suffix(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__")


def without_broken(root: Path, files: Collection[str]) -> list[str]:
    """Return the files that compile, or are gone; log the errors of the others.

    A process that is started again has no last good version to fall back on.
    """
    good: list[str] = []
    for file in sorted(files):
        path = root / file
        try:
            if path.suffix == ".py" and path.is_file():
                # without `dont_inherit` the future import of this module would apply to that source
                compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        # what Python cannot read, or nests too deeply for its parser, does not load either
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            get_logger("dev").error(
                "restart deferred: %s does not compile", file, exc_info=error.with_traceback(None)
            )
        else:
            good.append(file)
    return good


def remove_bytecode(path: str | os.PathLike[str]) -> None:
    """Remove the bytecode of a source: the next start would take it as that of the new source."""
    # NotImplementedError: this interpreter has no cache tag, and writes no bytecode
    with suppress(OSError, NotImplementedError, ValueError):
        os.unlink(cache_from_source(os.fspath(path)))
