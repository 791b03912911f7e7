"""The report of a boot, and the errors that stop one.

The text of a `TreefoldError` is one line with the wrong value and the remedy.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from treefold_router import Skipped


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that could not be loaded.

    Attributes:
        file: its path below the application root's `Api/`, or the boot file's name.
        error: the exception in one line.
        traceback: the formatted traceback.
        cause: the file to fix, below the application root: `file` itself or a module it imports.
        kept: True if the previous version of the file still serves, after a reload.
        effective_file: `file` as in a copy of the version that it fails in, where that inherits it
            from another one; else empty.
    """

    file: str
    error: str
    traceback: str
    cause: str = ""
    kept: bool = False
    effective_file: str = ""

    @property
    def place(self) -> str:
        """The path that a copy of its version would have: `file` unless it is inherited."""
        return self.effective_file or self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class BootReport:
    """The result of a boot: counts, broken files, skipped files with their reasons."""

    routes: int
    middleware: int
    broken: tuple[BrokenFile, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()


class TreefoldError(Exception):
    """Base of the errors that tell a developer what to change; `str()` is one line."""


class BootError(TreefoldError):
    """The project cannot be served as it is: a missing folder or a boot file that fails.

    Attributes:
        report: the report of the boot up to its failure; None if it could not begin.
    """

    def __init__(self, message: str, report: BootReport | None = None) -> None:
        super().__init__(message)
        self.report = report


class SettingsError(TreefoldError):
    """A setting has an unknown name or a value of the wrong type."""


def import_extra(module: str, message: str) -> Any:
    """Return a library that comes with an extra, imported at its first use.

    Raises:
        TreefoldError: with the message, if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TreefoldError(message) from error
