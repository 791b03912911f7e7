"""`Connection`: the base of `Request` and `WebSocket`, an ASGI scope that is parsed lazily.

Making one costs a few slots; header, query and cookies are parsed at first use and kept. Routing,
limits and the body are handled elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from treefold_http._headers.cookies import MAX_COOKIES, parse_cookies
from treefold_http._runtime.background import BackgroundTasks
from treefold_http._runtime.exit_callbacks import ExitCallback, run_exit_callbacks
from treefold_http._wire.asgi import RawHeaders, Receive, Scope
from treefold_http._wire.datastructures import URL, Headers, MultiMapping, QueryParams, State

if TYPE_CHECKING:
    from treefold_http._bodies.reader import BodyReader
    from treefold_http._requests.principal import Principal, Verified
    from treefold_http._requests.read_notes import ReadNotes
    from treefold_http._runtime.plan import RoutePlan
    from treefold_http._runtime.runtime import Runtime
    from treefold_http._sessions.session import Session, SessionKeeper

_NO_PARAMS: Mapping[str, str] = MappingProxyType({})


class Address(NamedTuple):
    """One end of a connection."""

    host: str
    port: int


class Connection:
    """The reading side of an ASGI scope.

    Attributes:
        scope: the ASGI scope of the server.
        path_params: parameter name to value; values are always strings, percent-decoded once.
        id: the request id, as in `X-Request-ID` and every log line of this request.
        fields: the header as a dictionary of bytes, for fast look-ups; repeats are in `headers`.
        app: the application that serves it.
        plan: the plan of its route; None before routing.
        error: the unhandled exception of the connection.
        exit_callbacks: the callbacks, run when the connection is over.
        work: the background tasks; None if `background` was not used.
        answer_fields: header fields that middleware adds to any response; a field that the response
            sets itself is left out. Replace the list, never change it in place.
        opened_reader: the reader of the body after its first use.
        sent_status: the status of a response that may decide it when it is sent, such as a file;
            otherwise not set.
        session_keeper: reads and saves the session; set only by `Sessions`.
        opened_session: the session after its first use; set only by `Sessions`.
        notes: what a cache around the handler knows of its reads; set only by `cached`.
        verified: the outcomes of its credentials; set only by the first of them.
    """

    __slots__ = (
        "_cookies",
        "_headers",
        "_query",
        "_receive",
        "_state",
        "answer_fields",
        "app",
        "error",
        "exit_callbacks",
        "fields",
        "id",
        "notes",
        "opened_reader",
        "opened_session",
        "path_params",
        "plan",
        "scope",
        "sent_status",
        "session_keeper",
        "verified",
        "work",
    )

    sent_status: int
    session_keeper: SessionKeeper
    opened_session: Session | None
    notes: ReadNotes
    verified: dict[object, Verified]

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        app: Runtime,
        id: str,
        fields: Mapping[bytes, bytes] | None = None,
    ) -> None:
        self.scope = scope
        self._receive = receive
        self.app = app
        self.id = id
        self.fields = dict(scope["headers"]) if fields is None else fields
        self.path_params: Mapping[str, str] = _NO_PARAMS
        self.plan: RoutePlan | None = None
        self.error: BaseException | None = None
        self.exit_callbacks: list[ExitCallback] | None = None
        self.work: BackgroundTasks | None = None
        self.answer_fields: RawHeaders | None = None
        self.opened_reader: BodyReader | None = None

    @property
    def path(self) -> str:
        """The path, percent-decoded by the server, with `root_path`. Routing uses `raw_path`."""
        return self.scope["path"]

    @property
    def raw_path(self) -> bytes:
        """The path as sent, still percent-encoded."""
        return self.scope.get("raw_path") or self.scope["path"].encode()

    @property
    def root_path(self) -> str:
        """The prefix that the application is served below, such as `/api`; empty for none."""
        return self.scope.get("root_path", "").rstrip("/")

    @property
    def scheme(self) -> str:
        """`http` or `https`; `ws` or `wss` for a socket."""
        return self.scope.get("scheme", "http")

    @property
    def host(self) -> str:
        """The `Host` field: a name or address, with the port where one was sent."""
        return self.headers.get("host", "")

    @property
    def url(self) -> URL:
        """The requested URL, in parts."""
        query = self.scope.get("query_string", b"").decode("latin-1")
        return URL(self.scheme, self.host, path=self.raw_path.decode("latin-1"), query=query)

    @property
    def client(self) -> Address | None:
        """The peer address of the connection; None if the server does not report it."""
        client = self.scope.get("client")
        # One server sends the port as a text.
        return Address(client[0], int(client[1])) if client else None

    @property
    def route(self) -> str | None:
        """The matched URL template, such as `/v1/user/{id}`; None without a match."""
        return self.plan.route.template if self.plan and self.plan.route else None

    @property
    def headers(self) -> Headers:
        """The header fields: case-insensitive, repeats kept."""
        try:
            return self._headers
        except AttributeError:
            self._headers = Headers(self.scope["headers"])
            return self._headers

    def find_masked_segments(self) -> tuple[int, ...]:
        """Return the indexes of the path segments to mask in logs; as that of `Plan`."""
        plan = self.plan
        if plan is not None and plan.route is not None:
            return plan.find_masked_segments(self.raw_path) if plan.masked else ()
        return self.app.find_masked_segments(self.raw_path, self.scope.get("root_path", ""))

    def forget_headers(self) -> None:
        """Drop the parsed header, after middleware has replaced the header of the scope."""
        with suppress(AttributeError):
            del self._headers

    @property
    def query(self) -> QueryParams:
        """The parsed query string.

        Raises:
            BadRequest: when it is not UTF-8 or has more than 1,000 pairs.
        """
        try:
            return self._query
        except AttributeError:
            self._query = QueryParams.parse(self.scope.get("query_string", b""))
            return self._query

    @property
    def cookies(self) -> MultiMapping[str]:
        """The cookies of all `Cookie` fields in the order sent; the first of a name wins."""
        try:
            return self._cookies
        except AttributeError:
            fields = self.headers.getlist("cookie")
            pairs = [pair for field in fields for pair in parse_cookies(field)]
            # cut again: in HTTP/2 each cookie may have a field of its own (RFC 9113, 8.2.3)
            self._cookies = MultiMapping(pairs[:MAX_COOKIES])
            return self._cookies

    @property
    def state(self) -> State:
        """Attributes of your own; initially those of the lifespan state."""
        try:
            return self._state
        except AttributeError:
            self._state = State(self.scope.get("state"))
            return self._state

    @property
    def session(self) -> Session:
        """The session of the client, read at its first use.

        Raises:
            RuntimeError: without the middleware `Sessions`.
        """
        try:
            session = self.opened_session
        except AttributeError:
            raise RuntimeError(
                "This application has no sessions; add Sessions() of treefold.middleware to"
                " `middlewares` in Middleware/__init__.py"
            ) from None
        if session is None:
            is_socket = self.scope["type"] == "websocket"
            session = self.session_keeper.make_lazy_session(self, is_read_only=is_socket)
            self.opened_session = session
        return session

    @property
    def principal(self) -> Principal | None:
        """The caller that the first credential of the request has verified; None before that."""
        try:
            verified = self.verified
        except AttributeError:
            return None
        return next((each.principal for each in verified.values() if each.principal), None)

    @property
    def background(self) -> BackgroundTasks:
        """Tasks to start after the response; a parameter named `background` is the same object."""
        if self.work is None:
            self.work = BackgroundTasks()
        return self.work

    def drop_background_tasks(self) -> None:
        """Drop the background tasks of a handler that failed; those of middleware stay."""
        work, plan = self.work, self.plan
        if work is None:
            return
        if work.handled is not None:
            work.handled.drop()
        # without layers of the author, all tasks are those of the handler
        elif plan is not None and plan.route is not None and not plan.is_layered:
            work.drop()
            self.work = None

    def add_answer_fields(self, fields: RawHeaders) -> None:
        """Add header fields to the response; see `answer_fields`."""
        added = self.answer_fields
        # a new list, as the given one may belong to a middleware and serve all requests
        self.answer_fields = fields if added is None else added + fields

    async def leave(self, error: BaseException | None) -> BaseException | None:
        """Run the exit callbacks with the exception of the connection; return the resulting one."""
        # taken out first: an error of the response leads to another `leave`, and each runs once
        exit_callbacks, self.exit_callbacks = self.exit_callbacks, None
        return await run_exit_callbacks(exit_callbacks, error) if exit_callbacks else error

    def on_exit(self, leave: ExitCallback) -> None:
        """Register an exit callback; it is awaited with the exception of the connection or None."""
        if self.exit_callbacks is None:
            self.exit_callbacks = []
        self.exit_callbacks.append(leave)
