"""Files that failed to load: their names for a reader, and the refusal of `serve`.

Reads the report of a boot. Which files are broken is decided by the boot itself.
"""

import contextlib
import re
from collections.abc import Generator
from typing import TYPE_CHECKING

from treefold_cli._console.errors import CommandError
from treefold_cli._console.output import format_count
from treefold_logging import flush, get_logger
from treefold_router import RouteTable

if TYPE_CHECKING:
    import logging

    from treefold_http import Application, BrokenFile


def format_broken_path(broken: "BrokenFile", table: RouteTable) -> str:
    """Return the path of a broken file from the application root; handlers lie below `Api/`."""
    is_handler = any(route.file == broken.file for route in table.routes)
    return f"Api/{broken.file}" if is_handler else broken.file


def find_failing_line(broken: "BrokenFile", file: str) -> int | None:
    """Return the line of a file, named from the application root, at which its loading failed."""
    found = re.findall(rf'/{re.escape(file)}", line (\d+)', broken.traceback)
    return int(found[-1]) if found else None


@contextlib.contextmanager
def hide_findings_from_log() -> Generator[None, None, None]:
    """Leave out of the log, during a boot, the findings that its report repeats."""

    def is_not_finding(record: "logging.LogRecord") -> bool:
        return not getattr(record, "is_finding", False)

    log = get_logger()
    log.addFilter(is_not_finding)
    try:
        yield
    finally:
        log.removeFilter(is_not_finding)


def require_no_broken_files(app: "Application") -> None:
    """Raise `CommandError` if a file of a booted application failed to load, as the log says.

    Raises:
        CommandError: a file failed to load.
    """
    if app.report.broken:
        flush()  # the log of the boot comes first
        raise CommandError(describe_refused_start(len(app.report.broken)))


def describe_refused_start(broken_file_count: int) -> str:
    """Return the error of a server that refuses to start with broken files."""
    files = format_count(broken_file_count, "file")
    return f"Not started: {files} failed to load, listed above; correct them or add --allow-broken"
