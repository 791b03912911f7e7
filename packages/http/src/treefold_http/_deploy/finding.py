"""The findings of `check --deploy` as data: a kind for each sort of mistake, a finding for a case.

Nothing is looked for here, and nothing is printed. Each subject of the room declares its kinds as
constants, a sentence each, and yields findings of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["severe", "warning"]

SEVERE: Severity = "severe"
"""By itself it lets an attacker in, or to data: `serve` logs it, and `check --deploy` fails."""
WARNING: Severity = "warning"


@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of mistake.

    Attributes:
        id: its name in reports and in the setting `silenced`.
        severity: `severe` or `warning`.
        title: the mistake, for the page of the documentation.
        attack: what an attacker does with it.
    """

    id: str
    severity: Severity
    title: str
    attack: str

    def make_finding(self, file: str, text: str, write: str) -> Finding:
        """Return a finding of this kind; arguments as the attributes of `Finding`."""
        return Finding(self, file, text, write)


def make_kinds(table: str) -> tuple[Kind, ...]:
    """Return the kinds of a table, one for each `severe id: title; an attacker ...`.

    A line that begins with neither `severe` nor `warning` goes on with the line before.
    """
    entries = re.split(r"\n\s*(?=severe |warning )", table)
    return tuple(_parse_kind(" ".join(entry.split())) for entry in entries if entry.strip())


def _parse_kind(sentence: str) -> Kind:
    severity, _, rest = sentence.partition(" ")
    id, _, rest = rest.partition(": ")
    title, _, attack = rest.partition("; an attacker ")
    return Kind(id, SEVERE if severity == SEVERE else WARNING, title, attack)


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake of one project.

    Attributes:
        kind: its sort.
        file: the file to change, below the application root, or `environment`.
        text: the mistake, in one line.
        write: the line to write there.
    """

    kind: Kind
    file: str
    text: str
    write: str

    @property
    def names(self) -> tuple[str, str]:
        """The names by which the setting `silenced` means it: its id, and its id with its file."""
        return self.kind.id, f"{self.kind.id} {self.file}"
