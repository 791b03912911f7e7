"""What a lock holds, as frozen data: settings, versions, routes and definitions.

Each class here is one kind of line in the text, and one kind of fact that a client relies on. Where
the facts come from, and what follows from a change of them, is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, TypeAlias

from treefold_contract._facts.paths import Path, format_template, path_key
from treefold_contract._types.nodes import Definition, TypeNode

Place: TypeAlias = Literal["path", "query", "header", "cookie", "file"]
FieldPlace: TypeAlias = Literal["header", "cookie", "event"]
Stability: TypeAlias = Literal["stable", "draft"]

RULES = 1
"""The version of the rules, in the first line of a lock: verdicts never change without it."""


@dataclass(frozen=True, slots=True)
class Input:
    """A named input beside the body.

    Attributes:
        place: where a request has it.
        name: its name there.
        type: its type.
        is_optional: True if it may be left out.
        default: the JSON text of its default, or `computed`.
        aliases: other names that are accepted.
    """

    place: Place
    name: str
    type: TypeNode
    is_optional: bool = False
    default: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def is_required(self) -> bool:
        """True if a request without it is refused."""
        return not (self.is_optional or self.default)


@dataclass(frozen=True, slots=True)
class Body:
    """A body that a route accepts in one media type.

    Attributes:
        media: `json`, `form`, `multipart`, `bytes`, or a media type.
        type: its type.
        is_optional: True if a request may have no body.
        is_lenient: True if the body is accepted with any `Content-Type`.
    """

    media: str
    type: TypeNode
    is_optional: bool = False
    is_lenient: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its status, media type and type.

    Attributes:
        status: three digits, a range such as `2XX` of which one is sent, or `default` for any
            other.
        media: `json`, `problem`, `ndjson`, `events`, `file`, or a media type; empty for no body,
            `any` for an answer of which nothing is known.
        type: the type of the body; None where there is none, or only a media type is known.
        is_checked: True if the body is checked at run time, False if it is only declared.
        problem: the `type` URI of a problem.
    """

    status: str
    media: str = ""
    type: TypeNode | None = None
    is_checked: bool = True
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AnswerField:
    """A declared header, cookie or named event of an answer."""

    status: str
    place: FieldPlace
    name: str
    type: TypeNode
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Auth:
    """One way to be authorised: a scheme, and the scopes that it needs; any one way is enough.

    The scheme `none` is the way of a client without credentials.
    """

    scheme: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """A declared limit: `body`, `form`, `file`, `timeout` or `rate`."""

    name: str
    value: int | float


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a socket: `in` comes from the client, `out` goes to it."""

    direction: Literal["in", "out"]
    media: str
    type: TypeNode


@dataclass(frozen=True, slots=True)
class Deprecation:
    """A deprecation: when it began, when it ends, and the successor; all may be unknown."""

    since: date | None = None
    sunset: date | None = None
    successor: str = ""


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """All facts about one method at one path.

    Attributes:
        method: an HTTP method, `WEBSOCKET`, or `WEBHOOK` for a request that the service sends.
        path: its segments.
        is_opaque: True if the handler reads the raw request: other inputs are unknown.
        operation: the operation id that the author wrote.
        offers: what requests may ask for: `etag`, `ranges`.
        closes: the close codes of a socket.
    """

    method: str
    path: Path
    operation: str = ""
    deprecation: Deprecation | None = None
    auth: tuple[Auth, ...] = ()
    guards: tuple[str, ...] = ()
    is_opaque: bool = False
    inputs: tuple[Input, ...] = ()
    bodies: tuple[Body, ...] = ()
    limits: tuple[Limit, ...] = ()
    answers: tuple[Answer, ...] = ()
    fields: tuple[AnswerField, ...] = ()
    offers: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    subprotocols: tuple[str, ...] = ()
    closes: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """The method and the path without types: `GET /v1/user/{id}`."""
        return f"{self.method} {format_template(self.path)}"

    @property
    def key(self) -> tuple[str, str]:
        """The identity: the path with parameters by position, and the method."""
        return path_key(self.path), self.method

    @property
    def version(self) -> str:
        """The first segment, which is the version where a lock has one of that name."""
        return self.path[0].text if self.path else ""


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """A version of the API; `number` orders `v2` before `v10`."""

    name: str
    stability: Stability = "stable"
    deprecation: Deprecation | None = None

    @property
    def number(self) -> int:
        """The number in the name."""
        digits = self.name.lstrip("v")
        return int(digits) if digits.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for all routes.

    Attributes:
        default_version: the version that a path without one reaches; empty if there is none.
        errors: the format of errors that no route declares.
        automatic: the methods that are answered without a handler: `head`, `options`.
        mounts: the prefixes of mounted applications.
    """

    default_version: str = ""
    errors: str = ""
    automatic: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lock:
    """The facts of one state of an API.

    Attributes:
        routes: the routes of all versions, each version whole.
        versions: the versions.
        definitions: the types by name.
        settings: what holds for all routes.
        rules: the version of the rules that it was written with.
        lines: the line of each route and type in the text that it was read from.
    """

    routes: tuple[RouteFacts, ...] = ()
    versions: tuple[VersionFacts, ...] = ()
    definitions: Mapping[str, Definition] = field(default_factory=dict[str, Definition])
    settings: Settings = Settings()
    rules: int = RULES
    lines: Mapping[str, int] = field(default_factory=dict[str, int], compare=False, repr=False)
