"""Trees of routes with hostile segments, drawn by a seed, and the calls that reach them.

The names are those that a language, a runtime or a URL gives a meaning to. A parameter has a value
that none of its static siblings has: those come first in the router.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from treefold_contract import Lock, RouteFacts, Segment, VersionFacts

NAMES = (
    *("index", "then", "get", "post", "put", "patch", "delete", "head", "options", "socket"),
    *("constructor", "__proto__", "prototype", "toString", "valueOf", "hasOwnProperty", "toJSON"),
    *("name", "length", "call", "apply", "bind", "caller", "arguments", "at", "catch", "finally"),
    *("$", "$x", "$get", "$$get", "$then", "$$", "safe", "raw", "key", "pages", "query", "json"),
    *("class", "def", "import", "from", "none", "None", "True", "lambda", "await", "async", "self"),
    *("__init__", "__class__", "__getattr__", "__call__", "__dict__", "_private", "_place__path"),
    *("order-line", "order_line", "orderline", "order.line", "a.b", ".hidden", "...", "7up", "42"),
    *("int", "str", "list", "dict", "literal", "overload", "operation", "object", "user", "User"),
    *(
        "größe",
        "ﬁ",
        "fi",
        "日本",
        "🎈",
        "a b",
        "a+b",
        "a%20b",
        "a%2Fb",
        "100%",
        "a/b",
        "a?b",
        "a#b",
    ),
    *(
        "a&b=c",
        "'",
        '"',
        "`",
        "\\",
        "{x}",
        "[x]",
        "<x>",
        "*/",
        "\u2028",
        "new",
        "static",
        "readonly",
    ),
)
VALUES = (
    *(
        "7",
        "a b",
        "a/b",
        "%2F",
        "%2e%2e",
        "...",
        ".x",
        "x.",
        "?q=1",
        "#f",
        "é",
        "ﬁ",
        "日本",
        "+",
        "&",
    ),
    *("'", '"', "\\", "{}", "get", "then", "__proto__", "socket", "index", "a;b", "a,b", "=", "~"),
)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class HostileCall:
    """A route, and a value for each of its segments: the text itself, or that of a parameter."""

    route: RouteFacts
    values: tuple[str, ...]


def draw_tree(seed: int) -> tuple[Lock, list[HostileCall]]:
    """Return a lock, and a call of each of its routes."""
    drawn = random.Random(seed)
    parameters = [f"p{number}" for number in range(9)]
    routes: dict[tuple[str, str], RouteFacts] = {}
    prefixes: list[tuple[Segment, ...]] = [(), (Segment("v1"),), (Segment("v2"),)]
    for _ in range(drawn.randint(4, 12)):
        path = drawn.choice(prefixes)
        for _ in range(drawn.randint(1, 3)):
            is_parameter = drawn.random() < 0.25
            text = drawn.choice(parameters if is_parameter else NAMES)
            path = (*path, Segment(text, is_parameter))
            prefixes.append(path)
        route = RouteFacts(drawn.choice(METHODS), path)
        routes.setdefault(route.key, route)
    lock = Lock(tuple(routes.values()), (VersionFacts("v1"), VersionFacts("v2")))
    return lock, [HostileCall(route, draw_values(drawn, lock, route)) for route in lock.routes]


def draw_values(drawn: random.Random, lock: Lock, route: RouteFacts) -> tuple[str, ...]:
    """Return values for a path that no static sibling of a parameter has."""
    values: list[str] = []
    for index, segment in enumerate(route.path):
        if not segment.is_parameter:
            values.append(segment.text)
            continue
        siblings = {
            each.path[index].text
            for each in lock.routes
            if len(each.path) > index and not each.path[index].is_parameter
        }
        values.append(drawn.choice([value for value in VALUES if value not in siblings]))
    return tuple(values)


def resolve(lock: Lock, method: str, url: str) -> tuple[str, list[str]]:
    """Return the title of the route that a router finds for a URL, and the decoded segments.

    A static segment comes before a parameter, and empty segments are dropped.
    """
    found = [unquote(text, errors="strict") for text in urlsplit(url).path.split("/") if text]
    fitting = list(lock.routes)
    for index, text in enumerate(found):
        longer = [route for route in fitting if len(route.path) > index]
        static = [each for each in longer if each.path[index] == Segment(text)]
        fitting = static or [each for each in longer if each.path[index].is_parameter]
    fitting = [each for each in fitting if len(each.path) == len(found) and each.method == method]
    return (fitting[0].title if fitting else "404"), found
