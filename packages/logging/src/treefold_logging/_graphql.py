"""Secrets in GraphQL documents: the literal values of arguments with a sensitive name.

Only what a log must not show is read: a name, a colon, and a value of any depth. A document is text
of a client, so every step goes forward, and the time is linear in its length (S-88).
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from treefold_logging._words import is_sensitive

# `password: "x"`; also `$password: String = "x"`. A name behind the colon is an alias or a type.
_ARGUMENT = re.compile(
    r"""(?<![\w"'-])\$?+([A-Za-z_]\w*+)[\s,]{0,8}+:[\s,]{0,8}+(?:\[?\w++[!\]]{0,3}\s{0,8}=\s{0,8})?"""
    r"""(?=["\\\[{\d$-])"""
)
_TOKEN = re.compile(
    r"""\"{3}(?:[^"\\]|\\.|\"(?!\"\"))*+(?:\"{3})?+"""
    r"""|"(?:[^"\\\r\n]|\\.)*+"?+"""
    r"""|\\{1,4}"[^"\r\n]*+"?+"""
    r"""|[\[{(]|[\]})]|[^\s,"\\\[\]{}()]++|[\s,]++|\\""",
    re.DOTALL,
)
_VARIABLE = re.compile(r"\$(\w+)")


def looks_like_graphql_selection(text: str) -> bool:
    """Return True if a brace opens something that is not JSON: `{ user`, as in every document."""
    return text.count("{") > text.count('{"') + text.count("{}")


def mask_sensitive_graphql_arguments(text: str) -> str:
    """Return a text with the literal values of sensitive arguments replaced by `***`."""
    kept: list[str] = []
    done = 0
    for argument in _ARGUMENT.finditer(text):
        start = argument.end()
        if argument.start() >= done and text[start] != "$" and is_sensitive(argument[1]):
            kept += text[done:start], "***"
            done = _end_of_value(text, start)
    return "".join([*kept, text[done:]]) if kept else text


def _end_of_value(text: str, start: int) -> int:
    """Return where a value ends: a string, a number, or a list or object with all its members."""
    depth, place = 0, start
    while (token := _TOKEN.match(text, place)) is not None:
        place = token.end()
        depth += (token[0] in "[{(") - (token[0] in "]})")
        if depth <= 0:
            break
    return place


def mask_sensitive_graphql_variables(body: Any) -> Any:
    """Return the body of a GraphQL request, the variables that sensitive arguments take masked.

    Args:
        body: `{"query": ..., "variables": {...}}`, or a list of such; anything else is returned.
    """
    if isinstance(body, list):
        batch = cast("list[Any]", body)
        if batch and isinstance(batch[0], Mapping) and "query" in batch[0]:
            return [mask_sensitive_graphql_variables(one) for one in batch]
        return batch
    if not isinstance(body, Mapping):
        return cast("object", body)
    fields = cast("Mapping[str, Any]", body)
    query, variables = fields.get("query"), fields.get("variables")
    if type(query) is not str or not isinstance(variables, Mapping) or "$" not in query:
        return fields
    secret = {
        variable[1]
        for argument in _ARGUMENT.finditer(query)
        if is_sensitive(argument[1]) and (variable := _VARIABLE.match(query, argument.end()))
    }
    if not secret:
        return fields
    given = cast("Mapping[str, Any]", variables)
    shown = {name: "***" if name in secret else value for name, value in given.items()}
    return {**fields, "variables": shown}
