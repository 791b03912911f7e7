"""Media types of responses that a handler makes by hand, read from its source.

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

from treefold_http._headers.media_types import OTHER, guess_media_type
from treefold_http._responses.files import FileResponse
from treefold_http._responses.response import Response
from treefold_http._responses.streams import StreamingResponse

JSON = "application/json"
EVENTS = "text/event-stream"
PLAIN_TEXT = "text/plain"

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
        return strip_parameters(_read_text(named["media_type"]))
    if kind is StreamingResponse:
        return OTHER
    path = call.args[0] if call.args else named.get("path")
    source = named.get("filename", path)
    name = None if source is None else _read_end_of_name(source)
    return None if name is None else strip_parameters(guess_media_type(name))


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


def strip_parameters(media_type: str | None) -> str | None:
    """Return a media type in small letters without its parameters; None of None."""
    return media_type and media_type.partition(";")[0].strip().lower()
