"""Accepted findings: one line each in `contract-accepted.txt`, in the commit of the change.

    3f2a91c07be4 field-removed GET /v1/user 200 json .mail # no client calls it, see #12

The fingerprint is made of the rule, the cause and the new text, so that another wording of a
message, or another version of this package, accepts no more and no less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from treefold_contract._errors import LockError
from treefold_contract._rules.findings import Finding

LINE = re.compile(r"([0-9a-f]{12}) (\S+) (.+?) # (.+)")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """An accepted finding: its fingerprint, what it was for readers, and the reason."""

    fingerprint: str
    rule: str
    place: str
    reason: str


def read_accepted(text: str) -> list[Acceptance]:
    """Return the accepted findings of a file; empty lines and lines with `#` first are none.

    Raises:
        LockError: a line is not an accepted finding.
    """
    found: list[Acceptance] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = LINE.fullmatch(line.strip())
        if parts is None:
            raise LockError(
                f"Line {number} must be 'FINGERPRINT RULE PLACE # REASON', got {line!r}"
            )
        found.append(Acceptance(*parts.groups()))
    return found


def write_acceptance(finding: Finding, reason: str) -> str:
    """Return the line that accepts a finding.

    Raises:
        LockError: the reason is empty, or has several lines.
    """
    if not reason.strip() or len(reason.splitlines()) > 1:
        raise LockError(f"Reason must be one line, got {reason!r}")
    return f"{finding.fingerprint} {finding.rule} {finding.place} # {reason.strip()}"


def apply_accepted(
    findings: Iterable[Finding], accepted: Sequence[Acceptance]
) -> tuple[list[Finding], list[Acceptance]]:
    """Return the findings with the reasons that accept them, and lines that accept nothing.

    A line accepts nothing once the lock before has the change: it can be deleted.
    """
    reasons = {each.fingerprint: each.reason for each in accepted}
    marked = [replace(each, accepted=reasons.get(each.fingerprint, "")) for each in findings]
    used = {each.fingerprint for each in marked}
    return marked, [each for each in accepted if each.fingerprint not in used]
