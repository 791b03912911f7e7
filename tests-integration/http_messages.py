"""A request as tests write it, an answer as tests read it, and the reading of one off a socket.

`read_answer` accepts exactly one well-framed answer and nothing after it. How a request reaches an
application is the business of `serving`; nothing here knows what is right.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, as it goes over the wire.

    Attributes:
        headers: fields in order; `Host` and the length of the body are added.
        body: sent at once with its length, or chunk by chunk without when it is a sequence.
        host: the `Host` field; None sends none.
    """

    method: str = "GET"
    target: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | Sequence[bytes] = b""
    host: str | None = "localhost"

    def fields(self) -> list[tuple[bytes, bytes]]:
        """Give the header fields in the order they are sent."""
        fields = list(self.headers)
        if self.host is not None:
            fields.insert(0, ("Host", self.host))
        if not isinstance(self.body, bytes):
            fields.append(("Transfer-Encoding", "chunked"))
        elif self.body:
            fields.append(("Content-Length", str(len(self.body))))
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: header names in lower case, order and repeats kept."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def values(self, name: str) -> list[str]:
        """Give every value of a header field."""
        return [value for key, value in self.headers if key == name]

    def value(self, name: str) -> str:
        """Give the value of a header field that must be there exactly once."""
        (value,) = self.values(name)
        return value

    def json(self) -> Any:
        """Give the parsed body; it must be JSON by its type too."""
        assert re.fullmatch(r"application/(problem\+)?json", self.value("content-type"))
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def id(self) -> str:
        """The request id."""
        return self.value("x-request-id")


def read_answer(method: str, received: bytes) -> Answer:
    """Read exactly one HTTP/1.1 answer out of all bytes of a connection (RFC 9112, 6)."""
    head, separator, body = received.partition(b"\r\n\r\n")
    assert separator, f"No answer in {received[:200]!r}"
    status_line, *lines = head.decode("latin-1").split("\r\n")
    match = re.fullmatch(r"HTTP/1\.1 ([1-5][0-9]{2}) [ -~]*", status_line)
    assert match, status_line
    pairs = [line.partition(": ") for line in lines]
    headers = [(name.lower(), value) for name, _, value in pairs]
    answer = Answer(int(match[1]), headers, body)
    if method == "HEAD" or answer.status in (101, 204, 304):
        assert body == b"", "An answer without a body came with one"
    elif answer.values("transfer-encoding") == ["chunked"]:
        answer = Answer(answer.status, headers, _dechunked(body))
    elif answer.values("content-length"):
        assert answer.value("content-length") == str(len(body))
    else:
        assert answer.value("connection") == "close"  # the end of the connection is its length
        assert b"HTTP/1.1 " not in body, "There is a second answer"
    return answer


def _dechunked(body: bytes) -> bytes:
    whole = b""
    while True:
        size, separator, rest = body.partition(b"\r\n")
        assert separator, "The connection ended in the middle of an answer"
        length = int(size, 16)
        assert rest[length : length + 2] == b"\r\n"
        whole += rest[:length]
        body = rest[length + 2 :]
        if length == 0:
            assert body == b"", "There is more after the last chunk"
            return whole
