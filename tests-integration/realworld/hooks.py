"""The format of all errors: messages by the field that they are about."""

from typing import TypedDict

from treefold import Connection, HTTPError


class Errors(TypedDict):
    errors: dict[str, list[str]]


def error_format(request: Connection, error: HTTPError) -> Errors:
    messages: dict[str, list[str]] = {}
    for entry in error.errors or ():
        messages.setdefault(str(entry["loc"][-1]), []).append(entry["msg"])
    return {"errors": messages or {"body": [error.message or error.title]}}
