"""Missing items that extensions report, such as unapplied migrations, and their output.

Used at the start of `dev` and after a reload, by `check --strict`, `doctor` and `serve`. The
meaning of an item is known to its extension only.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

from treefold_cli._console.errors import CommandError, format_error_line
from treefold_cli._console.output import print_error
from treefold_http import Application
from treefold_http.extensions import apply, load_models, pending, release
from treefold_logging import get_logger

_log = get_logger("dev")
_CONCERNED = ("Models/", "Models.py", "migrations/")
"""Files whose change may alter the missing items."""


@dataclass(frozen=True, slots=True)
class Missing:
    """One item that an extension reports as missing.

    Attributes:
        text: description of the item.
        advice: the command that provides it; it may be empty.
    """

    text: str
    advice: str = ""


def find_pending_steps(app: Application) -> list[Missing]:
    """Ask the extensions of an application with loaded models for missing items.

    An extension that cannot answer, for instance without its database, is itself reported.
    """
    try:
        return [Missing(one.text, one.advice) for one in pending(app)]
    except Exception as error:
        return [Missing(f"pending steps cannot be read: {format_error_line(error)}")]


def load_models_and_find_pending(app: Application) -> list[Missing]:
    """Load the models of an application, find missing items, and release resources.

    Raises:
        BootError: the models cannot be loaded.
    """
    load_models(app)
    try:
        return find_pending_steps(app)
    finally:
        _release_extensions(app)


def require_nothing_pending(app: Application) -> None:
    """Print the pending steps, such as migrations to apply; raise `CommandError` if there are any.

    Raises:
        CommandError: a step is pending.
        BootError: the models cannot be loaded.
    """
    missing = load_models_and_find_pending(app)
    for one in missing:
        print_error(f"pending: {one.text} ({one.advice})" if one.advice else f"pending: {one.text}")
    if missing:
        raise CommandError(f"Not started: {len(missing)} pending, listed above; apply them first")


class PendingReport:
    """Logs missing items such as unapplied migrations in one line, or applies them, during `dev`.

    Args:
        app: the application, booted.
        applies: apply the items that can be applied, instead of listing them.
    """

    def __init__(self, app: Application, *, applies: bool) -> None:
        self._app = app
        self._applies = applies
        self._last_line = ""

    def report_at_start(self) -> None:
        """Report before the server starts; connections that this opened are closed.

        Raises:
            CommandError: a missing item cannot be applied.
        """
        try:
            self._apply_and_log(raises_errors=True)
        finally:
            _release_extensions(self._app)

    async def report_after_reload(self, files: Collection[str]) -> None:
        """Report in a worker thread if a changed file may alter the missing items."""
        if any(file.startswith(_CONCERNED) for file in files):
            await asyncio.to_thread(self._apply_and_log)

    def _apply_and_log(self, *, raises_errors: bool = False) -> None:
        if self._applies:
            try:
                for line in apply(self._app) or ():
                    _log.info("%s", line)
            except Exception as error:
                if raises_errors:
                    raise CommandError(format_error_line(error)) from error
                _log.error("not applied: %s", format_error_line(error))
        missing = find_pending_steps(self._app)
        line = _format_pending_line(missing, offers_apply=not self._applies)
        if line and line != self._last_line:
            _log.warning("%s", line)
        elif self._last_line and not line:
            _log.info("nothing is pending any more")
        self._last_line = line


def _release_extensions(app: Application) -> None:
    if app.installed:
        asyncio.run(release(app))


def _format_pending_line(missing: Collection[Missing], *, offers_apply: bool) -> str:
    if not missing:
        return ""
    texts = "; ".join(one.text for one in missing)
    commands = [f"'{advice}'" for advice in dict.fromkeys(one.advice for one in missing) if advice]
    if not commands:
        return f"pending: {texts}"
    if offers_apply:
        commands.append("start with 'treefold dev --migrate'")
    *first, last = commands
    named = f"{', '.join(first)}, or {last}" if first else last
    return f"pending: {texts} (run {named})"
