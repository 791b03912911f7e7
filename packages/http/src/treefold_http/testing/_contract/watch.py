"""The answer of one request, kept until its end to be held against the contract of its route.

The check itself is imported with the first answer: a client without `contract` never imports
`treefold_contract`.
"""

from __future__ import annotations

from treefold_http._application import Application
from treefold_http._wire.asgi import Message, RawHeaders, Scope
from treefold_http.testing._contract.findings import ContractError, ContractMode
from treefold_http.testing._server import Server


class ContractWatch:
    """The answer of one request to an application.

    Args:
        app: the application.
        mode: `strict` or `warn`.
    """

    def __init__(self, app: Application, mode: ContractMode) -> None:
        self._app = app
        self._mode = mode
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
            from treefold_http.testing._contract.check import (
                SentAnswer,
                find_difference,
                warn_once,
            )

            body = b"".join(self._chunks)
            sent = SentAnswer(self._status, self._headers, body, is_complete)
            finding = find_difference(self._app, scope, sent)
            if finding is not None and self._mode == "strict":
                self._error = ContractError(str(finding))
            elif finding is not None:
                warn_once(self._app, finding)
        return self._error
