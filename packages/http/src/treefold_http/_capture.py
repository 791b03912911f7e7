"""The payload of the log line: the masked request body, rendered without changing the request.

A body is rendered from the bytes that the handler read. A small JSON or form body that the handler
left unread is read here, before the response is sent (rulings, 'Log line'). Masking, scrubbing and
cutting belong to the log package.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from treefold_http._body import UNREAD
from treefold_http._datastructures import parse_urlencoded
from treefold_http._errors import ClientDisconnect, HTTPError
from treefold_http._json import compact, loads, reparse
from treefold_logging import compact_payload, form_payload, json_payload, opaque_payload

if TYPE_CHECKING:
    from treefold_http._request import Request

NONE = "-"
MAX_UNREAD = 16 * 1024
MAX_DESCRIBED = 64 * 1024
PATIENCE = 0.05
"""Seconds that an unread body may take to arrive."""

_FORM = "application/x-www-form-urlencoded"


async def read_ahead(request: Request) -> None:
    """Read a small JSON or form body that the handler left unread, so that the log can show it."""
    reader = request.reader
    if reader.started or not _is_shown(request.content_type):
        return
    declared = reader.declared
    if (declared is not None and declared > MAX_UNREAD) or b"expect" in request.fields:
        return
    reader.limit = min(reader.limit, MAX_UNREAD)
    try:
        async with asyncio.timeout(PATIENCE):
            await reader.read()
    except (TimeoutError, ClientDisconnect, HTTPError):
        return


def describe(request: Request) -> str:
    """Return the masked payload for the log line; `-` if there is none."""
    reader = request.reader
    body = reader.kept
    if reader.names is not None and body is not None and len(body) <= MAX_DESCRIBED:
        text = compact(body)
        payload = None if text is None else compact_payload(text, reader.names)
        if payload is not None:
            return payload
    kind = request.content_type or "application/octet-stream"
    form = getattr(request, "parsed_form", None)
    if form is not None and kind != _FORM:
        fields = form.fields.multi_items()
        if sum(len(name) + len(value) for name, value in fields) > MAX_DESCRIBED:
            return opaque_payload(kind, reader.size)
        files = [(n, f.filename, f.size, f.content_type) for n, f in form.files.multi_items()]
        return form_payload(fields, files)
    if body is None:
        size = reader.declared if reader.declared is not None else reader.size
        return opaque_payload(kind, size) if size else NONE
    if not body:
        return NONE
    if len(body) > MAX_DESCRIBED:
        return opaque_payload(kind, len(body))
    try:
        if _is_json(kind):
            document = reader.document
            if document is None:
                known = reader.names is not None or reader.json is not UNREAD
                document = reparse(body) if known else loads(body)
            return json_payload(document)
        if kind == _FORM:
            return form_payload(parse_urlencoded(body, limit=1000))
    except HTTPError:
        pass  # invalid: log its type and size, never the raw text
    return opaque_payload(kind, len(body))


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")


def _is_shown(kind: str) -> bool:
    return _is_json(kind) or kind == _FORM
