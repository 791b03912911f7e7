"""Findings of two locks, judged by the settings of a project and by what it has accepted."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treefold_cli._console.errors import CommandError, translate_to_command_error
from treefold_cli._contract.lock_file import ACCEPTED
from treefold_router import RouterError, RouteTable

if TYPE_CHECKING:
    from treefold_contract import Acceptance, Finding, Lock, Usage, Verdict

_HANDLER = re.compile(r"^(?:async +)?def +handler\b|^handler\b")


@dataclass(frozen=True, slots=True)
class Judged:
    """Findings, and lines of accepted findings that accept nothing here."""

    findings: "list[Finding]"
    stale: "list[Acceptance]"


def judge_locks(app_dir: str, old: "Lock", new: "Lock", usage: "Usage | None" = None) -> Judged:
    """Return what changed from one lock to another.

    Args:
        usage: what callers sent; what none of them sent is a note.

    Raises:
        CommandError: the settings or the file of accepted findings cannot be read, or the locks
            were written by different rules.
    """
    from treefold_contract import (
        LockError,
        apply_accepted,
        apply_usage,
        diff_locks,
        read_accepted,
    )

    settings = load_contract_settings(app_dir)
    path = Path(app_dir, ACCEPTED)
    with translate_to_command_error(LockError, OSError, UnicodeDecodeError):
        accepted = read_accepted(path.read_text(encoding="utf-8")) if path.is_file() else []
        found = diff_locks(old, new, min_notice_days=settings.min_notice_days)
    found = _change_severity(found, settings.severity)
    if usage is not None:
        found = apply_usage(found, usage)
    findings, stale = apply_accepted(found, accepted)
    return Judged(findings, stale)


def load_contract_settings(app_dir: str) -> Any:
    """Return the settings `[contract]` of a project.

    Raises:
        CommandError: the settings cannot be read.
    """
    from treefold_http import Settings, TreefoldError

    with translate_to_command_error(TreefoldError):
        return Settings.load(Path(app_dir)).contract


def _change_severity(
    findings: "Sequence[Finding]", severity: "Mapping[str, Verdict]"
) -> "list[Finding]":
    from treefold_contract import GRAVITY, RULES

    for rule in severity:
        if rule not in RULES:
            near = difflib.get_close_matches(rule, RULES, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise CommandError(
                f"Setting contract.severity has no rule {rule!r};"
                f" {hint}see: treefold docs contract-rules"
            )
    changed = [replace(each, verdict=severity.get(each.rule, each.verdict)) for each in findings]
    return sorted(changed, key=lambda each: GRAVITY.index(each.verdict))


def locate_handlers(app_dir: str, titles: set[str]) -> dict[str, str]:
    """Return the file and line of the handlers of some routes; no module is imported.

    Args:
        app_dir: the application root.
        titles: methods and paths, such as `GET /v1/user/{id}`.
    """
    api = Path(app_dir, "Api")
    try:
        table = RouteTable.scan(api)
    except (RouterError, OSError):  # findings are shown without files
        return {}
    found: dict[str, str] = {}
    for route in table.routes:
        title = f"{route.method} {route.template}"
        if title in titles:
            found[title] = f"Api/{route.file}:{_find_line(api / route.file)}"
    return found


def _find_line(file: Path) -> int:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return 1
    return next((number for number, line in enumerate(lines, 1) if _HANDLER.match(line)), 1)
