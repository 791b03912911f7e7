"""The answer of one request, and the messages of a socket, held against the contract of a route.

An answer is kept until its end; a message is checked when a test receives it.

The check itself is imported with the first answer: a client without `contract` never imports
`treefold_contract`.
"""

from __future__ import annotations

from treefold_http._application import Application
from treefold_http._wire.asgi import Message, RawHeaders, Scope
from treefold_http.testing._contract.findings import ContractError, ContractMode, Finding
from treefold_http.testing._server import Server


class ContractWatch:
    """The answer of one request to an application.

    Args:
        app: the application.
        mode: `strict` or `warn`.
    """

    def __init__(self, app: Application, mode: ContractMode) -> None:
        self._app = app
        self._mode: ContractMode = mode
        self._status = 0
        self._headers: RawHeaders = []
        self._chunks: list[bytes] = []
        self._is_checked = False
        self._error: ContractError | None = None

    @classmethod
    def make(cls, server: Server) -> ContractWatch | None:
        """Return the watch of a request to a server; None if it checks no contract."""
        if server.contract == "off" or not isinstance(server.app, Application):
            return None
        return cls(server.app, server.contract)

    def note_message(self, message: Message, data: bytes) -> None:
        """Keep a message of the application, and the bytes of it that reach the client."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = list(message.get("headers", []))
        elif data:
            self._chunks.append(data)

    def find_error(self, scope: Scope, *, is_complete: bool) -> ContractError | None:
        """Return the error of the answer, or warn of it; the same at every call.

        Args:
            scope: the scope of the request.
            is_complete: False if the client left before the end of the answer.

        Raises:
            ModuleNotFoundError: `treefold_contract` is not installed.
            UnreadableProject: no contract can be made of the application.
        """
        if not self._is_checked:
            self._is_checked = True
            from treefold_http.testing._contract.check import SentAnswer, find_difference

            body = b"".join(self._chunks)
            sent = SentAnswer(self._status, self._headers, body, is_complete)
            self._error = _judge(self._app, self._mode, find_difference(self._app, scope, sent))
        return self._error


class SocketWatch:
    """The messages that an application sends on one socket.

    Args:
        app: the application.
        mode: `strict` or `warn`.
        scope: the scope of the socket.
    """

    def __init__(self, app: Application, mode: ContractMode, scope: Scope) -> None:
        self._app = app
        self._mode: ContractMode = mode
        self._scope = scope

    @classmethod
    def make(cls, server: Server, scope: Scope) -> SocketWatch | None:
        """Return the watch of a socket of a server; None if it checks no contract."""
        if server.contract == "off" or not isinstance(server.app, Application):
            return None
        return cls(server.app, server.contract, scope)

    def find_error(self, message: Message) -> ContractError | None:
        """Return the error of a message of the application, or warn of it.

        Raises:
            ModuleNotFoundError, UnreadableProject: as `ContractWatch.find_error`.
        """
        if message["type"] != "websocket.send":
            return None
        from treefold_http.testing._contract.check import find_message_difference

        text: str | None = message.get("text")
        data: str | bytes = message["bytes"] if text is None else text
        return _judge(self._app, self._mode, find_message_difference(self._app, self._scope, data))


def _judge(app: Application, mode: ContractMode, finding: Finding | None) -> ContractError | None:
    """Return the error of a finding; with `warn`, give its warning instead."""
    if finding is None:
        return None
    if mode == "strict":
        return ContractError(str(finding))
    from treefold_http.testing._contract.check import warn_once

    warn_once(app, finding)
    return None
