"""The findings of `check`, and their output formats.

Pure functions from problems to lines, one for each format. The command decides what is a problem.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from treefold_cli._console.output import format_count

ENVIRONMENT = "environment"
"""In place of a file: what is wrong is a variable."""


class Kind(Enum):
    """Kind of a problem; the value is its tag in the text."""

    DUPLICATE = "dup"
    BROKEN = "broken"
    SKIPPED = "skipped"
    LAYER = "layer"
    LINT = "lint"
    NOTE = "note"
    DEPLOY = "deploy"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing `check` reports.

    Attributes:
        kind: the sort.
        message: one line.
        files: paths it concerns, from the application root, in visiting order.
        code: the name of the lint rule, if it is one.
        detail: more lines, such as a traceback; only JSON carries them.
        cause: the file to correct, for one that cannot be loaded.
        line: the line in the last file, from 1, where it is known.
        attack: of a finding of a deployment, what an attacker does with it.
        write: of such a finding, the line to write into the file.
        is_severe: False for such a finding that is only a warning.
    """

    kind: Kind
    message: str
    files: tuple[str, ...] = ()
    code: str = ""
    detail: str = ""
    cause: str = ""
    line: int | None = None
    attack: str = ""
    write: str = ""
    is_severe: bool = True

    def fails_check(self, *, strict: bool) -> bool:
        """Return True if it fails `check`; a skipped file or a mere warning only if strict."""
        return strict or (self.kind is not Kind.SKIPPED and self.is_severe)


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of one run.

    Attributes:
        problems: the findings, in the order of the report.
        routes: how many routes there are.
        strict: True if a skipped file is a failure too.
    """

    problems: Sequence[Problem]
    routes: int
    strict: bool = False

    @property
    def has_failed(self) -> bool:
        """True if the exit code is that of a failure."""
        return any(problem.fails_check(strict=self.strict) for problem in self.problems)


def render_report(report: Report, *, form: str) -> Iterator[str]:
    """Print a report.

    Args:
        report: the findings.
        form: one of `FORMATS`.

    Returns:
        The lines of the report.
    """
    return _RENDERERS[form](report)


def _render_text(report: Report) -> Iterator[str]:
    for problem in report.problems:
        if problem.kind is Kind.DEPLOY:
            yield from _render_deployment_problem(problem)
            continue
        if len(problem.files) == 1:
            yield f"[{problem.kind.value}] {problem.files[0]}: {problem.message}"
            continue
        yield f"[{problem.kind.value}] {problem.message}"
        for file in problem.files:
            yield f"  {file}"
    yield _render_summary(report)


def _render_deployment_problem(problem: Problem) -> Iterator[str]:
    severity = "severe" if problem.is_severe else "warning"
    yield f"[{problem.kind.value}] {problem.code} ({severity}): {problem.message}"
    yield f"  an attacker {problem.attack}"
    yield f"  write in {''.join(problem.files)}:"
    yield from (f"    {line}" for line in problem.write.splitlines())


def _render_summary(report: Report) -> str:
    counts = Counter(problem.kind for problem in report.problems)
    shown = [kind for kind in Kind if counts[kind] or kind in _ALWAYS_COUNTED]
    found = ", ".join(f"{counts[kind]} {_PLURAL[kind]}" for kind in shown)
    return f"{format_count(report.routes, 'route')}: {found}"


def _render_json(report: Report) -> Iterator[str]:
    records = [make_record(problem) for problem in report.problems]
    yield json.dumps({"ok": not report.has_failed, "routes": report.routes, "problems": records})


def make_record(problem: Problem) -> dict[str, Any]:
    record = asdict(problem) | {"kind": problem.kind.value}
    if problem.kind is not Kind.DEPLOY:
        record = {name: value for name, value in record.items() if name not in _OF_DEPLOYMENT}
    return record


_OF_DEPLOYMENT = ("attack", "write", "is_severe")


def _render_github(report: Report) -> Iterator[str]:
    # https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    for problem in report.problems:
        level = "error" if problem.fails_check(strict=report.strict) else "warning"
        names = f": {', '.join(problem.files)}" if len(problem.files) > 1 else ""
        text = f"[{problem.kind.value}] {problem.message}{names}"
        if problem.kind is Kind.DEPLOY:
            text += f" ({problem.code}); an attacker {problem.attack}; write: {problem.write}"
        message = _escape_workflow_command(text)
        # One annotation for each finding: that of a clash is at the file that is visited last.
        name = _escape_workflow_command("".join(problem.files[-1:]))
        name = name.replace(":", "%3A").replace(",", "%2C")
        line = f",line={problem.line}" if problem.line is not None else ""
        yield f"::{level} file={name}{line}::{message}" if name else f"::{level}::{message}"


def _escape_workflow_command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_ALWAYS_COUNTED = frozenset({Kind.DUPLICATE, Kind.BROKEN, Kind.SKIPPED})
_PLURAL: Mapping[Kind, str] = {
    Kind.DUPLICATE: "duplicate",
    Kind.BROKEN: "broken",
    Kind.SKIPPED: "skipped",
    Kind.LAYER: "of layers",
    Kind.LINT: "lint",
    Kind.NOTE: "note",
    Kind.DEPLOY: "of the deployment",
}
_RENDERERS: Mapping[str, Callable[[Report], Iterator[str]]] = {
    "text": _render_text,
    "json": _render_json,
    "github": _render_github,
}
FORMATS = tuple(_RENDERERS)
"""The formats there are."""
