"""Unhandled exceptions for the test client, which no other client can see.

A 500 does not show its exception, and a failed startup reports one line of text. A test needs the
exception itself, with its traceback: the test client puts a list into the scope's extensions, and
the application appends its unhandled exceptions. No server passes such a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treefold_http._wire.asgi import Scope

EXTENSION = "treefold.errors"


def is_from_test_client(scope: Scope) -> bool:
    """Return True if a request comes from the test client."""
    return EXTENSION in (scope.get("extensions") or {})


def report_to_test_client(scope: Scope, error: BaseException) -> None:
    """Append an unhandled exception to the list of the test client, if the scope has one."""
    extensions: Mapping[str, Any] = scope.get("extensions") or {}
    if (errors := extensions.get(EXTENSION)) is not None:
        errors.append(error)
