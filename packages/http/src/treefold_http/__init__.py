"""treefold-http: an ASGI application over a folder tree of handlers.

`Application(app_dir)` reads `Api/` and serves it. The names below are the public surface; modules
with a leading underscore may change with any release.
"""

from typing import TYPE_CHECKING

from treefold_http.__about__ import __version__
from treefold_http._application import Application as Application, create_app as create_app
from treefold_http._bodies.forms import FormData as FormData
from treefold_http._bodies.multipart import MissingExtra as MissingExtra
from treefold_http._bodies.parts import Part as Part
from treefold_http._bodies.uploads import UploadFile as UploadFile
from treefold_http._chains.middleware_chain import requests_only as requests_only, under as under
from treefold_http._chains.socket_chain import WebSocketCallNext as WebSocketCallNext
from treefold_http._failures.error_format import ErrorFormat as ErrorFormat
from treefold_http._failures.overload import refuse_overload as refuse_overload
from treefold_http._injection.context import InjectionContext as InjectionContext
from treefold_http._injection.dependencies import Depends as Depends
from treefold_http._injection.inherited import Inherited as Inherited
from treefold_http._injection.providers import Provider as Provider
from treefold_http._injection.secured import secured as secured
from treefold_http._injection.sources import (
    Body as Body,
    Cookie as Cookie,
    File as File,
    Form as Form,
    Header as Header,
    Query as Query,
)
from treefold_http._plans.deprecation import Deprecation as Deprecation
from treefold_http._requests.connection import Address as Address, Connection as Connection
from treefold_http._requests.request import Request as Request
from treefold_http._responses.endpoints import CallNext as CallNext
from treefold_http._responses.events import Event as Event, EventStream as EventStream
from treefold_http._responses.files import FileResponse as FileResponse
from treefold_http._responses.response import Response as Response
from treefold_http._responses.static import StaticFiles as StaticFiles
from treefold_http._responses.streams import StreamingResponse as StreamingResponse
from treefold_http._runtime.background import BackgroundTasks as BackgroundTasks
from treefold_http._runtime.boot_report import (
    BootError as BootError,
    BootReport as BootReport,
    BrokenFile as BrokenFile,
    SettingsError as SettingsError,
    TreefoldError as TreefoldError,
)
from treefold_http._runtime.contract_settings import ContractSettings as ContractSettings
from treefold_http._runtime.serve_settings import ServeSettings as ServeSettings
from treefold_http._runtime.settings import Settings as Settings
from treefold_http._types.changes import Changes as Changes
from treefold_http._types.open_choices import Open as Open
from treefold_http._websockets.rooms import Rooms as Rooms
from treefold_http._websockets.websocket import (
    WebSocket as WebSocket,
    WebSocketDisconnect as WebSocketDisconnect,
)
from treefold_http._wire.datastructures import (
    URL as URL,
    Headers as Headers,
    MultiMapping as MultiMapping,
    MutableHeaders as MutableHeaders,
    QueryParams as QueryParams,
    State as State,
)
from treefold_http._wire.errors import (
    BadRequest as BadRequest,
    ClientDisconnect as ClientDisconnect,
    Conflict as Conflict,
    Forbidden as Forbidden,
    HTTPError as HTTPError,
    MethodNotAllowed as MethodNotAllowed,
    NotFound as NotFound,
    PayloadTooLarge as PayloadTooLarge,
    ServiceUnavailable as ServiceUnavailable,
    TooManyRequests as TooManyRequests,
    Unauthorized as Unauthorized,
    UnprocessableEntity as UnprocessableEntity,
    UnsupportedMediaType as UnsupportedMediaType,
)

if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    _NAMES = {name for name in dir() if name[0].isalpha()} - {"TYPE_CHECKING"}
    __all__ = ["__version__", *sorted(_NAMES)]
