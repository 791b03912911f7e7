"""Media types of responses that a handler makes by hand: read from its source, and their schemas.

    call in the handler                                  media type
    FileResponse("report.csv")                           text/csv
    FileResponse(f"reports/{month}.csv")                 text/csv
    FileResponse(path, filename="report.pdf")            application/pdf
    FileResponse(path, media_type="image/png")           image/png
    StreamingResponse(rows(), media_type="text/csv")     text/csv
    StreamingResponse(rows())                            application/octet-stream
    FileResponse(path), FileResponse(path, **options)    not known

Only literal texts count: a value that is computed may differ from one request to the next.
"""

from __future__ import annotations

import ast

from treefold_http._headers.media_types import OTHER, guess_media_type, is_json
from treefold_http._responses.files import FileResponse
from treefold_http._responses.lines import NDJSON
from treefold_http._responses.response import Response
from treefold_http._responses.streams import StreamingResponse
from treefold_http._wire.aliases import JSONObject

JSON = "application/json"
EVENTS = "text/event-stream"
BINARY: JSONObject = {"type": "string", "format": "binary"}
TEXT: JSONObject = {"type": "string"}

_CONSTRUCTORS = {"file": FileResponse, "stream": StreamingResponse}
_PLAIN_ARGUMENTS = 2
"""Content and status; a third argument by position holds header fields."""


def find_made_response(kind: object, attribute: str) -> type[Response] | None:
    """Return the class of file or stream that a call makes, or None.

    Args:
        kind: the callable itself, or the class whose constructor is called.
        attribute: the name of the constructor, such as `file`; empty for the class itself.
    """
    if attribute:
        return _CONSTRUCTORS.get(attribute) if kind is Response else None
    return kind if kind is FileResponse or kind is StreamingResponse else None


def read_media_type(call: ast.Call, kind: type[Response]) -> str | None:
    """Return the media type of a file or stream, without parameters; None if it is computed.

    Args:
        call: the call in the source.
        kind: the class of the response that it makes.
    """
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    is_open = None in named or any(isinstance(each, ast.Starred) for each in call.args)
    # header fields may hold another type
    if is_open or "headers" in named or len(call.args) > _PLAIN_ARGUMENTS:
        return None
    if "media_type" in named:
        return _strip_parameters(_read_text(named["media_type"]))
    if kind is StreamingResponse:
        return OTHER
    path = call.args[0] if call.args else named.get("path")
    source = named.get("filename", path)
    name = None if source is None else _read_end_of_name(source)
    return None if name is None else _strip_parameters(guess_media_type(name))


def _read_text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _read_end_of_name(node: ast.expr) -> str | None:
    match node:
        case ast.JoinedStr(values=[*_, ast.Constant(value=str(end))]):
            # a letter for the value before it: a name that is a suffix alone has no type
            return f"_{end}".rpartition("/")[2]
        case ast.BinOp(op=ast.Div(), right=ast.Constant(value=str(end))):
            return end.rpartition("/")[2]
        case ast.Constant(value=str(end)):
            return end.rpartition("/")[2]
        case _:
            return None


def _strip_parameters(media_type: str | None) -> str | None:
    return media_type and media_type.partition(";")[0].strip().lower()


def build_untyped_schema(media_type: str, detected: JSONObject | None) -> JSONObject:
    """Return the schema of a body of which only the media type is known.

    Args:
        media_type: as in `Content-Type`; text is a string, other types are bytes.
        detected: the response as the annotation describes it, which JSON takes its schema from.
    """
    kind = _strip_parameters(media_type) or ""
    if kind == NDJSON or is_json(kind):
        content: JSONObject = (detected or {}).get("content", {})
        found = [content[each]["schema"] for each in (JSON, NDJSON) if each in content]
        return found[0] if found else {}
    if kind == EVENTS:
        # Some readers take the schema as that of the text, others as that of one event, for which
        # OpenAPI 3.1 has none; `x-event-stream` holds it.
        return {}
    return TEXT if kind.startswith("text/") else BINARY
