"""What a test is told of an answer that the contract of its route does not declare.

Without `treefold_contract`: the names are public in applications that have no lock.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal, TypeAlias

from treefold_http._runtime.boot_report import TreefoldError

ContractMode: TypeAlias = Literal["strict", "warn", "off"]
Cause: TypeAlias = Literal["status", "media type", "body", "event", "header field", "message"]
CONTRACT_MODES: tuple[ContractMode, ...] = ("strict", "warn", "off")
PLUGIN = "_treefold_pytest"


class ContractError(AssertionError):
    """An answer or a message that the contract of its route does not declare."""


class ContractWarning(UserWarning):
    """As `ContractError`, with `contract="warn"`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between an answer and the facts of its route.

    Attributes:
        route: the method and path of the route, such as `GET /v1/user/{id}`.
        status: the status of the answer; 101 for a message of a socket.
        cause: the part of the answer that differs.
        place: where in that part, or the name of a header field; empty for the whole.
        declared: what the contract declares there.
        got: what was sent, secrets masked.
        handler: file below `Api/` and line of the handler.
        advice: what to change.
    """

    route: str
    status: int
    cause: Cause
    place: str
    declared: str
    got: str
    handler: str
    advice: str

    def __str__(self) -> str:
        """Return the text for a person: one line, then a line for each attribute."""
        rows = (
            ("at", self.place),
            ("declared", self.declared),
            ("got", self.got),
            ("handler", self.handler),
            ("change", self.advice),
        )
        lines = [f"\n  {name + ':':<9} {text}" for name, text in rows if text]
        return f"{self.route} {self._summarize()}" + "".join(lines)

    def _summarize(self) -> str:
        match self.cause:
            case "message":
                return "sent a message that is not declared"
            case "header field":
                return f"answered {self.status} with header fields that are not as declared"
            case "event":
                return f"answered {self.status} with an event that is not declared"
            case cause:
                return f"answered {self.status} with a {cause} that is not declared"


def choose_contract_mode(given: ContractMode | None) -> ContractMode:
    """Return the mode of a client: the given one, or that of the pytest plugin.

    Raises:
        TreefoldError: for any other word.
    """
    mode: ContractMode = given or getattr(sys.modules.get(PLUGIN), "contract_mode", "off")
    if mode not in CONTRACT_MODES:
        raise TreefoldError(f"contract must be 'strict', 'warn' or 'off', got {mode!r}")
    return mode
