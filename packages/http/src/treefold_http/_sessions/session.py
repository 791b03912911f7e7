"""`Session`: the mapping that handlers use; it is read at its first use.

It tracks its record and the changes to it; its keeper stores the record.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, MutableMapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from treefold_http._sessions.records import SessionRecord, UserId
from treefold_http._sessions.signing import generate_token

if TYPE_CHECKING:
    from treefold_http._sessions.signing import CsrfTokens


class SessionKeeper(Protocol):
    """Loads the session of a connection.

    Attributes:
        waits: True if reading a session has to await a store.
        loop: the event loop that serves; a plain function waits for it.
        csrf: makes and verifies tokens.
    """

    waits: bool
    loop: asyncio.AbstractEventLoop | None
    csrf: CsrfTokens

    def require_trusted_login_origin(self, connection: Any) -> None:
        """Refuse a login that a page of another site sent."""
        ...

    def warn_of_dropped_login_cookie(self, connection: Any) -> None:
        """Log, once per process, that the browser drops the cookie of a login."""
        ...

    def make_lazy_session(self, connection: Any, *, is_read_only: bool) -> Session:
        """Return the session of a connection; it is read later."""
        ...

    def has_cookie(self, connection: Any) -> bool:
        """Return True if the client sent a cookie of a session."""
        ...

    def read_record_sync(self, connection: Any) -> tuple[SessionRecord, bytes] | None:
        """Return the session record of a request and its stored form; only if not `waits`."""
        ...

    async def load_record(self, connection: Any) -> tuple[SessionRecord, bytes] | None:
        """Return the same as `read_record_sync`, from any store."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class Session(MutableMapping[str, Any]):
    """The session of one request: JSON values by name.

    Changes are saved before the response is sent, also those inside of a list or a dict, unless the
    status is 5xx. A session without a value and without a user is not kept and sets no cookie.

    Attributes:
        is_read_only: True for a WebSocket, which cannot set a cookie.
        former_id: the id in the store, if the session has got another one in this request.
        ended: the id in the store of the session that this request has ended.
        is_kept: True if a new session is stored even without a value: a form has its token.
        is_login: True if the request has logged a user in: the session is stored even if another
            request has removed the former one meanwhile.
        is_touched: True once the handler has used the session, which its response then depends on.
        is_closed: True once the response is being sent.
        is_changed: True once a value was set or removed, a method changed the session, or such a
            change was refused; changes inside of a value do not count.
    """

    _keeper: SessionKeeper
    _connection: Any
    _: KW_ONLY
    is_read_only: bool
    # None until it is read; its form in the store, None for a new session; why it cannot be read
    _record: SessionRecord | None = field(init=False, default=None)
    _stored: bytes | None = field(init=False, default=None)
    _error: BaseException | None = field(init=False, default=None)
    former_id: str | None = field(init=False, default=None)
    ended: str | None = field(init=False, default=None)
    is_kept: bool = field(init=False, default=False)
    is_login: bool = field(init=False, default=False)
    is_touched: bool = field(init=False, default=False)
    is_closed: bool = field(init=False, default=False)
    is_changed: bool = field(init=False, default=False)

    @property
    def is_new(self) -> bool:
        """True if the request has no session, or an expired one."""
        self._load_and_mark_used()
        return self._stored is None

    @property
    def user(self) -> UserId | None:
        """The user id passed to `login`; None for an anonymous session."""
        return self._load_and_mark_used().user

    @property
    def created(self) -> float:
        """The start time, in seconds since 1970."""
        return self._load_and_mark_used().created

    async def load(self) -> Session:
        """Read the session now; needed only with `Sessions(preload=False)`.

        Raises:
            ServiceUnavailable: if the store is unavailable.
        """
        await self.preload_record()
        self._load_and_mark_used()
        return self

    def begin_for(self, user: UserId) -> None:
        """Make this the session of a user, with a new id and a new lifetime.

        Values of another user are dropped; those of an anonymous session stay.
        """
        record = self._load_record_for_change()
        if record.user not in (None, user):
            record.data = {}
        record.user = user
        # the absolute timeout counts from the login, not from the first page of the visitor
        record.created = time.time()
        # A new id: one that was known before the login (an attacker planted it) must
        # not become that of a user (session fixation).
        self.rotate()
        self.is_login = True

    def rotate(self) -> None:
        """Replace the id; the former one is revoked when the response is sent."""
        record = self._load_record_for_change()
        # after two rotations in one request the store still has the first id, and only that
        if self._stored is not None and self.former_id is None:
            self.former_id = record.id
        record.id = generate_token()
        self.is_kept = True

    def end(self) -> None:
        """Remove the session from the store and the client; values set later begin a new one."""
        record = self._load_record_for_change()
        if self._stored is not None:
            # after a rotation in the same request the store has the former id
            self.ended = self.former_id or record.id
        self._record = SessionRecord(generate_token(), time.time())
        self._stored = self.former_id = None
        self.is_kept = self.is_login = False

    def csrf_token(self) -> str:
        """Return a token for a form or the header `X-CSRF-Token`; each call returns another one."""
        record = self._load_and_mark_used()
        # A token is bound to the id of its session: an empty one is stored too, or the form that is
        # sent back would belong to none.
        if self._stored is None and not self.is_kept:
            self._load_record_for_change()
            self.is_kept = True
        return self._keeper.csrf.make_token(record.id)

    def has_csrf_token(self, token: str) -> bool:
        """Return True for a token that `csrf_token` made for this session."""
        return self._keeper.csrf.verify_token(self._load_and_mark_used().id, token)

    def __getitem__(self, name: str) -> Any:
        return self._load_and_mark_used().data[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if type(name) is not str:
            raise TypeError(f"A session key must be text, got {name!r}")
        self._load_record_for_change().data[name] = value

    def __delitem__(self, name: str) -> None:
        del self._load_record_for_change().data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load_and_mark_used().data)

    def __len__(self) -> int:
        return len(self._load_and_mark_used().data)

    def __repr__(self) -> str:
        state = "not read" if self._record is None else f"keys={list(self._record.data)}"
        return f"<Session {state}>"

    async def preload_record(self) -> None:
        """Read the session, from any store; a failure is raised at its first use."""
        if self._record is None and self._error is None:
            try:
                self._set_loaded_or_new_record(await self._keeper.load_record(self._connection))
            except Exception as error:  # the handler may not use the session
                self._error = error

    def get_record_if_used(self) -> tuple[SessionRecord, bytes | None] | None:
        """Return the record and its stored form, for the keeper; None if it was never used."""
        if self._record is None or not self.is_touched:
            return None
        return self._record, self._stored

    def compute_fingerprint(self) -> str | None:
        """Return what identifies the session and its values as they were read; None once changed.

        Every new session has the same one: it has no values.
        """
        record = self._load_and_mark_used()
        if self.is_changed:
            return None
        if self._stored is None:
            return ""
        content = record.to_json()
        # `is_changed` does not see a change inside of a value (`session["cart"].append(1)`)
        return f"{record.id} {content.hex()}" if content == self._stored else None

    def is_worth_keeping(self, record: SessionRecord) -> bool:
        """Return True for a new session with a value, a user, a rotated id or an issued token."""
        return bool(record.data) or record.user is not None or self.is_kept

    def _set_loaded_or_new_record(self, loaded: tuple[SessionRecord, bytes] | None) -> None:
        if loaded is None:
            self._record = SessionRecord(generate_token(), time.time())
        else:
            self._record, self._stored = loaded

    def _load_and_mark_used(self) -> SessionRecord:
        self.is_touched = True
        if self._record is None:
            self._load_record_blocking()
        assert self._record is not None  # noqa: S101 - reading sets it or raises
        return self._record

    def _load_record_blocking(self) -> None:
        keeper = self._keeper
        # without a cookie there is nothing to wait for, whatever the store
        if self._error is None and not (keeper.waits and keeper.has_cookie(self._connection)):
            record = None if keeper.waits else keeper.read_record_sync(self._connection)
            self._set_loaded_or_new_record(record)
            return
        if self._error is None:
            loop = keeper.loop
            # to wait in the thread of the loop for work on that loop would never end
            if loop is None or _is_running_loop(loop):
                raise RuntimeError(
                    "The session is not loaded; write `await request.session.load()` first,"
                    " or leave out preload=False"
                )
            asyncio.run_coroutine_threadsafe(self.preload_record(), loop).result()
        if self._error is not None:
            raise self._error

    def _load_record_for_change(self) -> SessionRecord:
        record = self._load_and_mark_used()
        self.is_changed = True
        if self.is_read_only:
            raise RuntimeError("A WebSocket cannot change its session; do so in an HTTP request")
        if self.is_closed:
            raise RuntimeError(
                "The session was saved when the response started; change it in the handler,"
                " not in a stream or background work"
            )
        return record


def _is_running_loop(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
