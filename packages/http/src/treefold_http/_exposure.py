"""What a test client may see and no other client does: the exceptions behind an answer.

A 500 says nothing of its exception, and a failed startup passes on one line of text. A test wants
the exception itself, with its traceback: it puts a list into the scope's extensions, and the
application adds what it could not handle. No server gives such a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treefold_http._types import Scope

EXTENSION = "treefold.errors"


def is_test(scope: Scope) -> bool:
    """Whether a request comes from the test client."""
    return EXTENSION in (scope.get("extensions") or {})


def expose(scope: Scope, error: BaseException) -> None:
    """Add an unhandled exception to the list of the test client, where there is one."""
    extensions: Mapping[str, Any] = scope.get("extensions") or {}
    if (errors := extensions.get(EXTENSION)) is not None:
        errors.append(error)
