"""Load and save sessions: from a store, or from the cookie itself.

A keeper belongs to one `Sessions` of one application. The cookie of a stored session is a random
id with its signature; a forged id causes no access to the store.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic, time
from typing import TYPE_CHECKING, ClassVar

from treefold_http._redis import RedisUnavailable
from treefold_http._session_keepers.cookies import CookieForm
from treefold_http._session_keepers.origins import is_own_or_trusted_origin
from treefold_http._sessions.records import SessionRecord, decode_record
from treefold_http._sessions.session import Session
from treefold_http._sessions.signing import (
    CsrfTokens,
    Signer,
    decode_base64url,
    encode_base64url,
    hash_token,
)
from treefold_http._sessions.stores import MemorySessions
from treefold_http._wire.errors import Forbidden, ServiceUnavailable
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._extensions.members import SessionStore
    from treefold_http._requests.connection import Connection

TOUCHES = 20_000
"""Sessions whose last extension a process remembers."""
MAX_VALUE = 256 * 1024
"""Bytes of one session: a client that makes it grow takes little of the store from the others."""
RENEW_AFTER = 8
"""A session is extended after an eighth of its idle timeout, not with every request."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The timeouts of sessions, in seconds: idle, idle without a user, and absolute."""

    idle: float
    anonymous: float
    absolute: float

    def compute_seconds_left(self, record: SessionRecord) -> float:
        """Return the remaining lifetime of a record; 0 or less if it has expired."""
        left = self.compute_seconds_to_absolute_timeout(record)
        return min(self.choose_idle_timeout(record), left)

    def compute_seconds_to_absolute_timeout(self, record: SessionRecord) -> float:
        """Return the seconds until the absolute timeout of a record."""
        return record.created + self.absolute - time()

    def choose_idle_timeout(self, record: SessionRecord) -> float:
        """Return the idle timeout of a record."""
        return self.anonymous if record.user is None else self.idle


class Keeper(ABC):
    """Loads and saves the sessions of requests.

    Args:
        environment: of the application; a cookie of another one has no meaning here, whether or not
            both have one secret.

    Attributes:
        waits: True if reading a session has to await a store.
        loop: the event loop that serves; a plain function waits for it.
        csrf: makes and verifies tokens.
        trusted_origins: other origins that may log a user in; None for all of them.
        kind: where sessions are kept; a cookie of one kind has no meaning for the other.
    """

    kind: ClassVar[str]
    waits = False
    loop: asyncio.AbstractEventLoop | None = None
    trusted_origins: frozenset[str] | None = None
    _has_warned = False

    def __init__(
        self,
        secrets: Sequence[bytes],
        cookie: CookieForm,
        lifetimes: Lifetimes,
        *,
        environment: str,
    ) -> None:
        self.cookie = cookie
        self.csrf = CsrfTokens(secrets, cookie.name, environment)
        self._signer = Signer(secrets, ("session", self.kind, cookie.name, environment))
        self._lifetimes = lifetimes

    def make_lazy_session(self, connection: Connection, *, is_read_only: bool) -> Session:
        """Return the session of a connection; it is read later."""
        return Session(self, connection, is_read_only=is_read_only)

    def has_cookie(self, connection: Connection) -> bool:
        """Return True if the client sent a cookie of a session."""
        return bool(self.cookie.read_cookie_value(connection))

    @abstractmethod
    def read_record_sync(self, connection: Connection) -> tuple[SessionRecord, bytes] | None:
        """Return the session record of a request and its stored form; only if not `waits`."""

    async def load_record(self, connection: Connection) -> tuple[SessionRecord, bytes] | None:
        """Return the same as `read_record_sync`, from any store.

        Raises:
            ServiceUnavailable: if the store is unavailable.
        """
        return self.read_record_sync(connection)

    @abstractmethod
    async def save_session(self, session: Session, connection: Connection, status: int) -> None:
        """Save the changes, and set or delete the cookie.

        Args:
            status: of the response; a failure of the server saves nothing.

        Raises:
            ServiceUnavailable: if the store is unavailable.
        """

    def require_trusted_login_origin(self, connection: Connection) -> None:
        """Refuse a login that a page of another site sent.

        Raises:
            Forbidden: unless the origin of the request is trusted.
        """
        trusted = self.trusted_origins
        if trusted is not None and is_own_or_trusted_origin(connection, trusted) is False:
            raise Forbidden("A page of another site sent this login")

    def warn_of_dropped_login_cookie(self, connection: Connection) -> None:
        """Log, once per process, that the browser drops the cookie of a login."""
        if self._has_warned or not self.cookie.is_dropped_by_browser(connection):
            return
        self._has_warned = True
        get_logger().warning(
            "login from %s, a page of another site: its browser drops the session, whose cookie is"
            " SameSite=%s; serve both from one site, or set Sessions(samesite='none')",
            connection.headers.get("origin", "an unknown origin"),
            self.cookie.samesite.capitalize(),
        )

    def _is_alive(self, record: SessionRecord | None) -> bool:
        return record is not None and self._lifetimes.compute_seconds_left(record) > 0


class StoreKeeper(Keeper):
    """Keeps sessions in a store; the cookie has an id."""

    kind = "stored"

    def __init__(
        self,
        secrets: Sequence[bytes],
        cookie: CookieForm,
        lifetimes: Lifetimes,
        store: SessionStore,
        *,
        environment: str,
    ) -> None:
        super().__init__(secrets, cookie, lifetimes, environment=environment)
        self._store = store
        self._memory = store if isinstance(store, MemorySessions) else None
        self.waits = self._memory is None
        self._touched: OrderedDict[str, float] = OrderedDict()

    def read_record_sync(self, connection: Connection) -> tuple[SessionRecord, bytes] | None:
        assert self._memory is not None  # noqa: S101 - called only if not `waits`
        if (id := self._read_verified_id(connection)) is None:
            return None
        return self._decode_record(id, self._memory.read(hash_token(id)))

    async def load_record(self, connection: Connection) -> tuple[SessionRecord, bytes] | None:
        if (id := self._read_verified_id(connection)) is None:
            return None
        try:
            return self._decode_record(id, await self._store.get(hash_token(id)))
        except RedisUnavailable as error:
            raise _make_unavailable_error() from error

    async def save_session(self, session: Session, connection: Connection, status: int) -> None:
        try:
            # also with a 5xx: a user who was logged out must not be logged in after an error
            if session.ended is not None:
                await self._store.delete(hash_token(session.ended))
            outcome = session.get_record_if_used() if status < 500 else None
            value = None
            if outcome is not None:
                value = await self._save_and_make_cookie_value(session, *outcome)
        except RedisUnavailable as error:
            raise _make_unavailable_error() from error
        if outcome is not None and value is not None:
            left = self._lifetimes.compute_seconds_to_absolute_timeout(outcome[0])
            self.cookie.set_cookie(connection, value, left)
        elif session.ended is not None:
            self.cookie.delete_cookie(connection)

    async def _save_and_make_cookie_value(
        self, session: Session, record: SessionRecord, stored: bytes | None
    ) -> str | None:
        """Save the changes; return the cookie value if the client needs a new one."""
        seconds = self._lifetimes.compute_seconds_left(record)
        former = session.former_id
        if stored is not None and former is None:
            value = record.to_json()
            # the bytes are compared, since a change inside of a list calls no method of the session
            if value == stored:
                await self._extend_expiry_if_due(record.id, seconds)
            else:  # False: a concurrent logout has removed the session, which stays removed
                _check_session_size(value)
                await self._store.replace(hash_token(record.id), value, seconds=seconds)
            return None
        if not session.is_worth_keeping(record):
            return None
        value = record.to_json()
        _check_session_size(value)
        existed = former is None or await self._store.delete(hash_token(former))
        if not (existed or session.is_login):
            return None  # a concurrent logout: a new id must not revive the session
        await self._store.set(hash_token(record.id), value, seconds=seconds)
        return f"{record.id}.{self._signer.sign_data(record.id.encode())}"

    async def _extend_expiry_if_due(self, id: str, seconds: float) -> None:
        now = monotonic()
        # an eighth of the shortest timeout (`Sessions` takes the smaller one for `anonymous`), so
        # that no kind of session ends between two extensions
        if now - self._touched.get(id, float("-inf")) < self._lifetimes.anonymous / RENEW_AFTER:
            return
        self._touched[id] = now
        self._touched.move_to_end(id)
        if len(self._touched) > TOUCHES:
            self._touched.popitem(last=False)
        await self._store.touch(hash_token(id), seconds=seconds)

    def _read_verified_id(self, connection: Connection) -> str | None:
        id, _, signature = self.cookie.read_cookie_value(connection).rpartition(".")
        return id if id and self._signer.verify_signature(id.encode(), signature) else None

    def _decode_record(self, id: str, value: bytes | None) -> tuple[SessionRecord, bytes] | None:
        record = None if value is None else decode_record(id, value)
        if value is None or record is None or not self._is_alive(record):
            return None
        return record, value


class CookieKeeper(Keeper):
    """Keeps sessions in the cookie, signed and readable by the client; nothing can revoke them."""

    kind = "cookie"

    def read_record_sync(self, connection: Connection) -> tuple[SessionRecord, bytes] | None:
        text, _, signature = self.cookie.read_cookie_value(connection).rpartition(".")
        signed = text.encode("utf-8", "replace")
        if not text or not self._signer.verify_signature(signed, signature):
            return None
        # two blanks split into three empty parts, which are no record
        renewed, id, value = (decode_base64url(text) or b"  ").split(b" ", 2)
        record = decode_record(id.decode(), value)
        if record is None or not self._is_alive(record):
            return None
        unused, idle = time() - float(renewed), self._lifetimes.choose_idle_timeout(record)
        if unused > idle:
            return None
        # an empty stored form differs from every record, so the response renews the cookie
        return record, b"" if unused > idle / RENEW_AFTER else value

    async def save_session(self, session: Session, connection: Connection, status: int) -> None:
        outcome = session.get_record_if_used() if status < 500 else None
        if outcome is not None and self._renews_cookie(session, *outcome):
            record = outcome[0]
            text = encode_base64url(b"%d %b %b" % (time(), record.id.encode(), record.to_json()))
            signed = f"{text}.{self._signer.sign_data(text.encode())}"
            left = self._lifetimes.compute_seconds_to_absolute_timeout(record)
            self.cookie.set_cookie(connection, signed, left)
        elif session.ended is not None:
            self.cookie.delete_cookie(connection)

    def _renews_cookie(self, session: Session, record: SessionRecord, stored: bytes | None) -> bool:
        if stored is None:
            return session.is_worth_keeping(record)
        return session.former_id is not None or record.to_json() != stored


def _check_session_size(value: bytes) -> None:
    if len(value) > MAX_VALUE:
        raise ValueError(
            f"A session must have at most {MAX_VALUE} bytes, got {len(value)}; keep large values in"
            " a database or a cache, and their key in the session"
        )


def _make_unavailable_error() -> ServiceUnavailable:
    return ServiceUnavailable("Sessions are not available now", headers={"Retry-After": "1"})
