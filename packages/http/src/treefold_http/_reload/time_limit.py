"""End an import of a reload that blocks: the event loop waits for it, and so does every request.

A timer interrupts the main thread. An import that no signal interrupts, such as a call of C code
that never returns, is not ended.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import FrameType

from treefold_http._project.modules import ModuleSpace
from treefold_http._project.source_loader import SourceLoader

_TICKS = 8
"""Signals until the limit; counted, as a process that is suspended gets one for all that time."""


class ImportTimeout(KeyboardInterrupt):
    """An import took too long; like Ctrl-C, it passes code that keeps any error of a file.

    Attributes:
        modules: path below the root by module name, of what was being imported, the outermost
            first.
    """

    def __init__(self, modules: Mapping[str, str], seconds: float) -> None:
        super().__init__(f"the import took longer than {seconds:g} seconds")
        self.modules = modules


@contextmanager
def limited_imports(space: ModuleSpace, seconds: float) -> Generator[None]:
    """Raise ImportTimeout in a block if one module of a project is imported for too long.

    Without a limit in other threads than the main one, and where there are no timers of signals.

    Args:
        space: the modules of the project.
        seconds: the limit for each module without the modules that it imports.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and hasattr(signal, "setitimer")):
        yield
        return
    tick = _Tick(space, seconds)
    handler = signal.signal(signal.SIGALRM, tick)
    rest = signal.setitimer(signal.ITIMER_REAL, seconds / _TICKS, seconds / _TICKS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *rest)
        signal.signal(signal.SIGALRM, handler)


class _Tick:
    """The handler of the timer."""

    def __init__(self, space: ModuleSpace, seconds: float) -> None:
        self._space = space
        self._prefix = os.path.join(space.root, "")
        self._seconds = seconds
        self._module: FrameType | None = None
        self._ticks = 0

    def __call__(self, _number: int, frame: FrameType | None) -> None:
        frames = self._importing(frame)
        module = frames[-1] if frames else None
        self._ticks = self._ticks + 1 if module is self._module else 0
        self._module = module
        if module is not None and self._ticks >= _TICKS:
            self._ticks, self._module = 0, None
            raise ImportTimeout(
                {one.f_globals["__name__"]: self._file_of(one) for one in frames}, self._seconds
            )

    def _importing(self, frame: FrameType | None) -> list[FrameType]:
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

    def _file_of(self, frame: FrameType) -> str:
        return str(frame.f_globals["__file__"]).removeprefix(self._prefix).replace(os.sep, "/")
