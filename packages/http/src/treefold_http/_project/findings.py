"""Failures while a project is loaded: each is logged once and kept as data.

This module records failures and finds the last good version that a reload falls back on.
`_project.boot` decides which files are read, and when.

| What fails | In a boot | In a reload |
|---|---|---|
| a boot file, such as `hooks.py` (`fatal`) | the boot ends | its former value goes on |
| the module of a route | the route answers 500 | its last good version goes on, else 500 |
| a setting that does not fit the project | the boot ends, or it is logged | it is logged |

A reload comes with every save of a file: it logs a failure only where its cause is new.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from treefold_http._runtime.boot_report import BootReport, BrokenFile
from treefold_logging import get_logger, scrub
from treefold_router import RouteTable

if TYPE_CHECKING:
    from treefold_http._plans.handlers import HandlerModule
    from treefold_http._plans.plans import Plan
    from treefold_http._project.loaded_project import BootFiles, LoadedProject

T = TypeVar("T")

_MAX_ERROR = 500
"""Characters of an error in one line, such as that of a response header; the log has all of it."""
SETTINGS = "settings"
"""In place of a file: a setting does not fit the project."""
_MAX_LISTED = 20
"""Most files that one line of the log names."""
IS_FINDING = {"is_finding": True}
"""Attribute of the log records that the report of a boot or reload repeats."""
_OWN_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
"""The prefix of the files of this package, whose frames say nothing to the author of a project."""


@dataclass(slots=True)
class Findings:
    """The failures of one boot or reload, and the last good versions to fall back on.

    Attributes:
        root: the application root, as the prefix of its modules' files.
        former: the project that serves now, in a reload.
        broken: the files that failed, in order; may begin with earlier failures.
        notes: information for the boot report that is not a failure.
        fatal: the boot file that stops a boot; a reload is never stopped.
        untried: the earlier failures.
    """

    root: str
    former: LoadedProject | None = None
    broken: list[BrokenFile] = field(default_factory=list[BrokenFile])
    notes: list[str] = field(default_factory=list[str])
    fatal: BrokenFile | None = None
    untried: tuple[BrokenFile, ...] = field(init=False)
    _files_by_cause: dict[tuple[str, str], list[str]] = field(
        init=False, default_factory=dict[tuple[str, str], list[str]]
    )

    def __post_init__(self) -> None:
        self.untried = tuple(self.broken)

    def record_failure(
        self, file: str, error: BaseException, *, fatal: bool = False, effective_file: str = ""
    ) -> BrokenFile:
        """Record a file that failed, and log it unless its cause is logged already.

        Args:
            fatal: True for a boot file: it stops a boot, and a reload keeps its previous version.
            effective_file: `Route.effective_file` of the route that it fails for.
        """
        place = effective_file or file
        cause = find_failed_import_file(error, self.root) or (file if fatal else f"Api/{file}")
        # a boot file falls back on the entries of the former project
        kept = self.former is not None and (fatal or self.find_last_good_version(place) is not None)
        found = build_broken_file(file, error, cause=cause, kept=kept)
        if place != file:
            found = replace(found, effective_file=place)
        if fatal and self.former is None:
            self.fatal = found
        self._log_failure(found, error)
        if (place, found.error) not in [(one.place, one.error) for one in self.broken]:
            self.broken.append(found)
        return found

    def _log_failure(self, found: BrokenFile, error: BaseException) -> None:
        # one module that many routes import fails for each of them
        files = self._files_by_cause.setdefault((found.cause, found.error), [])
        files.append(found.file)
        if len(files) > 1:
            return
        known = () if self.former is None else (*self.former.report.broken, *self.untried)
        if (found.cause, found.error) in [(one.cause, one.error) for one in known]:
            return
        shown = found.file if self.former is None else found.cause
        get_logger().error(
            "%s failed to load: %s", shown, found.error, exc_info=error, extra=IS_FINDING
        )

    def log_repeated_failures(self) -> None:
        """Log at the end of a boot which files have failed for a cause that is logged already."""
        for (cause, _), (first, *others) in self._files_by_cause.items():
            if more := sorted({*others} - {first}):
                get_logger().error(
                    "%s failed to load, and %s: %s",
                    cause,
                    "1 more file that imports it"
                    if len(more) == 1
                    else f"{len(more)} more files that import it",
                    ", ".join(more[:_MAX_LISTED]) + (", ..." if len(more) > _MAX_LISTED else ""),
                    extra=IS_FINDING,
                )

    def find_known_failure(self, file: str) -> BrokenFile | None:
        """Return the failure of a file without a last good version that is not to be tried.

        Args:
            file: `Route.effective_file`.
        """
        return next((one for one in self.untried if one.place == file and not one.kept), None)

    def record_setting_failure(self, text: str, *, fatal: bool = True) -> None:
        """Record a setting that does not fit the project: it stops a boot; a reload logs it.

        Args:
            fatal: False if the project is served all the same, and the boot logs it too.
        """
        kept = fatal and self.former is not None
        found = BrokenFile(SETTINGS, text, "", cause=SETTINGS, kept=kept)
        if fatal and self.former is None:
            self.fatal = found
        elif self.former is None or text not in [one.error for one in self.former.report.broken]:
            get_logger().error("%s", text)
        if found not in self.broken:
            self.broken.append(found)

    @property
    def fatal_message(self) -> str:
        """The message of the error that stops the boot."""
        if self.fatal is None:
            return ""
        if self.fatal.file == SETTINGS:
            return self.fatal.error
        return f"{self.fatal.file} cannot be used: {self.fatal.error}"

    def find_last_good_version(self, file: str) -> tuple[HandlerModule, Plan] | None:
        """Return the last module and plan of a route's file that loaded without an error.

        Args:
            file: `Route.effective_file`.
        """
        return self.former.good.get(file) if self.former is not None else None

    def build_report(self, table: RouteTable, *, middleware: int) -> BootReport:
        """Return the report of the boot, with the number of middleware entries."""
        return BootReport(
            routes=len(table.routes),
            middleware=middleware,
            broken=tuple(self.broken),
            skipped=table.skipped,
            notes=tuple(self.notes),
        )

    def read_or_keep_former(
        self, read: Callable[[], T], read_former: Callable[[BootFiles], T]
    ) -> T:
        """Read a boot file; if that fails during a reload, return its previous value."""
        count = len(self.broken)
        value = read()
        failed = len(self.broken) > count
        return read_former(self.former.boot_files) if failed and self.former is not None else value


def build_broken_file(file: str, error: BaseException, *, cause: str, kept: bool) -> BrokenFile:
    """Return the record of a failure; strip import frames from the traceback of the error."""
    error = error.with_traceback(_strip_internal_frames(error))
    text = "".join(traceback.format_exception(error))
    return BrokenFile(file, _format_error_line(error), scrub(text), cause=cause, kept=kept)


def _format_error_line(error: BaseException) -> str:
    # cut before the scrubbing, which looks at each character of a message of any length
    text = f"{type(error).__name__}: {error}"[: 2 * _MAX_ERROR]
    text = " ".join(scrub(text).split())
    return text if len(text) <= _MAX_ERROR else f"{text[:_MAX_ERROR]}..."


def find_failed_import_file(error: BaseException, root: str) -> str:
    """Return the innermost project file whose import raised, relative to the root; "" for none."""
    files = [
        frame.f_code.co_filename
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_name == "<module>"
    ]
    # such a file never ran, so it has no frame
    if isinstance(error, SyntaxError) and error.filename:
        files.append(error.filename)
    own = [file for file in files if file.startswith(os.path.join(root, ""))]
    return os.path.relpath(own[-1], root).replace(os.sep, "/") if own else ""


def _strip_internal_frames(error: BaseException) -> TracebackType | None:
    """The traceback without the frames of the import system and of this package."""
    frames: list[TracebackType] = []
    step = error.__traceback__
    while step is not None:
        frames.append(step)
        step = step.tb_next
    foreign = ("<frozen importlib", _OWN_PACKAGE)
    own = [step for step in frames if not step.tb_frame.f_code.co_filename.startswith(foreign)]
    kept: TracebackType | None = None
    for step in reversed(own or frames[:1]):
        kept = TracebackType(kept, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return kept
