"""The findings of `check`, and their output formats.

Pure functions from problems to lines, one for each format. The command decides what is a problem.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum


class Kind(Enum):
    """Kind of a problem; the value is its tag in the text."""

    DUPLICATE = "dup"
    BROKEN = "broken"
    SKIPPED = "skipped"
    LINT = "lint"
    NOTE = "note"

    @property
    def fails(self) -> bool:
        """True if a problem of this kind makes `check` fail; a skipped file never does."""
        return self is not Kind.SKIPPED


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing `check` reports.

    Attributes:
        kind: the sort.
        message: one line.
        files: paths it concerns, from the application root, in visiting order.
        code: the name of the lint rule, if it is one.
        detail: more lines, such as a traceback; only JSON carries them.
    """

    kind: Kind
    message: str
    files: tuple[str, ...] = ()
    code: str = ""
    detail: str = ""


def render(problems: Sequence[Problem], *, form: str, routes: int) -> Iterator[str]:
    """Print `problems`.

    Args:
        problems: the findings, in the order of the report.
        form: one of `FORMATS`.
        routes: how many routes there are.

    Returns:
        The lines of the report.
    """
    return _RENDERERS[form](problems, routes)


def _render_text(problems: Sequence[Problem], routes: int) -> Iterator[str]:
    for problem in problems:
        if len(problem.files) == 1:
            yield f"[{problem.kind.value}] {problem.files[0]}: {problem.message}"
            continue
        yield f"[{problem.kind.value}] {problem.message}"
        for file in problem.files:
            yield f"  {file}"
    yield _summary_line(problems, routes)


def _summary_line(problems: Sequence[Problem], routes: int) -> str:
    counts = Counter(problem.kind for problem in problems)
    shown = [kind for kind in Kind if counts[kind] or kind in _ALWAYS_COUNTED]
    return f"{routes} routes: " + ", ".join(f"{counts[kind]} {_PLURAL[kind]}" for kind in shown)


def _render_json(problems: Sequence[Problem], routes: int) -> Iterator[str]:
    records = [asdict(problem) | {"kind": problem.kind.value} for problem in problems]
    failed = any(problem.kind.fails for problem in problems)
    yield json.dumps({"ok": not failed, "routes": routes, "problems": records})


def _render_github(problems: Sequence[Problem], _routes: int) -> Iterator[str]:
    # https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    for problem in problems:
        level = "error" if problem.kind.fails else "warning"
        message = _escape_command(f"[{problem.kind.value}] {problem.message}")
        for file in problem.files or ("",):
            name = _escape_command(file).replace(":", "%3A").replace(",", "%2C")
            yield f"::{level} file={name}::{message}" if name else f"::{level}::{message}"


def _escape_command(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_ALWAYS_COUNTED = frozenset({Kind.DUPLICATE, Kind.BROKEN, Kind.SKIPPED})
_PLURAL: Mapping[Kind, str] = {
    Kind.DUPLICATE: "duplicate",
    Kind.BROKEN: "broken",
    Kind.SKIPPED: "skipped",
    Kind.LINT: "lint",
    Kind.NOTE: "note",
}
_RENDERERS: Mapping[str, Callable[[Sequence[Problem], int], Iterator[str]]] = {
    "text": _render_text,
    "json": _render_json,
    "github": _render_github,
}
FORMATS = tuple(_RENDERERS)
"""The formats there are."""
