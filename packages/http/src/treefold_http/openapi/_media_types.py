"""Schemas of bodies of which only the media type is known."""

from __future__ import annotations

from treefold_http._description.made_responses import EVENTS, JSON, strip_parameters
from treefold_http._headers.media_types import is_json
from treefold_http._responses.lines import NDJSON
from treefold_http._wire.aliases import JSONObject

BINARY: JSONObject = {"type": "string", "format": "binary"}
TEXT: JSONObject = {"type": "string"}


def build_untyped_schema(media_type: str, detected: JSONObject | None) -> JSONObject:
    """Return the schema of a body of which only the media type is known.

    Args:
        media_type: as in `Content-Type`; text is a string, other types are bytes.
        detected: the response as the annotation describes it, which JSON takes its schema from.
    """
    kind = strip_parameters(media_type) or ""
    if kind == NDJSON or is_json(kind):
        content: JSONObject = (detected or {}).get("content", {})
        found = [content[each]["schema"] for each in (JSON, NDJSON) if each in content]
        return found[0] if found else {}
    if kind == EVENTS:
        # Some readers take the schema as that of the text, others as that of one event, for which
        # OpenAPI 3.1 has none; `x-event-stream` holds it.
        return {}
    return TEXT if kind.startswith("text/") else BINARY
