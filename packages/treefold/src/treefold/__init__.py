"""treefold: your folder tree is your API.

The front door: names for application authors, each imported from the package that owns it at first
use, so that `import treefold` alone stays cheap. No logic lives here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from treefold.__about__ import __version__

if TYPE_CHECKING:
    from treefold_http import (
        Application as Application,
        BackgroundTasks as BackgroundTasks,
        BadRequest as BadRequest,
        Body as Body,
        CallNext as CallNext,
        Changes as Changes,
        Conflict as Conflict,
        Connection as Connection,
        Cookie as Cookie,
        Depends as Depends,
        Deprecation as Deprecation,
        ErrorFormat as ErrorFormat,
        Event as Event,
        EventStream as EventStream,
        File as File,
        FileResponse as FileResponse,
        Forbidden as Forbidden,
        Form as Form,
        FormData as FormData,
        Header as Header,
        HTTPError as HTTPError,
        Inherited as Inherited,
        MethodNotAllowed as MethodNotAllowed,
        NotFound as NotFound,
        Open as Open,
        PayloadTooLarge as PayloadTooLarge,
        Provider as Provider,
        Query as Query,
        Request as Request,
        Response as Response,
        Rooms as Rooms,
        ServiceUnavailable as ServiceUnavailable,
        Settings as Settings,
        StaticFiles as StaticFiles,
        StreamingResponse as StreamingResponse,
        TooManyRequests as TooManyRequests,
        Unauthorized as Unauthorized,
        UnprocessableEntity as UnprocessableEntity,
        UploadFile as UploadFile,
        WebSocket as WebSocket,
        WebSocketCallNext as WebSocketCallNext,
        WebSocketDisconnect as WebSocketDisconnect,
        secured as secured,
    )
    from treefold_http.testing import (
        AsyncTestClient as AsyncTestClient,
        TestClient as TestClient,
    )
    from treefold_logging import get_logger as get_logger, mask as mask

_HOMES = {
    "treefold_http": (
        "Application BackgroundTasks BadRequest Body CallNext Changes Conflict Connection"
        " Cookie Depends Deprecation ErrorFormat Event EventStream File FileResponse Forbidden"
        " Form FormData"
        " HTTPError Header Inherited MethodNotAllowed NotFound Open PayloadTooLarge Provider Query"
        " Request Response Rooms ServiceUnavailable Settings StaticFiles StreamingResponse"
        " TooManyRequests Unauthorized UnprocessableEntity UploadFile WebSocket"
        " WebSocketCallNext WebSocketDisconnect secured"
    ),
    "treefold_http.testing": "AsyncTestClient TestClient",
    "treefold_logging": "get_logger mask",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    __all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'treefold' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
