"""The line of a connection in the log, and its payload: the masked body, rendered unchanged.

A body is rendered from the bytes that the handler read. A small JSON or form body that the handler
left unread is read here, before the response is sent. Masking, scrubbing and cutting belong to the
log package.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from treefold_http._bodies.forms import URLENCODED
from treefold_http._bodies.reader import UNREAD
from treefold_http._headers.media_types import is_json
from treefold_http._json.json import loads, minify_json, parse_validated_body
from treefold_http._runtime.unhandled import report_to_test_client
from treefold_http._wire.datastructures import parse_urlencoded
from treefold_http._wire.errors import ClientDisconnect, HTTPError
from treefold_logging import (
    compact_payload,
    form_payload,
    get_logger,
    json_payload,
    log_sent_request,
    opaque_payload,
)

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._requests.request import Request

NONE = "-"
MAX_UNREAD = 16 * 1024
"""Bytes of a body that no handler has read, and that is read for the log alone."""
MAX_RENDERED = 64 * 1024
"""Bytes of a payload that is shown; of a larger one the log has only type and size."""
UNREAD_BODY_TIMEOUT = 0.05
"""Seconds that an unread body may take to arrive."""


def log_connection(
    connection: Connection, method: str, status: int, seconds: float, has_body: bool = False
) -> None:
    """Write the line of a request or a socket; a test sees its unhandled exception.

    For a line whose level is enabled, or an exception.
    """
    if connection.error is not None:
        report_to_test_client(connection.scope, connection.error)
    plan = connection.plan
    if plan is not None and plan.is_quiet and not get_logger().isEnabledFor(logging.DEBUG):
        return
    payload = NONE
    if has_body and (plan is None or plan.log_payload):
        payload = render_masked_payload(cast("Request", connection))
    scope = connection.scope
    raw_path = scope.get("raw_path") or connection.raw_path
    log_sent_request(
        method,
        raw_path,
        scope["query_string"],
        connection.find_masked_segments(),
        status,
        seconds,
        connection.id,
        payload,
        connection.error,
    )


async def read_small_unread_body(request: Request) -> None:
    """Read a small JSON or form body that the handler left unread, so that the log can show it."""
    reader = request.reader
    kind = request.content_type
    if reader.asked or reader.has_started or not kind or not (is_json(kind) or kind == URLENCODED):
        return
    declared = reader.declared
    # a client that sent Expect would be asked for the body by a read that only the log needs
    if (declared is not None and declared > MAX_UNREAD) or b"expect" in request.fields:
        return
    # a chunked body declares no size
    reader.limit = min(reader.limit, MAX_UNREAD)
    try:
        async with asyncio.timeout(UNREAD_BODY_TIMEOUT):
            await reader.read()
    except (TimeoutError, ClientDisconnect, HTTPError):
        return


def render_masked_payload(request: Request) -> str:
    """Return the masked payload for the log line; `-` if there is none."""
    reader = request.reader
    body = reader.buffered_body
    # the names alone tell that no member is sensitive, without parsing the body once more
    if reader.names is not None and body is not None and len(body) <= MAX_RENDERED:
        text = minify_json(body)
        payload = None if text is None else compact_payload(text, reader.names)
        if payload is not None:
            return payload
    kind = request.content_type or "application/octet-stream"
    form = getattr(request, "parsed_form", None)
    if form is not None and kind != URLENCODED:
        fields = form.fields.multi_items()
        if sum(len(name) + len(value) for name, value in fields) > MAX_RENDERED:
            return opaque_payload(kind, reader.size)
        files = [(n, f.filename, f.size, f.content_type) for n, f in form.files.multi_items()]
        return form_payload(fields, files)
    if body is None:
        size = reader.declared if reader.declared is not None else reader.size
        return opaque_payload(kind, size) if size else NONE
    if not body:
        return NONE
    if len(body) > MAX_RENDERED:
        return opaque_payload(kind, len(body))
    try:
        if is_json(kind) or (kind == URLENCODED and _looks_like_json(body)):
            if (document := reader.document) is None:
                known = reader.names is not None or reader.json is not UNREAD
                document = parse_validated_body(body) if known else loads(body)
            return json_payload(document)
        if kind == URLENCODED:
            return form_payload(parse_urlencoded(body, limit=1000))
    except HTTPError:
        pass  # invalid: log its type and size, never the raw text
    return opaque_payload(kind, len(body))


def _looks_like_json(body: bytes) -> bool:
    """Return True for a document under the type of forms, as `curl -d '{"a": 1}'` sends it.

    As a form, it would be shown as the name of a field, with its secrets. An encoder of forms
    writes a quotation mark as `%22`.
    """
    return body.lstrip()[:1] in (b"{", b"[") and (b'"' in body or b"=" not in body)
