"""Load the sources of a project, and write their bytecode in a thread of its own.

Bytecode records the time of its source in whole seconds. So it is written only for a source that
has not changed for longer than that; a reload reads none (`_reload.module_swap`).
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from treefold_http._modules.modules import ModuleSpace

_SETTLED = 2.0
"""Seconds since the last save of a source from which bytecode identifies it; FAT counts in twos."""


class SourceLoader(SourceFileLoader):
    """A source loader that knows the module space and the source of its module.

    Attributes:
        space: the modules of the project.
        base: the version whose file the module runs, if that is not its own; else empty.
    """

    def __init__(self, name: str, path: str, space: ModuleSpace) -> None:
        super().__init__(name, path)
        self.space = space
        self.base = space.versions.find_base_version(name, path)
        self._stats: Mapping[str, Any] | None = None
        self._is_settled = False

    def get_data(self, path: str) -> bytes:
        """Read a regular file; reading a FIFO or a device would not end.

        Raises:
            FileNotFoundError: for any other file, which an import does not find either.
        """
        if not os.path.isfile(path):
            raise FileNotFoundError(errno.ENOENT, "Not a regular file", path)
        return super().get_data(path)

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Return time and size of the source, to which Python compares those in the bytecode."""
        stats = self._stats = super().path_stats(path)
        self._is_settled = time.time() - stats["mtime"] >= _SETTLED
        return stats

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the source; modules of several versions share that of one file."""
        if not self.space.versions.is_shared_file(self.path):
            return super().get_code(fullname)
        stats = self.path_stats(self.path)
        state = (stats["mtime"], stats["size"])
        compile_code = super().get_code
        return self.space.versions.share_code(self.path, state, lambda: compile_code(fullname))

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; one that is inherited is checked first and afterwards."""
        if self.base:
            from treefold_http._modules.inherited import run_inherited_module

            run_inherited_module(self, module, super().exec_module)
        else:
            super().exec_module(module)

    def read_source(self) -> bytes:
        """Return the source as it is now."""
        return self.get_data(self.path)

    def read_executed_source(self) -> bytes | None:
        """Return the source as it was when the module was imported; None if it has changed.

        It is not kept: with bytecode, a boot does not read it.
        """
        before = self._stats
        try:
            text = self.get_data(self.path)
            return text if before is not None and super().path_stats(self.path) == before else None
        except OSError:
            return None

    def set_data(self, path: str, data: ReadableBuffer, *, _mode: int = 0o666) -> None:
        """Write bytecode; while handlers are loaded, queue it for
        `write_queued_bytecode_in_thread`.

        A source that was saved just now gets none: another save within the same second would have
        the same time in the bytecode.
        """
        if not self._is_settled:
            return
        if _unwritten.collecting:
            _unwritten.files.append((self, path, data, _mode))
        else:
            super().set_data(path, data, _mode=_mode)


class _Unwritten(threading.local):
    """The unwritten bytecode of this thread's boot."""

    def __init__(self) -> None:
        self.collecting = False
        self.files: list[tuple[SourceLoader, str, ReadableBuffer, int]] = []


_unwritten = _Unwritten()


def run_module(module: ModuleType, loader: SourceLoader) -> None:
    _unwritten.collecting = True
    try:
        loader.exec_module(module)
    finally:
        _unwritten.collecting = False


def write_queued_bytecode_in_thread() -> None:
    """Write the bytecode compiled since the boot began, in a separate thread.

    Writing takes four times as long as compiling a small handler, and the files are not needed
    before the next start.
    """
    files, _unwritten.files = _unwritten.files, []

    def write() -> None:
        for loader, path, data, mode in files:
            SourceFileLoader.set_data(loader, path, data, _mode=mode)

    if files:
        # a daemon: Python writes under another name and renames, so an exit leaves no half file
        threading.Thread(target=write, name="treefold-bytecode", daemon=True).start()
