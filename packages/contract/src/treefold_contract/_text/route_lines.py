"""The lines of a route: one fact each, with a keyword that says which.

    query   page int >=1 = 1          Input("query", "page", ..., default="1")
    auth    bearer users:write        Auth("bearer", ("users:write",))
    200     json User                 Answer("200", "json", Reference("User"))

A line depends on its fact alone, so that one change of an API is one changed line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import quote

from treefold_contract._facts.facts import (
    Answer,
    AnswerField,
    Auth,
    Body,
    Deprecation,
    Input,
    Message,
    Place,
    RouteFacts,
)
from treefold_contract._facts.paths import Path, Segment
from treefold_contract._text.type_text import (
    WORD,
    check_word,
    write_key,
    write_type,
)
from treefold_contract._types.literals import write_literal

PLACES: tuple[Place, ...] = ("path", "query", "header", "cookie", "file")
WIDTH = 8
SIGNS = re.compile(r"[\s\x00-\x1f\x7f%/{}:]")


def write_line(keyword: str, rest: str) -> str:
    """Return a line of a block; columns do not depend on other lines."""
    return f"  {keyword:<{WIDTH - 1}} {rest}".rstrip()


def route_lines(route: RouteFacts) -> list[str]:
    """Return the lines of a route, without its first, in the order of a lock."""
    lines: list[str] = []

    def add(keyword: str, texts: Iterable[str]) -> None:
        lines.extend(sorted([write_line(keyword, text) for text in texts]))

    if route.operation:
        add("operation", [write_key(route.operation)])
    if route.deprecation:
        add("deprecated", [write_dates(route.deprecation)])
    if route.auth:
        add("auth", map(_write_auth, route.auth))
    if route.guards:
        add("guard", map(write_key, route.guards))
    if route.is_opaque:
        add("opaque", [""])
    for segment in route.path:
        if segment.is_parameter and not is_short(segment):
            add("path", [f"{write_key(segment.text)} {write_type(segment.type)}"])
    if route.inputs:
        for place in PLACES:
            add(place, [_write_input(each) for each in route.inputs if each.place == place])
    if route.bodies:
        add("body", map(_write_body, route.bodies))
    if route.limits:
        add("limit", [f"{check_word(each.name)} {each.value}" for each in route.limits])
    if route.messages:
        messages = [write_line(each.direction, _write_message(each)) for each in route.messages]
        lines += sorted(messages)
    if route.subprotocols:
        add("subprotocol", map(write_key, route.subprotocols))
    if route.closes:
        add("close", map(str, sorted(route.closes)))
    for status in sorted({*(a.status for a in route.answers), *(f.status for f in route.fields)}):
        add(status, [_write_answer(each) for each in route.answers if each.status == status])
        add(status, [_write_field(each) for each in route.fields if each.status == status])
    if route.offers:
        add("offers", map(check_word, route.offers))
    return lines


def is_short(segment: Segment) -> bool:
    """Return True for a parameter whose type is one word, which the path holds."""
    return WORD.fullmatch(write_type(segment.type)) is not None


def write_path(path: Path) -> str:
    """Return the path of the first line of a route, such as `/v1/user/{id:int}`."""
    words = [
        f"{{{encode_segment(each.text)}:{write_type(each.type)}}}"
        if each.is_parameter and is_short(each)
        else replace(each, text=encode_segment(each.text)).template
        for each in path
    ]
    return "/" + "/".join(words)


def encode_segment(text: str) -> str:
    """Return a segment in which blanks, and the signs of paths, are percent-encoded."""
    return SIGNS.sub(lambda found: quote(found[0], safe=""), text)


def _write_auth(auth: Auth) -> str:
    return " ".join([check_word(auth.scheme), *map(check_word, sorted(auth.scopes))])


def _write_input(each: Input) -> str:
    aliases = "".join(f" alias {write_key(alias)}" for alias in sorted(each.aliases))
    mark = " ?" if each.is_optional else ""
    default = f" = {each.default}" if each.default else ""
    return f"{write_key(each.name)} {write_type(each.type)}{aliases}{mark}{default}"


def _write_body(body: Body) -> str:
    mark = " ?" if body.is_optional else ""
    lenient = " lenient" if body.is_lenient else ""
    return f"{check_word(body.media)} {write_type(body.type)}{lenient}{mark}"


def _write_message(message: Message) -> str:
    return f"{check_word(message.media)} {write_type(message.type)}"


def _write_answer(answer: Answer) -> str:
    words = [
        answer.media and check_word(answer.media),
        write_type(answer.type) if answer.type else "",
    ]
    if answer.problem:
        words.append(f"= {write_literal(answer.problem)}")
    if not answer.is_checked:
        words.append("unchecked")
    return " ".join(filter(None, words))


def _write_field(each: AnswerField) -> str:
    mark = " ?" if each.is_optional else ""
    return f"{each.place} {write_key(each.name)} {write_type(each.type)}{mark}"


def write_dates(deprecation: Deprecation) -> str:
    """Return the words after `deprecated`."""
    words = [str(deprecation.since or "")]
    if deprecation.sunset:
        words.append(f"sunset {deprecation.sunset}")
    if deprecation.successor:
        words.append(f"successor {check_word(deprecation.successor)}")
    return " ".join(filter(None, words))
