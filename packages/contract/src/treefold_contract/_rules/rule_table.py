"""The table of all rules, by the number of their row.

A verdict is B (breaking), F (compatible, but less secure), W (warning), S (source: generated
clients change, requests and answers do not), C (compatible) or empty (cannot happen there). A law
rule is decided by the relation of the two types, and the table says what follows from the usual
change; the verdicts of the other rules are those of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["breaking", "weaker", "warning", "source", "compatible"]

VERDICTS: dict[str, Verdict] = {
    "B": "breaking",
    "F": "weaker",
    "W": "warning",
    "S": "source",
    "C": "compatible",
}
GRAVITY: tuple[Verdict, ...] = ("breaking", "weaker", "warning", "source", "compatible")
"""The verdicts, the gravest first."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        number: the row, which some rules share.
        id: its name in findings.
        change: the change of the facts.
        request: the verdict where clients write, or of the route as a whole.
        response: the verdict where clients read.
        is_law: True if the relation of the types decides.
    """

    number: int
    id: str
    change: str
    request: str
    response: str
    is_law: bool = False


def _fixed(number: int, rule: str, change: str, request: str, response: str = "") -> Rule:
    return Rule(number, rule, change, request, response)


def _law(number: int, rule: str, change: str, request: str, response: str) -> Rule:
    return Rule(number, rule, change, request, response, is_law=True)


TABLE: tuple[Rule, ...] = (
    _fixed(1, "route-removed", "a method of a path is gone", "B", "B"),
    _fixed(2, "route-removed-early", "gone before the sunset that was announced", "B", "B"),
    _fixed(3, "route-removed-sanctioned", "gone after the sunset that was announced", "C", "C"),
    _fixed(4, "route-added", "a method or a path is new", "C", "C"),
    _fixed(5, "route-shadows", "a static path takes requests of a parameter", "B", "B"),
    _fixed(6, "route-shadows-methods", "such a path lacks a method that was served", "B", "B"),
    _fixed(7, "route-shadows-nothing", "a static path takes what the parameter refused", "C", "C"),
    _fixed(8, "route-unshadowed", "a parameter answers in place of a static path", "B", "B"),
    _fixed(9, "segment-renamed", "a static segment has another text", "B", "B"),
    _fixed(10, "path-param-renamed", "a path parameter has another name", "S"),
    _fixed(11, "auto-head-off", "HEAD is no longer answered by itself", "B"),
    _fixed(11, "auto-options-off", "OPTIONS is no longer answered by itself", "W"),
    _fixed(12, "version-removed", "all routes of a version are gone", "B", "B"),
    _fixed(12, "version-removed-sanctioned", "a version is gone after its sunset", "C", "C"),
    _fixed(12, "version-added", "a version is new", "C", "C"),
    _fixed(13, "unversioned-moved", "paths without a version reach another one", "B", "B"),
    _fixed(14, "unversioned-removed", "paths without a version are gone", "B", "B"),
    _fixed(15, "param-added-required", "a new input must be sent", "B"),
    _fixed(15, "param-added-optional", "a new input may be sent", "C"),
    _fixed(16, "param-removed", "an input that clients send is ignored", "W"),
    _fixed(17, "param-required", "an input that could be left out must be sent", "B"),
    _fixed(17, "param-optional", "an input may be left out", "C"),
    _fixed(18, "param-default-changed", "leaving out an input means another value", "W"),
    _fixed(19, "param-moved", "an input is read from another place", "B"),
    _fixed(20, "param-case", "an input of a query or cookie changes its case", "B"),
    _fixed(21, "param-alias-added", "an input has one more name", "C"),
    _fixed(21, "param-alias-removed", "an input lost a name", "B"),
    _law(22, "param-one-to-list", "an input may be sent several times", "C", "C"),
    _law(22, "param-list-to-one", "an input may be sent once only", "B", "B"),
    _fixed(23, "input-opaque", "a handler begins or stops to read the raw request", "W"),
    _fixed(24, "body-removed", "a body that clients send is ignored", "W"),
    _fixed(25, "body-required", "a body must be sent", "B"),
    _fixed(25, "body-optional", "a body may be left out, or is new and optional", "C"),
    _fixed(26, "body-media-added", "a body is accepted in one more media type", "C"),
    _fixed(26, "body-media-removed", "a media type of bodies is refused", "B"),
    _fixed(27, "body-media-checked", "the Content-Type of a body is checked", "B"),
    _fixed(27, "body-media-unchecked", "the Content-Type of a body is no longer checked", "C"),
    _fixed(28, "max-body-lowered", "the largest body, form or file is smaller", "B"),
    _fixed(28, "max-body-raised", "the largest body, form or file is larger", "C"),
    _fixed(29, "file-part-added-required", "a new file must be sent", "B"),
    _fixed(29, "file-part-added-optional", "a new file may be sent", "C"),
    _law(30, "field-added-required", "a new member that is always there", "B", "C"),
    _law(31, "field-added-optional", "a new member that may be absent", "C", "C"),
    _law(32, "field-removed", "a member is gone; bodies with it are refused", "B", "B"),
    _fixed(33, "field-removed-ignored", "a member of bodies is ignored", "W"),
    _law(34, "field-removed-optional", "a member that could be absent is gone", "", "C"),
    _law(35, "field-required", "a member that could be absent is always there", "B", "C"),
    _law(36, "field-optional", "a member may be absent", "C", "B"),
    _law(37, "field-renamed", "a member has another name", "B", "B"),
    _fixed(38, "field-default-changed", "the default of a member is another value", "W", "W"),
    _law(39, "field-default-unsent", "answers leave out members with their default", "", "B"),
    _law(40, "record-closed", "other members are refused", "B", "C"),
    _law(40, "record-opened", "other members are ignored", "C", "C"),
    _law(41, "type-forgotten", "a type became any", "C", "B"),
    _law(42, "type-declared", "any became a type", "B", "C"),
    _law(43, "int-to-float", "whole numbers became numbers", "C", "B"),
    _law(44, "float-to-int", "numbers became whole numbers", "B", "C"),
    _law(45, "scalar-to-str", "a value in text became any text", "C", "B"),
    _law(45, "str-to-scalar", "a text became a number, a bool or the like", "B", "C"),
    _law(46, "scalar-changed", "a value is of another kind", "B", "B"),
    _law(47, "format-added", "a text has a format", "B", "C"),
    _law(48, "format-dropped", "a text has no format", "C", "B"),
    _law(49, "format-changed", "a text has another format", "B", "B"),
    _law(50, "one-to-list", "a value became a list", "B", "B"),
    _law(50, "list-to-one", "a list became a value", "B", "B"),
    _law(51, "type-changed", "any other change inside a type", "B", "B"),
    _law(52, "tuple-length", "a tuple has more or fewer items", "B", "B"),
    _law(52, "tuple-order", "the items of a tuple changed places", "B", "B"),
    _law(53, "record-to-map", "known keys became any keys", "C", "B"),
    _law(53, "map-to-record", "any keys became known keys", "B", "C"),
    _law(54, "null-added", "a value may be null", "C", "B"),
    _law(55, "null-removed", "a value is never null", "B", "C"),
    _law(56, "null-instead-of-absent", "a member is null where it was absent, or back", "B", "B"),
    _fixed(57, "bytes-encoding", "bytes are encoded in another way", "B", "B"),
    _law(58, "coercion-narrowed", "a text is no longer taken for the value", "B", "C"),
    _law(58, "coercion-widened", "a text is taken for the value", "C", "C"),
    _fixed(59, "type-renamed", "a type has another name", "S", "S"),
    _law(60, "enum-value-added", "a choice has one more value", "C", "B"),
    _law(61, "enum-value-removed", "a choice lost a value", "B", "C"),
    _law(62, "enum-value-renamed", "a value became another one", "B", "B"),
    _law(63, "enum-opened", "other values may come", "C", "B"),
    _law(64, "enum-closed", "no other values come", "B", "C"),
    _law(65, "enum-base", "values of a choice became texts, or numbers", "B", "B"),
    _fixed(66, "enum-member-name", "a value has another name in the source", "S", "S"),
    _law(67, "const-changed", "the only value became another one", "B", "B"),
    _law(68, "union-member-added", "one more type is possible", "C", "B"),
    _law(69, "union-member-removed", "a type is no longer possible", "B", "C"),
    _law(70, "union-tag-added", "a member that names the type must be sent", "B", "C"),
    _law(70, "union-tag-removed", "no member must name the type", "C", "B"),
    _law(71, "union-tag-renamed", "another member names the type", "B", "B"),
    _fixed(72, "union-order", "types that overlap are tried in another order", "W"),
    _law(73, "union-wrapped", "a type became one of several: rows 54 and 68", "C", "B"),
    _law(74, "bound-tightened", "a limit allows less", "B", "C"),
    _law(74, "bound-added", "a limit is new", "B", "C"),
    _fixed(75, "bound-loosened", "a limit allows more", "C", "W"),
    _fixed(75, "bound-removed", "a limit is gone", "C", "W"),
    _fixed(76, "pattern-added", "a text must match a pattern", "B", "C"),
    _fixed(76, "pattern-removed", "a text needs to match no pattern", "C", "W"),
    _fixed(77, "pattern-changed", "a text must match another pattern", "B", "W"),
    _fixed(78, "success-removed", "a success status is gone", "", "B"),
    _fixed(78, "success-changed", "a success status became another one", "", "B"),
    _fixed(79, "success-added", "one more success status", "", "W"),
    _fixed(80, "error-added", "one more error status", "", "C"),
    _fixed(80, "error-removed", "an error status is gone", "", "C"),
    _fixed(81, "error-shape", "the body of an error is of another kind", "", "B"),
    _fixed(82, "error-format", "all undeclared errors have another format", "", "B"),
    _fixed(83, "problem-type-added", "one more type of problem", "", "W"),
    _fixed(83, "problem-type-removed", "a type of problem is gone", "", "C"),
    _fixed(84, "media-removed", "a media type of answers is gone", "", "B"),
    _fixed(84, "media-added", "answers in one more media type", "", "C"),
    _fixed(85, "stream-kind", "an answer is streamed in another way", "", "B"),
    _fixed(86, "header-removed", "a header or cookie of an answer is gone", "", "B"),
    _fixed(86, "header-optional", "a header or cookie of an answer may be absent", "", "B"),
    _fixed(86, "header-required", "a header or cookie of an answer is always there", "", "C"),
    _fixed(86, "header-added", "an answer has one more header or cookie", "", "C"),
    _fixed(87, "conditional-dropped", "no conditional answers", "", "W"),
    _fixed(87, "ranges-dropped", "no parts of an answer", "", "W"),
    _fixed(87, "offer-added", "conditional answers, or parts, are new", "", "C"),
    _fixed(88, "auth-added", "credentials are needed", "B"),
    _fixed(89, "auth-option-removed", "one way to be authorised is gone", "B"),
    _fixed(89, "auth-option-added", "one more way to be authorised", "F"),
    _fixed(90, "auth-removed", "no credentials are needed", "F"),
    _fixed(91, "scope-added", "one more scope is needed", "B"),
    _fixed(91, "scope-removed", "a scope is no longer needed", "F"),
    _fixed(92, "auth-scheme", "credentials are sent in another way", "B"),
    _fixed(93, "guard-lost", "a guard no longer covers a route, or not in a version", "F"),
    _fixed(93, "guard-added", "one more guard covers a route", "C"),
    _fixed(94, "deprecated-added", "a deprecation was announced", "C"),
    _fixed(94, "deprecated-removed", "a deprecation was taken back", "C"),
    _fixed(94, "sunset-later", "a sunset moved away, or is gone", "C"),
    _fixed(95, "deprecated-undated", "a deprecation without a date: no header is sent", "W"),
    _fixed(96, "sunset-earlier", "a sunset moved towards today", "B"),
    _fixed(97, "sunset-too-soon", "a sunset gives less notice than is promised", "B"),
    _fixed(98, "status-draft", "a stable version became a draft", "B"),
    _fixed(98, "status-stable", "a draft became stable", "C"),
    _fixed(99, "operation-id", "an operation has another id", "S"),
    _fixed(100, "timeout-lowered", "requests are given less time", "W"),
    _fixed(100, "rate-lowered", "fewer requests are allowed", "W"),
    _fixed(100, "limit-raised", "more time, or more requests", "C"),
    _fixed(101, "text-changed", "a summary, an example or a file: no fact of a lock", "", ""),
    _fixed(102, "message-added", "a socket has messages in one more media type", "C", "B"),
    _fixed(102, "message-removed", "a socket lost the messages of a media type", "B", "C"),
    _fixed(103, "subprotocol-removed", "a subprotocol is gone", "B"),
    _fixed(103, "subprotocol-added", "one more subprotocol", "C"),
    _fixed(104, "event-added", "one more named event", "", "C"),
    _fixed(104, "event-removed", "a named event is gone", "", "W"),
    _law(105, "event-data", "the data of an event: the rules of its type", "", "B"),
    _fixed(106, "socket-inputs", "inputs of a handshake: rows 15 to 23", "B", ""),
    _fixed(107, "socket-close-added", "a socket is closed with one more code", "", "W"),
    _fixed(107, "socket-close-removed", "a socket is never closed with a code", "", "C"),
    _law(108, "webhook-out", "a request of the service: sides change places", "B", "B"),
    _fixed(0, "old-version-changed", "an old version alone answers one member more", "", "W"),
    _law(0, "type-unknown", "a type of which only the name is known", "W", "W"),
)
"""Rows 1 to 108. Number 0 is no row: it says that nothing is known."""

RULES = MappingProxyType({rule.id: rule for rule in TABLE})


def fixed_verdict(rule: str, side: str) -> Verdict:
    """Return the verdict that the table has for a rule; the other side is asked if it is empty."""
    row = RULES[rule]
    first, second = row.request, row.response
    if side == "response":
        first, second = second, first
    return VERDICTS[first or second]


def law_verdict(holds: bool | None) -> Verdict:
    """Return the verdict of whether a reader accepts all that a writer sends."""
    if holds is None:
        return "warning"
    return "compatible" if holds else "breaking"
