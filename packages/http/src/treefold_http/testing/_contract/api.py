"""The routes of an application as a tree: `client.api.v1.user(7).get()`.

An attribute or a subscript is a segment, a call is a parameter, and a method sends. Names and
inputs are those of the clients in Python that `treefold client` writes: their code sends here too.
"""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import Any

import httpx

from treefold_http._application import Application
from treefold_http.contract import build_call_tree  # first: names the extra
from treefold_router import RouteTable

from treefold_contract import (  # isort: skip
    Place,
    is_attribute,
    load_python_runtime,
)

_SOCKET = "socket"
_WEBSOCKET = "WEBSOCKET"


def build_api(app: Any, client: httpx.Client | httpx.AsyncClient) -> Any:
    """Return the root of the tree of an application, whose methods send with a client.

    It is an `ApiPlace`, whose types are those of a generated client.

    Raises:
        TypeError: for another application, which has no tree.
        BootError: when the project cannot be read.
    """
    if not isinstance(app, Application):
        raise TypeError(f"The tree of calls needs a treefold Application, got {app!r}")
    runtime: Any = load_python_runtime()
    connect = runtime.connect if isinstance(client, httpx.AsyncClient) else runtime.connect_sync
    inner = connect(str(client.base_url), http=client, on_deprecated=_ignore_deprecation)
    return ApiPlace(client, _build_once(app.table, app.default_version), inner, "")


@lru_cache(maxsize=1)
def _build_once(table: RouteTable, default_version: str | None) -> Place:
    return build_call_tree(table, default_version)


def _ignore_deprecation(route: str, response: httpx.Response) -> None:
    """Ignore that a route is deprecated: a test calls it to check it."""


class ApiPlace:
    """A prefix of paths: what follows is a segment, a parameter or a method.

    Args:
        client: sends the requests.
        place: the routes that begin with the prefix.
        inner: the same place in a client from a lock, with the values of the parameters.
        path: the prefix as text, for messages.
    """

    def __init__(self, client: Any, place: Place, inner: Any, path: str) -> None:
        self.__client = client
        self.__place = place
        self.__inner = inner
        self.__path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of Python, such as a copy asks for
            raise AttributeError(f"Segment {name!r} is a subscript: [{name!r}]", name=name)
        place = self.__place
        if name == _SOCKET and _WEBSOCKET in place.routes:
            return self.__open_socket
        if name != _SOCKET and name.islower() and name.upper() in place.routes:
            return getattr(self.__inner, name).raw
        if name in place.statics and is_attribute(name):
            return self[name]
        raise AttributeError(self.__describe_unknown(name), name=name)

    def __getitem__(self, segment: str) -> ApiPlace:
        child = self.__place.statics.get(segment)
        if child is None:
            raise AttributeError(self.__describe_unknown(segment), name=segment)
        return ApiPlace(self.__client, child, self.__inner[segment], f"{self.__path}/{segment}")

    def __call__(self, value: Any, /) -> ApiPlace:
        child = self.__place.parameter
        if child is None:
            raise AttributeError(f"{self.__path or '/'} has no parameter; {self.__describe_next()}")
        path = f"{self.__path}/{child.path[-1].template}"
        return ApiPlace(self.__client, child, self.__inner(value), path)

    def __dir__(self) -> list[str]:
        return [*map(str.lower, self.__list_methods()), *filter(is_attribute, self.__place.statics)]

    def __repr__(self) -> str:
        return f"<place {self.__path or '/'}>"

    def __list_methods(self) -> list[str]:
        return [_SOCKET if each == _WEBSOCKET else each.lower() for each in self.__place.routes]

    def __describe_unknown(self, name: str) -> str:
        where = self.__path or "/"
        if name in self.__place.statics:
            return f"Segment {name!r} of {where} is a subscript: [{name!r}]"
        names = [*self.__list_methods(), *self.__place.statics]
        near = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]!r}" if near else self.__describe_next()
        return f"{where} has no {name!r}; {hint}"

    def __describe_next(self) -> str:
        parameter = self.__place.parameter
        shown = [*self.__list_methods(), *sorted(self.__place.statics)]
        if parameter is not None:
            shown.append(f"({parameter.path[-1].text})")
        return f"it has {', '.join(shown) or 'nothing'}"

    def __open_socket(self, **inputs: Any) -> Any:
        """Open the socket as `websocket_connect` does.

        Args:
            inputs: query parameters by name, and `query`, `headers`, `cookies` and `protocols`, as
                a client from a lock takes them, and `timeout` of `websocket_connect`.
        """
        options: dict[str, Any] = {"timeout": inputs.pop("timeout")} if "timeout" in inputs else {}
        url, arguments = self.__inner.socket(**inputs).list_arguments()
        target = httpx.URL(url)
        fields: list[tuple[str, str]] = arguments["additional_headers"]
        protocols: list[str] = arguments["subprotocols"] or []
        return self.__client.websocket_connect(
            target.raw_path.decode("ascii"), headers=fields, subprotocols=protocols, **options
        )
