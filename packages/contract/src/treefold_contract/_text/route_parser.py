"""Reads the lines of a route; what they hold is in `route_lines`.

Each line is read alone: lines that are equal in two places of a lock are read once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import TypeAlias, cast
from urllib.parse import unquote

from treefold_contract._facts.facts import (
    Answer,
    AnswerField,
    Auth,
    Body,
    Deprecation,
    FieldPlace,
    Input,
    Limit,
    Message,
    Place,
    RouteFacts,
)
from treefold_contract._facts.paths import Path, Segment
from treefold_contract._text.route_lines import PLACES
from treefold_contract._text.type_parser import TOKEN, read_type, read_type_prefix
from treefold_contract._types.nodes import TypeNode

Fact: TypeAlias = (
    Input | Body | Answer | AnswerField | Auth | Limit | Message | Deprecation | tuple[str, str]
)
"""One line; facts of one word are the keyword and the word."""

PLACE_OF_WORD: dict[str, Place] = {place: place for place in PLACES}
FIELD_PLACES: dict[str, FieldPlace] = {"header": "header", "cookie": "cookie", "event": "event"}
WORDS = ("operation", "guard", "offers", "subprotocol", "close", "opaque", "gone")
STATUS = re.compile(r"[1-5](?:[0-9][0-9]|XX)|default")


@lru_cache(maxsize=16384)
def read_line(line: str) -> Fact:
    """Return the fact of one line of a route.

    Raises:
        ValueError: the line is not a fact.
    """
    keyword, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    place = PLACE_OF_WORD.get(keyword)
    if place is not None:
        return _read_input(place, rest)
    if STATUS.fullmatch(keyword):
        return _read_answer(keyword, rest)
    match keyword:
        case "opaque":
            return "opaque", ""
        case _ if keyword in WORDS:
            return keyword, read_key(rest)[0]
        case "auth":
            scheme, *scopes = rest.split() or [""]
            return Auth(scheme, tuple(scopes))
        case "body":
            return _read_body(rest)
        case "in" | "out":
            media, _, text = rest.partition(" ")
            return Message("in" if keyword == "in" else "out", media, read_type(text))
        case "limit":
            name, _, number = rest.partition(" ")
            return Limit(name, float(number) if set(number) & set(".e") else int(number))
        case "deprecated":
            return read_dates(rest.split())
        case _:
            raise ValueError(f"Fact must begin with a known word, got {keyword!r}")


def read_dates(words: list[str]) -> Deprecation:
    """Return the deprecation of the words after `deprecated`."""
    since: date | None = None
    if words and words[0][:1].isdigit():
        since = date.fromisoformat(words.pop(0))
    if len(words) % 2 or set(words[::2]) - {"sunset", "successor"}:
        raise ValueError(f"Deprecation must have 'sunset' and 'successor', got {words!r}")
    named = dict(zip(words[::2], words[1::2], strict=True))
    sunset = date.fromisoformat(named["sunset"]) if "sunset" in named else None
    return Deprecation(since, sunset, named.get("successor", ""))


def read_key(text: str) -> tuple[str, str]:
    """Return the name at the beginning of a text, and the text after it."""
    if text.startswith('"'):
        found = TOKEN.match(text)
        if found is None:
            raise ValueError(f"Name must be a word or JSON, got {text!r}")
        return str(json.loads(found[0])), text[found.end() :].strip()
    name, _, rest = text.partition(" ")
    if not name:
        raise ValueError("Name must follow, got the end of the line")
    return name, rest.strip()


def read_member_end(rest: str) -> tuple[bool, str]:
    """Return whether a member is optional, and its default, of the text after its type."""
    is_optional = rest.startswith("?")
    rest = rest.removeprefix("?").strip()
    if rest and not rest.startswith("="):
        raise ValueError(f"Fact must end after its type, got {rest!r}")
    default = rest.removeprefix("=").strip()
    if default not in ("", "computed"):
        json.loads(default)
    return is_optional, default


def _read_input(place: Place, text: str) -> Input:
    name, rest = read_key(text)
    node, rest = read_type_prefix(rest)
    aliases: list[str] = []
    while rest.startswith("alias "):
        alias, rest = read_key(rest.removeprefix("alias "))
        aliases.append(alias)
    is_optional, default = read_member_end(rest)
    return Input(place, name, node, is_optional, default, tuple(aliases))


def _read_body(text: str) -> Body:
    media, _, rest = text.partition(" ")
    node, rest = read_type_prefix(rest)
    is_lenient = rest.startswith("lenient")
    is_optional, _default = read_member_end(rest.removeprefix("lenient").strip())
    return Body(media, node, is_optional, is_lenient)


def _read_answer(status: str, text: str) -> Answer | AnswerField:
    media, _, rest = text.partition(" ")
    place = FIELD_PLACES.get(media)
    if place is not None:
        name, rest = read_key(rest)
        node, rest = read_type_prefix(rest)
        is_optional, _default = read_member_end(rest)
        return AnswerField(status, place, name, node, is_optional)
    rest = rest.strip()
    is_checked = not rest.endswith("unchecked")
    rest = rest.removesuffix("unchecked").strip()
    body: TypeNode | None = None
    if rest and not rest.startswith("="):
        body, rest = read_type_prefix(rest)
    problem = str(json.loads(rest[1:])) if rest.startswith("=") else ""
    return Answer(status, media, body, is_checked, problem)


@lru_cache(maxsize=16384)
def read_path(text: str) -> Path:
    """Return the segments of a path such as `/v1/user/{id:int}`."""
    if not text.startswith("/"):
        raise ValueError(f"Path must start with '/', got {text!r}")
    return tuple(map(_read_segment, text[1:].split("/"))) if text != "/" else ()


def _read_segment(text: str) -> Segment:
    if not (text.startswith("{") and text.endswith("}")):
        return Segment(unquote(text))
    name, _, type_text = text[1:-1].partition(":")
    name = unquote(name)
    return Segment(name, True, read_type(type_text)) if type_text else Segment(name, True)


def build_route(method: str, path: Path, facts: Iterable[Fact]) -> RouteFacts:
    """Return a route of its facts; a line of a path parameter gives the type of its segment."""
    found: dict[type, list[Fact]] = {}
    words: dict[str, list[str]] = {}
    for fact in facts:
        if isinstance(fact, tuple):
            words.setdefault(fact[0], []).append(fact[1])
        else:
            found.setdefault(type(fact), []).append(fact)
    inputs = tuple(cast("list[Input]", found.get(Input, [])))
    deprecations = cast("list[Deprecation]", found.get(Deprecation, []))
    types = {each.name: each.type for each in inputs if each.place == "path"}
    if types:
        path = tuple(
            Segment(each.text, True, types[each.text])
            if each.is_parameter and each.text in types
            else each
            for each in path
        )
    return RouteFacts(
        method,
        path,
        operation=next(iter(words.get("operation", [])), ""),
        deprecation=next(iter(deprecations), None),
        auth=tuple(cast("list[Auth]", found.get(Auth, []))),
        guards=tuple(words.get("guard", [])),
        is_opaque="opaque" in words,
        inputs=tuple(each for each in inputs if each.place != "path"),
        bodies=tuple(cast("list[Body]", found.get(Body, []))),
        limits=tuple(cast("list[Limit]", found.get(Limit, []))),
        answers=tuple(cast("list[Answer]", found.get(Answer, []))),
        fields=tuple(cast("list[AnswerField]", found.get(AnswerField, []))),
        offers=tuple(words.get("offers", [])),
        messages=tuple(cast("list[Message]", found.get(Message, []))),
        subprotocols=tuple(words.get("subprotocol", [])),
        closes=tuple(map(int, words.get("close", []))),
    )
