"""Header values with parameters: `form-data; name="a"` to a value and a dictionary.

One pass over at most 4,096 characters, with no backtracking pattern: a long field of a client must
not hold up the other requests (S-22). It parses the syntax only (RFC 9110, 5.6.6); the callers
check which parameters a field needs.
"""

from __future__ import annotations

import re

from treefold_http._headers.header_fields import is_token

MAX_LENGTH = 4096
"""Characters of a value with parameters, such as that of Content-Disposition."""

_control = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]").search


def parse_header(text: str) -> tuple[str, dict[str, str]]:
    r"""Split a header value into its first part and its parameters.

    Names come in lower case. In a quoted value `\"` and `\\` stand for the second character; any
    other backslash is kept, since some clients send paths. A value without quotes runs to the next
    semicolon.

    Returns:
        The first part in lower case, and the parameters in the order sent.

    Raises:
        ValueError: for text that is too long, holds a control character, repeats a parameter or
            has a malformed one; the message continues after the name of the field.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"is longer than {MAX_LENGTH} characters")
    if _control(text):
        raise ValueError("holds a control character")
    first = text.partition(";")[0]
    params: dict[str, str] = {}
    at = len(first) + 1
    while (at := _skip_blanks(text, at)) < len(text):
        if text[at] == ";":
            at += 1
            continue
        name, start = _read_parameter_name(text, at)
        # two readers could take two values, such as a scanner the first and a handler the last
        if name in params:
            raise ValueError(f"repeats the parameter {name!r}")
        params[name], at = _read_parameter_value(text, start)
    return first.strip(" \t").lower(), params


def _skip_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def _read_parameter_name(text: str, at: int) -> tuple[str, int]:
    equals = text.find("=", at)
    name = text[at:equals].lower() if equals >= 0 else ""
    if not is_token(name):
        raise ValueError("has a parameter that is not a name=value pair")
    return name, equals + 1


def _read_parameter_value(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        end = text.find(";", at)
        end = len(text) if end < 0 else end
        value = text[at:end].strip(" \t")
        if '"' in value:
            raise ValueError("has a quote inside a value that does not start with one")
        return value, end + 1
    value, end = _read_quoted_text(text, at + 1)
    end = _skip_blanks(text, end)
    if text[end : end + 1] not in ("", ";"):
        raise ValueError("has text after a quoted value")
    return value, end + 1


def _read_quoted_text(text: str, at: int) -> tuple[str, int]:
    end = text.find('"', at)
    if end >= 0 and "\\" not in text[at:end]:
        return text[at:end], end + 1
    characters: list[str] = []
    while at < len(text):
        character = text[at]
        if character == '"':
            return "".join(characters), at + 1
        if character == "\\" and text[at + 1 : at + 2] in ('"', "\\"):
            at += 1
            character = text[at]
        characters.append(character)
        at += 1
    raise ValueError("has a quoted value without an end")
