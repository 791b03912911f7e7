"""Checks of the messages that an application sends for an HTTP request, as a server does them.

One start, then bodies, then no more messages; as many bytes as `Content-Length` announces; no body
for HEAD, 204 and 304 (RFC 9110, 6.4.1). A violation raises in the `send` that causes it.
"""

from __future__ import annotations

from treefold_http._responses.response import BODILESS
from treefold_http._wire.asgi import Message, RawHeaders


class Answer:
    """The state of one answer.

    Attributes:
        started: True once status and header fields are sent.
        complete: True once the last body message is sent.
    """

    def __init__(self, method: str) -> None:
        self.started = False
        self.complete = False
        self._bodiless = method == "HEAD"
        self._left: int | None = None

    def validate_and_extract_body(self, message: Message) -> bytes:
        """Take note of a message; give the bytes of it that reach the client.

        Raises:
            RuntimeError: for a message out of order, or a body of another length than was said.
        """
        wanted = "http.response.body" if self.started else "http.response.start"
        if self.complete or message["type"] != wanted:
            after = "a complete answer" if self.complete else f"no {wanted!r}"
            raise RuntimeError(f"The application sent {message['type']!r} after {after}")
        if not self.started:
            self._accept_start(message)
            return b""
        return self._accept_body(message.get("body", b""), more=message.get("more_body", False))

    def _accept_start(self, message: Message) -> None:
        self.started = True
        self._bodiless = self._bodiless or message["status"] in BODILESS
        self._left = _read_content_length(message.get("headers", []))

    def _accept_body(self, data: bytes, *, more: bool) -> bytes:
        self.complete = not more
        if self._bodiless:
            return b""
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0 or (self._left and not more):
                which = "longer" if self._left < 0 else "shorter"
                raise RuntimeError(f"The body is {which} than its Content-Length")
        return data


def _read_content_length(headers: RawHeaders) -> int | None:
    said = [value for name, value in headers if name.lower() == b"content-length"]
    return int(said[0]) if said else None
