"""`RecordingRequest`: a request that notes what is read of it.

`record_reads` changes the class of a request for the time that a cache waits for an answer, so that
one recorder serves dependencies, inner middleware and handlers, also those that got the request
before, and a request without a cache around it pays nothing. Accessors that read the scope or the
header through `self` are inherited: they note through the views.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from treefold_http._bodies.reader import BodyReader
from treefold_http._requests.connection import Address, Connection
from treefold_http._requests.principal import Principal
from treefold_http._requests.read_notes import ReadNotes
from treefold_http._requests.recorded_views import (
    RecordedAddress,
    RecordedFields,
    RecordedHeaders,
    RecordedQuery,
    RecordedScope,
    RecordedState,
)
from treefold_http._requests.request import Request
from treefold_http._sessions.session import Session
from treefold_http._wire.asgi import Scope
from treefold_http._wire.datastructures import Headers, QueryParams, State

# the slots themselves, which the properties below hide in the subclass
_scope: Any = vars(Connection)["scope"]
_fields: Any = vars(Connection)["fields"]
_id: Any = vars(Connection)["id"]


def read_unrecorded_scope(request: Connection) -> Scope:
    """Return the scope of a request, whether it is recorded or not; nothing is noted."""
    return _scope.__get__(request)


def _read_recorded_scope(request: Connection) -> Scope:
    return RecordedScope(read_unrecorded_scope(request), request.notes)


def _write_scope(request: Connection, scope: Scope) -> None:
    _scope.__set__(request, scope)


def _read_recorded_fields(request: Connection) -> Mapping[bytes, bytes]:
    return RecordedFields(_fields.__get__(request), request.notes)


def _write_fields(request: Connection, fields: Mapping[bytes, bytes]) -> None:
    _fields.__set__(request, fields)


def _read_and_note_id(request: Connection) -> str:
    request.notes.note_name("id")
    return _id.__get__(request)


class RecordingRequest(Request):
    """A request inside of a cache that has no answer for it yet."""

    # Python changes `__class__` only between classes of one layout
    __slots__ = ()

    scope: Any = property(_read_recorded_scope, _write_scope)
    fields: Any = property(_read_recorded_fields, _write_fields)
    id: Any = property(_read_and_note_id)

    @property
    def client(self) -> Address | None:
        """The peer address of the connection; None if the server does not report it."""
        if not (client := read_unrecorded_scope(self).get("client")):
            self.notes.note_name("client.host")
            return None
        return RecordedAddress.from_address(Address(client[0], int(client[1])), self.notes)

    @property
    def headers(self) -> Headers:
        """The header fields."""
        return RecordedHeaders(Headers(read_unrecorded_scope(self)["headers"]), self.notes)

    @property
    def query(self) -> QueryParams:
        """The parsed query string."""
        raw = read_unrecorded_scope(self).get("query_string", b"")
        made = RecordedQuery.parse(raw)
        made.notes = self.notes
        return made

    @property
    def state(self) -> State:
        """Attributes of your own."""
        try:
            plain = self._state
        except AttributeError:
            plain = self._state = State(read_unrecorded_scope(self).get("state"))
        return RecordedState(plain, self.notes)

    @property
    def principal(self) -> Principal | None:
        """The caller of the request."""
        self.notes.note_name("principal")
        return super().principal

    @property
    def session(self) -> Session:
        """The session of the client."""
        self.notes.note_name("session")
        return super().session

    @property
    def reader(self) -> BodyReader:
        """The one reader of the body."""
        self.notes.note_name("body")
        return super().reader


@contextmanager
def record_reads(request: Request, notes: ReadNotes) -> Generator[None]:
    """Note what is read of a request inside of the block."""
    request.notes = notes
    request.__class__ = RecordingRequest
    try:
        yield
    finally:
        request.__class__ = Request
