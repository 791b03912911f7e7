"""Error responses: every failure becomes an `application/problem+json` document (RFC 9457).

This is the one place that decides which details of an error a client may read. A 500 shows the
exception only if the application runs with `dev=True`, and then `<`, `>` and `&` are escaped.
`_failures.error_responses` chooses between these documents and the error format of an application.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from treefold_http._json.json import dumps
from treefold_http._responses.response import Response, make_unchecked_response
from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.errors import HTTPError

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection

PROBLEM_TYPE = (b"content-type", b"application/problem+json")

_MARKUP = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def render_problem(error: HTTPError, connection: Connection) -> Response:
    """Render an `HTTPError`: `type title status detail instance request_id` and `errors`."""
    detail = error.message or error.title
    document = _build_document(error.title, error.status, detail, connection)
    if error.errors is not None:
        document["errors"] = error.errors
    return _build_problem_response(document, error.headers)


def render_crash_problem(error: BaseException, connection: Connection) -> Response:
    """Render an unhandled exception as a 500 that shows nothing of it in production (S-56)."""
    detail = describe_crash(error, connection)
    document = _build_document("Internal Server Error", 500, detail, connection)
    if connection.app.dev:
        lines = traceback.format_exception(error)
        document["traceback"] = [_escape_surrogates(line) for line in lines]
    return _build_problem_response(document, {})


def describe_crash(error: BaseException, connection: Connection) -> str:
    """Return the detail of a 500: the exception in development, else nothing of it."""
    if not connection.app.dev:
        return _HIDDEN
    return _escape_surrogates("".join(traceback.format_exception_only(error)).strip())


def render_disconnect_response(connection: Connection) -> Response:
    """Return the response to a request whose client has disconnected: it is logged, never received.

    A server that stopped waiting for the client and answered itself passes its status in the scope.
    """
    status: int = connection.scope.get("treefold.answered", 499)
    document = _build_document("Client Closed Request", status, "The client left", connection)
    return _build_problem_response(document, {})


_HIDDEN = "The server failed to answer this request"


def _build_document(title: str, status: int, detail: str, connection: Connection) -> JSONObject:
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": _escape_surrogates(detail),
        "instance": connection.raw_path.decode("ascii", "backslashreplace"),
        "request_id": connection.id,
    }


def _escape_surrogates(text: str) -> str:
    """Make text encodable in UTF-8: an exception may quote half of a surrogate pair."""
    return text.encode("utf-8", "backslashreplace").decode()


def _build_problem_response(document: JSONObject, headers: Mapping[str, str]) -> Response:
    body = encode_html_safe_json(document)
    made = make_unchecked_response(body, PROBLEM_TYPE, document["status"])
    made.headers.update(headers)
    return made


def encode_html_safe_json(document: Any) -> bytes:
    """Encode an error document; no browser takes it for markup."""
    return dumps(document).decode().translate(_MARKUP).encode()
