"""The two forms of findings: ten lines for people, and JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate

from treefold_contract._report.accepted import Acceptance
from treefold_contract._rules.findings import Finding
from treefold_contract._rules.rule_table import GRAVITY, Verdict

MOST_LINES = 10
WORDS: dict[Verdict, tuple[str, str]] = {
    "breaking": ("breaking change", "breaking changes"),
    "weaker": ("change that weakens security", "changes that weaken security"),
    "warning": ("warning", "warnings"),
    "source": ("change of generated clients", "changes of generated clients"),
    "compatible": ("compatible change", "compatible changes"),
}


def format_text(
    findings: Sequence[Finding],
    stale: Sequence[Acceptance] = (),
    *,
    name: str = "routes.lock",
    files: Mapping[str, str] | None = None,
    shows_all: bool = False,
) -> str:
    """Return findings as text: the gravest in full, all others as a number.

    Args:
        findings: what was found, the gravest first.
        stale: accepted findings that accept nothing.
        name: the file that lines are in.
        files: the file and line of each route, by its title such as `GET /v1/user`.
        shows_all: True for all findings, however many lines they take.
    """
    ordered = sorted(findings, key=lambda each: bool(each.accepted))
    blocks = [finding_lines(finding, name, files or {}) for finding in ordered]
    room = MOST_LINES - 1 - bool(stale)
    shown = len(blocks)
    if not shows_all and sum(map(len, blocks)) > room:
        # one line is kept for the number of those that are not shown
        sizes = accumulate(map(len, blocks))
        shown = sum(size < room for size in sizes)
    lines = [summarize(findings), *(line for block in blocks[:shown] for line in block)]
    if hidden := len(blocks) - shown:
        lines.append(f"and {hidden} more; --all shows them")
    if stale:
        lines.append(
            f"{len(stale)} accepted, of which there is no change here, can be deleted:"
            f" {', '.join(each.fingerprint for each in stale)}"
        )
    return "\n".join(lines)


def summarize(findings: Sequence[Finding]) -> str:
    """Return one line with the number of findings by verdict."""
    if not findings:
        return "The contract did not change"
    rest = [finding for finding in findings if not finding.is_unused]
    counts = Counter(finding.verdict for finding in rest if not finding.accepted)
    parts = [f"{counts[each]} {WORDS[each][counts[each] > 1]}" for each in GRAVITY if counts[each]]
    if accepted := sum(bool(finding.accepted) for finding in rest):
        parts.append(f"{accepted} accepted")
    if unused := len(findings) - len(rest):
        parts.append(f"{unused} {'note' if unused == 1 else 'notes'}")
    return ", ".join(parts)


def finding_lines(finding: Finding, name: str, files: Mapping[str, str]) -> list[str]:
    """Return the lines of one finding: what and where, the change, and what to do instead."""
    others = [f"{len(finding.places)} places"] if len(finding.places) > 1 else []
    reach = ", ".join([*others, *finding.versions])
    verdict: str = "accepted" if finding.accepted else finding.verdict
    if finding.is_unused:
        verdict, reach = "note", ", ".join(filter(None, (reach, "no caller sent this")))
    first = f"{verdict} {finding.rule}: {finding.place}" + (f" ({reach})" if reach else "")
    if finding.accepted or finding.verdict == "compatible":
        return [first]
    parts = [
        describe_change(finding),
        f"{name}:{finding.line}" if finding.line else "",
        find_file(finding, files),
    ]
    advice = f"{finding.advice}, or accept {finding.fingerprint}" if finding.advice else ""
    lines = [first, "  " + "; ".join(filter(None, parts)), f"  instead: {advice}"]
    return lines if advice else lines[:2]


def describe_change(finding: Finding) -> str:
    """Return what was and is, and a value that shows the difference; empty if neither is known."""
    parts = [f"{finding.old} -> {finding.new}"] if finding.old or finding.new else []
    if finding.old and not finding.new:
        parts = [f"was {finding.old}"]
    elif finding.new and not finding.old:
        parts = [f"now {finding.new}"]
    if finding.witness:
        parts.append(f"shown by {shorten(finding.witness)}")
    return "; ".join(parts)


def find_file(finding: Finding, files: Mapping[str, str]) -> str:
    """Return the file and line of the route of a finding; empty if it is not known."""
    titles = (" ".join(place.split(" ")[:2]) for place in finding.places)
    return next((files[title] for title in titles if title in files), "")


def shorten(text: str, most: int = 80) -> str:
    """Return a text that fits a line."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def format_json(
    findings: Sequence[Finding],
    stale: Sequence[Acceptance] = (),
    *,
    files: Mapping[str, str] | None = None,
) -> str:
    """Return findings as JSON: all attributes, the fingerprint, and the number by verdict.

    Args:
        findings, stale, files: as for `format_text`.
    """
    counts = Counter(finding.verdict for finding in findings if not finding.accepted)
    report = {
        "summary": {verdict: counts[verdict] for verdict in GRAVITY},
        "findings": [
            {
                **asdict(each),
                "fingerprint": each.fingerprint,
                "fails": each.is_failure,
                "file": find_file(each, files or {}),
            }
            for each in findings
        ],
        "stale": [asdict(each) for each in stale],
    }
    return json.dumps(report, indent=2, ensure_ascii=False)
