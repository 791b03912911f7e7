"""What clients ask for: every kind of thing that an application serves, with its address.

The segments are those that the router decodes; a request may spell them in other ways.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import StrEnum


class Target(StrEnum):
    """Something that is served."""

    ROUTE = "route"
    OPEN = "a route beside it"
    HEAD = "HEAD"
    POST = "POST"
    STREAM = "stream"
    DEFAULT = "default version"
    SOCKET = "socket"
    STATIC = "static files"
    MOUNT = "mounted ASGI application"
    INNER = "mounted treefold application"
    DOCS = "docs"
    OPENAPI = "openapi"
    PROBE = "probe"
    METRICS = "metrics"
    UNKNOWN = "nothing"


_THING = ("v1", "private", "area", "thing")
_SEGMENTS = {
    Target.ROUTE: _THING,
    Target.OPEN: ("v1", "open", "thing"),
    Target.HEAD: _THING,
    Target.POST: _THING,
    Target.STREAM: ("v1", "private", "area", "stream"),
    Target.DEFAULT: _THING,
    Target.SOCKET: ("v1", "private", "area", "live"),
    Target.STATIC: ("files", "area", "page.txt"),
    Target.MOUNT: ("legacy", "area", "account"),
    Target.INNER: ("inner", *_THING),
    Target.DOCS: ("docs",),
    Target.OPENAPI: ("openapi.json",),
    Target.PROBE: ("livez",),
    Target.METRICS: ("metrics",),
    Target.UNKNOWN: ("nothing", "here"),
}

HANDLERS = frozenset(
    {
        Target.ROUTE, Target.OPEN, Target.HEAD, Target.POST, Target.STREAM, Target.DEFAULT,
        Target.SOCKET,
    }
)  # fmt: skip
"""Targets that a handler of the project answers."""

THINGS = frozenset({Target.ROUTE, Target.HEAD, Target.DEFAULT})
"""Targets of one handler module."""

MOUNTS = frozenset({Target.STATIC, Target.MOUNT, Target.INNER})
"""Targets that something else answers, below a prefix."""


def segments_of(target: Target) -> tuple[str, ...]:
    """Return the segments by which the router knows a target, its version included."""
    return _SEGMENTS[target]


def is_below(prefix: Sequence[str], target: Target) -> bool:
    """Return True if a target lies below a prefix, in which `*` is any one segment."""
    segments = segments_of(target)
    return len(segments) >= len(prefix) and all(
        given in ("*", own) for given, own in zip(prefix, segments, strict=False)
    )


def method_of(target: Target) -> str:
    """Return the method of the requests for a target."""
    return {Target.HEAD: "HEAD", Target.POST: "POST"}.get(target, "GET")


def path_of(target: Target) -> str:
    """Return the path of a target as every client would write it."""
    segments = segments_of(target)
    return "/" + "/".join(segments[1:] if target is Target.DEFAULT else segments)


def spell_path(target: Target, dice: random.Random) -> str:
    """Return a path that some server or application takes for that of the target."""
    segments = path_of(target)[1:].split("/")
    place = dice.randrange(len(segments))
    before, one, after = segments[:place], segments[place], segments[place + 1 :]
    match dice.choice(_SPELLINGS):
        case "double slash":
            spelled = [*before, "", one, *after]
        case "letter in percent":
            spelled = [*before, f"%{ord(one[0]):02x}{one[1:]}", *after]
        case "slash in percent":
            spelled = [*before[:-1], "%2F".join([*before[-1:], one]), *after]
        case "upper case":
            spelled = [*before, one.upper(), *after]
        case "slash at the end":
            spelled = [*segments, ""]
        case "more at the end":
            spelled = [*segments[:-1], segments[-1] + dice.choice(["%20", ";x=1", "%00"])]
        case dots:
            spelled = [*before, *dots.split("/"), one, *after]
    return "/" + "/".join(spelled)


_SPELLINGS = (
    "double slash",
    "letter in percent",
    "slash in percent",
    "upper case",
    "slash at the end",
    "more at the end",
    ".",
    "x/..",
    "x/%2e%2e",
    "%2e",
)
