"""treefold-http: an ASGI application over a folder tree of handlers.

`Application(app_dir)` reads `Api/` and serves it. The names below are the public surface; modules
with a leading underscore may change with any release.
"""

from treefold_http.__about__ import __version__
from treefold_http._application import Application, create_app
from treefold_http._background import BackgroundTasks
from treefold_http._boot import BootReport, BrokenFile
from treefold_http._connection import Address
from treefold_http._datastructures import (
    URL,
    Headers,
    MultiMapping,
    MutableHeaders,
    QueryParams,
    State,
)
from treefold_http._dependencies import Depends
from treefold_http._errors import (
    BadRequest,
    BootError,
    ClientDisconnect,
    Conflict,
    Forbidden,
    HTTPError,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    ServiceUnavailable,
    SettingsError,
    TooManyRequests,
    TreefoldError,
    Unauthorized,
    UnprocessableEntity,
    UnsupportedMediaType,
)
from treefold_http._events import Event, EventStream
from treefold_http._files import FileResponse
from treefold_http._forms import FormData
from treefold_http._middleware import under
from treefold_http._multipart import MissingExtra
from treefold_http._overload import refuse_overload
from treefold_http._parts import Part
from treefold_http._providers import Provider
from treefold_http._request import Request
from treefold_http._response import Response
from treefold_http._rooms import Rooms
from treefold_http._scope import Scope
from treefold_http._security import secured
from treefold_http._settings import Settings
from treefold_http._sources import Body, Cookie, File, Form, Header, Query
from treefold_http._static import StaticFiles
from treefold_http._streams import StreamingResponse
from treefold_http._uploads import UploadFile
from treefold_http._websocket import WebSocket, WebSocketDisconnect

__all__ = [
    "URL",
    "Address",
    "Application",
    "BackgroundTasks",
    "BadRequest",
    "Body",
    "BootError",
    "BootReport",
    "BrokenFile",
    "ClientDisconnect",
    "Conflict",
    "Cookie",
    "Depends",
    "Event",
    "EventStream",
    "File",
    "FileResponse",
    "Forbidden",
    "Form",
    "FormData",
    "HTTPError",
    "Header",
    "Headers",
    "MethodNotAllowed",
    "MissingExtra",
    "MultiMapping",
    "MutableHeaders",
    "NotFound",
    "Part",
    "PayloadTooLarge",
    "Provider",
    "Query",
    "QueryParams",
    "Request",
    "Response",
    "Rooms",
    "Scope",
    "ServiceUnavailable",
    "Settings",
    "SettingsError",
    "State",
    "StaticFiles",
    "StreamingResponse",
    "TooManyRequests",
    "TreefoldError",
    "Unauthorized",
    "UnprocessableEntity",
    "UnsupportedMediaType",
    "UploadFile",
    "WebSocket",
    "WebSocketDisconnect",
    "__version__",
    "create_app",
    "refuse_overload",
    "secured",
    "under",
]
