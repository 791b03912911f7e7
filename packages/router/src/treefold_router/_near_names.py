"""Names that look like a mistake: near a method, or a parameter as another framework spells it.

For lints only. Pure functions of one name; `_naming` has the rules that routing follows.
"""

import re
from collections.abc import Iterator

from treefold_router._naming import METHODS

_STEMS = (*(name.capitalize() for name in METHODS), "Socket", "Websocket")
_WORDS = frozenset(
    {
        *("bet", "gem", "gen", "gets", "got", "jet", "let", "net", "pet", "set", "wet"),
        *("cost", "host", "lost", "most", "past", "pos", "pose", "port", "posts", "pot"),
        *("but", "cut", "nut", "out", "pit", "pub", "puts"),
        *("batch", "catch", "match", "path", "watch"),
        *("ahead", "dead", "heads", "hear", "heard", "lead", "read"),
        *("deleted", "deletes", "option", "docket", "pocket", "rocket", "sockets", "websockets"),
    }
)
"""Names of ordinary modules that are one letter away from a method."""

_DECORATED = re.compile(r"(?:\.{3}|\*{1,2}|:)?\s*([^\W\d]\w*)\s*(?::\s*\w+|[?*+])?\s*")
_WITH_CONVERTER = re.compile(r"\s*\w+\s*:\s*([^\W\d]\w*)\s*")
_FOREIGN = re.compile(
    r"\{(?P<curly>[^{}]+)\}|<(?P<angle>[^<>]+)>|:(?P<colon>[^\W\d]\w*)|\[+(?P<square>[^\[\]]+)\]*"
    r"|(?P<closed>[^\[\]]+)\]+"
)


def guess_misspelt_method(stem: str) -> str | None:
    """Return the spelling of the method that a stem is one slip away from ('Putt' is 'Put').

    A slip is a letter too much, too few or another one, or two that changed places. Words that
    name ordinary modules, such as `path` and `posts`, are none.
    """
    lowered = stem.lower()
    if not stem.isascii() or lowered in _WORDS:
        return None
    return next((name for name in _STEMS if lowered in _yield_typing_errors(name.lower())), None)


def _yield_typing_errors(name: str) -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for at in range(len(name) + 1):
        head, tail = name[:at], name[at:]
        yield from (f"{head}{letter}{tail}" for letter in letters)
        if tail:
            yield from (f"{head}{letter}{tail[1:]}" for letter in letters if letter != tail[0])
        if len(tail) > 1 and tail[0] != tail[1]:
            yield f"{head}{tail[1]}{tail[0]}{tail[2:]}"
        if tail and len(name) > 3:
            yield f"{head}{tail[1:]}"


def guess_parameter_name(folder: str) -> str | None:
    """Return the name of the parameter that a static folder seems to mean ('{id}' is 'id')."""
    if (found := _FOREIGN.fullmatch(folder)) is None:
        return None
    inner = next(text for text in found.groups() if text is not None)
    if found["angle"] is not None and (converted := _WITH_CONVERTER.fullmatch(inner)):
        return converted[1]
    return strip_parameter_decorations(inner) or (inner if inner.isidentifier() else None)


def strip_parameter_decorations(name: str) -> str | None:
    """Return the identifier in a parameter name with decorations ('...path' is 'path'), else None.

    Decorations are those of other frameworks: dots or a star before it, a type or a question mark
    after it.
    """
    found = _DECORATED.fullmatch(name)
    return None if found is None or found[1] == name else found[1]
