"""Responses held against the oracle.

A `Judge` sees all responses of one arrangement, because some leaks show only beside another
response: a cookie, a value of a session or a request id that two clients get.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, cast

from arrangements.arrangement import Answer, Arrangement, Echo, Guard
from arrangements.clients import Client, is_refused_client
from arrangements.messages import Received, Sent
from arrangements.oracle import Due, decide, must_be_private
from arrangements.targets import HANDLERS, Target
from arrangements.traffic import Step


class Kind(StrEnum):
    """What is wrong with a response."""

    LEAK = "a response meant for another"
    PAST = "past a guard"
    SOCKET = "a socket opened past a guard"
    FIELD = "a field of another's response"
    COOKIE = "a cookie of another client"
    SHAREABLE = "a response that any cache may give to others"
    DENIED = "refused without a reason"
    FAILED = "failed"
    HANG = "no response"
    BOOTED = "booted with a mistake"


SILENT = frozenset(Kind) - {Kind.DENIED, Kind.FAILED, Kind.HANG}
"""Kinds that nobody notices."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One wrong response."""

    kind: Kind
    text: str


_NO_BODY = gzip.compress(b"")
_NAMES = {
    Target.ROUTE: "thing",
    Target.HEAD: "thing",
    Target.DEFAULT: "thing",
    Target.OPEN: "open",
    Target.POST: "post",
    Target.STREAM: "stream",
    Target.SOCKET: "live",
    Target.MOUNT: "account",
    Target.INNER: "inner",
}
_NAMED = frozenset({Target.MOUNT, Target.INNER}) | HANDLERS
_SHARED = HANDLERS - {Target.SOCKET, Target.STREAM}


class Judge:
    """Judges the responses of one arrangement.

    Attributes:
        findings: what is wrong.
        hits: responses of a cache: the handler did not run for them.
    """

    def __init__(self, arrangement: Arrangement, *, is_socket_named: bool) -> None:
        self.findings: list[Finding] = []
        self.hits = 0
        self._arrangement = arrangement
        self._is_socket_named = is_socket_named
        self._made: set[str] = set()
        self._owners: dict[str, str] = {}

    def judge(
        self, step: Step, sent: Sent, received: Received, *, jar: str, is_late: bool, limits: Limits
    ) -> None:
        """Judge one response.

        Args:
            jar: whose cookies were sent.
            is_late: after the revocation.
        """
        if "gzip" in received.values("content-encoding") and step.client.takes_gzip:
            received = replace(received, body=gzip.decompress(received.body or _NO_BODY))
        due = decide(self._arrangement, step.client, step.target, is_late=is_late)
        exchange = _Exchange(step, sent, received, jar, due)
        self._judge_fields(exchange)
        if received.status >= 500:
            self._find(Kind.FAILED, exchange)
        elif received.status < 400:
            if due.refusals or limits.must_refuse:
                self._judge_unrefused(exchange, limits)
            else:
                self._judge_body(exchange)
        else:
            allowed = set(due.refusals)
            allowed |= {429} if limits.may_refuse else set()
            if step.is_spelled:  # it may lead elsewhere, past the same guards
                allowed |= {400, 403, 404} if is_refused_client(step.client) else {400, 404}
            if received.status not in allowed:
                self._find(Kind.DENIED, exchange, f"not one of {sorted(allowed)}")

    def _judge_unrefused(self, exchange: _Exchange, limits: Limits) -> None:
        due, target = exchange.due, exchange.step.target
        if not due.refusals:
            self._find(Kind.PAST, exchange, "above its limit")
        elif due.may_be_late:
            self._judge_body(exchange)
        elif target is Target.SOCKET:
            is_deaf = self._arrangement.guard in (Guard.FUNCTION, Guard.HTTP)
            if not (is_deaf and self._is_socket_named and due.refusals == frozenset({403})):
                self._find(Kind.SOCKET, exchange, f"due is {sorted(due.refusals)}")
        elif target is Target.UNKNOWN and due.refusals == frozenset({404}):
            self._find(Kind.LEAK, exchange, "nothing is there")
        else:
            self._find(Kind.PAST, exchange, f"due is {sorted(due.refusals)}")
        if limits.must_refuse and due.refusals:
            self._find(Kind.PAST, exchange, "above its limit")

    def _judge_fields(self, exchange: _Exchange) -> None:
        received, client = exchange.received, exchange.step.client
        for stamp in received.values("x-stamp"):
            if stamp != client.tag:
                self._find(Kind.FIELD, exchange, f"x-stamp: {stamp}")
        if "gzip" in received.values("content-encoding") and not client.takes_gzip:
            self._find(Kind.FIELD, exchange, "content-encoding: gzip")
        for who in received.values("x-who"):
            if who != exchange.due.who:
                self._find(Kind.FIELD, exchange, f"x-who: {who}")
        for cookie in received.values("set-cookie"):
            value = cookie.partition(";")[0].partition("=")[2]
            if value and self._owners.setdefault(value, exchange.jar) != exchange.jar:
                self._find(Kind.COOKIE, exchange, f"of {self._owners[value]}")
        for identity in received.values("x-request-id"):
            if identity in self._owners:
                self._find(Kind.FIELD, exchange, "x-request-id of another response")
            self._owners[identity] = exchange.jar

    def _judge_body(self, exchange: _Exchange) -> None:
        target, body = exchange.step.target, exchange.received.body
        if must_be_private(self._arrangement, target):
            self._judge_privacy(exchange)
        if target is Target.HEAD or exchange.received.status == 304:
            if body:
                self._find(Kind.FAILED, exchange, "a body where there is none")
        elif target not in _NAMED:
            if not _is_document(target, body):
                self._find(Kind.LEAK, exchange, f"not the {target}")
        else:
            self._judge_named_body(exchange)

    def _judge_privacy(self, exchange: _Exchange) -> None:
        received = exchange.received
        words = ",".join(received.values("cache-control")).replace(" ", "").split(",")
        varying = ",".join(received.values("vary")).lower().replace(" ", "").split(",")
        if not {"private", "no-store"} & set(words):
            self._find(Kind.SHAREABLE, exchange, f"cache-control is {words}")
        if "x-api-key" not in varying and "*" not in varying:
            self._find(Kind.SHAREABLE, exchange, f"vary is {varying}")

    def _judge_named_body(self, exchange: _Exchange) -> None:
        step, arrangement = exchange.step, self._arrangement
        body = _load(exchange.received.body)
        if body is None:
            return self._find(Kind.LEAK, exchange, "not the JSON of a handler")
        made = body.get("made")
        if made is not None:
            self.hits += made in self._made
            self._made.add(made)
        expected: dict[str, Any] = {"target": _NAMES[step.target], "who": exchange.due.who}
        if step.target in HANDLERS - {Target.SOCKET}:
            expected |= self._expect_echoes(exchange)
        if arrangement.answer is Answer.SHARED and step.target in _SHARED:
            expected = {"target": "any"}
        for name, value in expected.items():
            if body.get(name) != value:
                return self._find(Kind.LEAK, exchange, f"{name} is not {value!r}")
        owner = body.get("owner")
        if owner is not None and self._owners.setdefault(owner, exchange.jar) != exchange.jar:
            self._find(Kind.LEAK, exchange, f"the session of {self._owners[owner]}")
        return None

    def _expect_echoes(self, exchange: _Exchange) -> dict[str, Any]:
        step, sent, echoes = exchange.step, exchange.sent, self._arrangement.echoes
        expected: dict[str, Any] = {}
        if Echo.PATH in echoes:
            expected["path"] = sent.path
        if Echo.QUERY in echoes:
            pairs = [each.partition("=") for each in sent.query.split("&") if each]
            expected["query"] = [[name, value] for name, _, value in pairs]
        if Echo.BODY in echoes:
            expected["sent"] = sent.body.decode()
        if Echo.GREETING in echoes:
            expected["greeting"] = f"hello {exchange.due.who}"
        if Echo.TAG in echoes:
            expected["tag"] = step.client.tag
        return expected

    def _find(self, kind: Kind, exchange: _Exchange, detail: str = "") -> None:
        self.findings.append(Finding(kind, f"{exchange}{f' ({detail})' if detail else ''}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a limit may do with one request."""

    must_refuse: bool = False
    may_refuse: bool = False


@dataclass(frozen=True, slots=True)
class _Exchange:
    step: Step
    sent: Sent
    received: Received
    jar: str
    due: Due

    def __str__(self) -> str:
        client: Client = self.step.client
        return (
            f"{client.name} from {client.address}: {self.sent.method} {self.sent.target} ->"
            f" {self.received.status} {self.received.body[:120]!r}"
        )


def _is_document(target: Target, body: bytes) -> bool:
    match target:
        case Target.STATIC:
            return body == b"a page of the folder\n"
        case Target.DOCS:
            return b"<html" in body.lower()
        case Target.OPENAPI:
            return "openapi" in (_load(body) or {})
        case Target.PROBE:
            return _load(body) == {"status": "alive"}
        case _:
            return b"http_requests" in body


def _load(body: bytes) -> dict[str, Any] | None:
    try:
        loaded = json.loads(body)
    except ValueError:
        return None
    return cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else None
