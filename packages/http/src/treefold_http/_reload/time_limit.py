"""End an import of a reload that blocks.

Another thread looks at the importing one at intervals, and raises an exception there. It is raised
at the next instruction of Python: a call of C code that never returns is not ended.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import FrameType

from treefold_http._modules.modules import ModuleSpace
from treefold_http._modules.source_loader import SourceLoader
from treefold_http._wire.interpreter import find_thread_frame, raise_in_thread
from treefold_logging import get_logger

_TICKS = 8
"""Looks until the limit; counted, as a process that is suspended is not looked at."""


class ImportTimeout(KeyboardInterrupt):
    """An import took too long; like Ctrl-C, it passes code that keeps any error of a file.

    Attributes:
        modules: path below the root by module name, of what was being imported, the outermost
            first.
    """

    def __init__(self, modules: Mapping[str, str] | None = None, seconds: float = 0) -> None:
        super().__init__(f"the import took longer than {seconds:g} seconds")
        self.modules = modules or {}


@contextmanager
def limit_import_time(space: ModuleSpace, seconds: float) -> Generator[None]:
    """Raise ImportTimeout in a block if one module of a project is imported for too long.

    Args:
        space: the modules of the project.
        seconds: the limit for each module without the modules that it imports.
    """
    limit = _Limit(space, seconds)
    limit.start()
    try:
        yield
    except ImportTimeout as error:
        # the interpreter makes the raised instance, without arguments: it knows no modules
        raise ImportTimeout(limit.modules, seconds).with_traceback(error.__traceback__) from None
    finally:
        limit.ended.set()


class _Limit(threading.Thread):
    """Looks at the thread that made it.

    Attributes:
        ended: set when the imports have ended.
        modules: what was being imported at the limit.
    """

    def __init__(self, space: ModuleSpace, seconds: float) -> None:
        super().__init__(name="treefold-import-limit", daemon=True)
        self.ended = threading.Event()
        self.modules: dict[str, str] = {}
        self._importer = threading.get_ident()
        self._space = space
        self._prefix = os.path.join(space.root, "")
        self._seconds = seconds
        self._module: FrameType | None = None
        self._ticks = 0

    def run(self) -> None:
        while not self.ended.wait(self._seconds / _TICKS):
            self._interrupt_slow_import()
        self._module = None  # a frame keeps all of its variables alive

    def _interrupt_slow_import(self) -> None:
        frames = self._find_importing_frames(find_thread_frame(self._importer))
        module = frames[-1] if frames else None
        # the count begins again with each innermost module: many quick imports are no slow one
        self._ticks = self._ticks + 1 if module is self._module else 0
        self._module = module
        # `ended` again: an exception after the block would interrupt any code that follows it
        if module is None or not self._ticks or self.ended.is_set():
            return
        if self._ticks % _TICKS == 0:  # again, if the module goes on after any error
            self.modules = {one.f_globals["__name__"]: self._find_frame_file(one) for one in frames}
            raise_in_thread(self._importer, ImportTimeout)
        elif self._ticks == _TICKS + 1:
            get_logger("dev").error(
                "the import of %s does not end, after %g seconds; until a save that loads in a new"
                " process, the former version serves",
                self._find_frame_file(module),
                self._seconds,
            )

    def _find_importing_frames(self, frame: FrameType | None) -> list[FrameType]:
        """Return the frames of the modules that are being imported, the outermost first."""
        modules: list[FrameType] = []
        outermost: list[FrameType] = []
        while frame is not None:
            loader = frame.f_globals.get("__loader__")
            if isinstance(loader, SourceLoader) and loader.space is self._space:
                outermost = [frame]
                if frame.f_code.co_name == "<module>":
                    modules.append(frame)
            frame = frame.f_back
        return modules[::-1] or outermost  # `init()` of a handler runs after its module

    def _find_frame_file(self, frame: FrameType) -> str:
        return str(frame.f_globals["__file__"]).removeprefix(self._prefix).replace(os.sep, "/")
