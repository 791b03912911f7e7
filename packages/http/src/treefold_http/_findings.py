"""What goes wrong while a project is read: files that fail, said once and kept as data.

Here is what a failure is, and what it falls back on in a reload. What is read, and when, is
decided in `_boot`.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._boot import Site
    from treefold_http._loader import HandlerModule
    from treefold_http._plan import Plan

T = TypeVar("T")

_LONGEST_ERROR = 500
_OURS = os.path.join(os.path.dirname(__file__), "")


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that could not be loaded.

    Attributes:
        file: its path below the application root's `Api/`, or the boot file's name.
        error: what went wrong, in one line.
        traceback: the whole of it.
        cause: the file that is to be mended, below the application root; `file` imports it.
        kept: whether what it last was still serves; only a reload has something to keep.
    """

    file: str
    error: str
    traceback: str
    cause: str = ""
    kept: bool = False


@dataclass(slots=True)
class Findings:
    """What goes wrong while a project is read, and what a reload falls back on.

    Attributes:
        root: the application root, as the files of its modules begin.
        former: what serves now, in a reload.
        broken: the files that failed, in order; it may begin with what failed before.
        notes: what is worth knowing and no failure.
        fatal: the boot file that stops a boot; a reload is never stopped.
    """

    root: str
    former: Site | None = None
    broken: list[BrokenFile] = field(default_factory=list[BrokenFile])
    notes: list[str] = field(default_factory=list[str])
    fatal: BrokenFile | None = None

    def add(self, file: str, error: BaseException, *, fatal: bool = False) -> BrokenFile:
        """Note a file that failed, and log it; in a reload once for all files that fail of it.

        Args:
            fatal: it stops a boot; in a reload, what it was is kept.
        """
        cause = cause_of(error, self.root) or (file if fatal else f"Api/{file}")
        kept = self.former is not None and (fatal or self.last_good(file) is not None)
        found = broken_file(file, error, cause=cause, kept=kept)
        if fatal and self.former is None:
            self.fatal = found
        if self.former is None:
            get_logger().error("%s failed to load: %s", file, found.error, exc_info=error)
        elif not _is_told(found, [*self.former.report.broken, *self.broken]):
            get_logger().error("%s failed to load: %s", cause, found.error, exc_info=error)
        if (file, found.error) not in [(one.file, one.error) for one in self.broken]:
            self.broken.append(found)
        return found

    def last_good(self, file: str) -> tuple[HandlerModule, Plan] | None:
        """Give what served the route of a file last without an error."""
        return self.former.good.get(file) if self.former is not None else None

    def boot_file(self, read: Callable[[], T], former: Callable[[Site], T]) -> T:
        """Give what a boot file says; where that fails in a reload, what it said before."""
        count = len(self.broken)
        said = read()
        failed = len(self.broken) > count
        return former(self.former) if failed and self.former is not None else said


def broken_file(file: str, error: BaseException, *, cause: str, kept: bool) -> BrokenFile:
    """Give the record of a failure; the traceback of the error has no foreign frames afterwards."""
    error = error.with_traceback(_own_frames(error))
    text = "".join(traceback.format_exception(error))
    return BrokenFile(file, _one_line(error), text, cause=cause, kept=kept)


def _one_line(error: BaseException) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}..."


def cause_of(error: BaseException, root: str) -> str:
    """Give the innermost file of a project that was being imported, below its root; or nothing."""
    files = [
        frame.f_code.co_filename
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_name == "<module>"
    ]
    if isinstance(error, SyntaxError) and error.filename:
        files.append(error.filename)
    own = [file for file in files if file.startswith(os.path.join(root, ""))]
    return os.path.relpath(own[-1], root).replace(os.sep, "/") if own else ""


def _own_frames(error: BaseException) -> TracebackType | None:
    """A traceback without the frames of importing between two files of the project."""
    frames: list[TracebackType] = []
    step = error.__traceback__
    while step is not None:
        frames.append(step)
        step = step.tb_next
    foreign = ("<frozen importlib", _OURS)
    own = [step for step in frames if not step.tb_frame.f_code.co_filename.startswith(foreign)]
    kept: TracebackType | None = None
    for step in reversed(own or frames[:1]):
        kept = TracebackType(kept, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return kept


def _is_told(found: BrokenFile, told: Sequence[BrokenFile]) -> bool:
    return (found.cause, found.error) in [(one.cause, one.error) for one in told]
