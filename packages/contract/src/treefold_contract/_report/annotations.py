"""Findings where reviews happen: as annotations of GitHub Actions, and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treefold_contract._report.reports import (
    describe_change,
    find_file,
    shorten,
    summarize,
)
from treefold_contract._rules.findings import Finding
from treefold_contract._rules.rule_table import Verdict

LEVELS: Mapping[Verdict, str] = {"breaking": "error", "weaker": "error", "warning": "warning"}
ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"}


def format_github(
    findings: Sequence[Finding],
    *,
    name: str = "routes.lock",
    files: Mapping[str, str] | None = None,
) -> str:
    """Return findings as workflow commands, which GitHub shows at the lines of a change.

    Args:
        findings: what was found, the gravest first.
        name: the file that lines are in.
        files: the file and line of each route, by its title such as `GET /v1/user`.
    """
    lines = [_format_command(each, name, files or {}) for each in findings]
    return "\n".join([*lines, summarize(findings)])


def _format_command(finding: Finding, name: str, files: Mapping[str, str]) -> str:
    level = "notice" if finding.accepted else LEVELS.get(finding.verdict, "notice")
    file, _, line = (find_file(finding, files) or f"{name}:{finding.line or 1}").rpartition(":")
    place = f"file={_escape(file)},line={line},title={_escape(finding.rule)}"
    words = [finding.place, describe_change(finding), finding.advice]
    message = "; ".join(filter(None, words)).replace("%", "%25").replace("\n", "%0A")
    return f"::{level} {place}::{message}"


def _escape(text: str) -> str:
    return "".join(ESCAPES.get(sign, sign) for sign in text)


def format_markdown(findings: Sequence[Finding], *, files: Mapping[str, str] | None = None) -> str:
    """Return findings as a table of Markdown, for a comment on a change."""
    lines = [f"**{summarize(findings)}**"]
    if findings:
        lines += ["", "| Verdict | Where | What | Instead |", "|---|---|---|---|"]
    for each in findings:
        verdict = f"accepted: {each.accepted}" if each.accepted else each.verdict
        where = [f"`{each.place}`", find_file(each, files or {})]
        if len(each.places) > 1:
            where.append(f"and {len(each.places) - 1} more")
        cells = [
            f"{verdict} `{each.rule}`",
            "<br>".join(filter(None, where)),
            describe_change(each) and f"`{shorten(describe_change(each), 200)}`",
            "" if each.accepted else each.advice,
        ]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)
