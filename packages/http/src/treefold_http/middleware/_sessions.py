"""Sessions: a mapping of values for each client, read when a handler first touches it.

Session data and stores are in `_sessions`; this module connects them to requests and WebSockets.
docs/guides/sessions.md is the page for authors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from treefold_http._extensions.calls import session_store_of
from treefold_http._headers.cookies import SameSite
from treefold_http._responses.endpoints import CallNext
from treefold_http._runtime.boot_report import SettingsError
from treefold_http._session_keepers.cookies import CookieForm
from treefold_http._session_keepers.keepers import CookieKeeper, Keeper, Lifetimes, StoreKeeper
from treefold_http._sessions.session import Session
from treefold_http._sessions.signing import require_secrets
from treefold_http._sessions.stores import MemorySessions, RedisSessions
from treefold_http.middleware._csrf import CSRF
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._extensions.members import SessionStore
    from treefold_http._requests.request import Request
    from treefold_http._responses.response import Response
    from treefold_http._runtime.runtime import Runtime
    from treefold_http._websockets.websocket import WebSocket

IDLE = 2 * 3600
"""Seconds without a request after which a login ends."""
ANONYMOUS = 1800
"""The same for a session without a user."""
ABSOLUTE = 14 * 24 * 3600
"""Seconds after the login when it ends in any case."""

StoreName = Literal["memory", "redis", "database", "cookie"]


class Sessions:
    """Attach a session to every request: `request.session["cart"] = []`.

    A `CSRF` beside it guards requests that change something; without one in the list it is added.

    Args:
        store: `memory` (this process), `redis` (of the setting `redis_url`), `database` (of the
            project), `cookie` (signed, readable by the client, cannot be revoked), or an object as
            `extensions.SessionStore`. With `redis` given it is Redis.
        redis: the URL of a Redis server.
        shared: keep sessions on Redis for all applications of the environment that say so; they
            need one secret and one cookie.
        secret: signs cookies and tokens; several with the newest first. Without it the settings
            `secret_key` and `secret_key_fallbacks` do.
        cookie: the name of the cookie, without a prefix.
        domain: shares the cookie with subdomains, which costs it the `__Host-` prefix.
        path: the path below which the cookie is sent.
        samesite: `lax`, `strict` or `none`; pages of other sites need `none`.
        partitioned: keep the cookie apart for each site whose pages use it; by default with
            `samesite="none"`, as browsers keep no other cookie for them.
        idle: seconds after which a session that is not used ends.
        anonymous: the same for a session without a user.
        absolute: seconds after which every session ends.
        preload: read the session of a client before the handler if the store has to be waited for;
            without it a handler writes `await request.session.load()` first.
        csrf: False leaves the protection against cross-site requests out.
        trusted_origins: other origins whose pages may send requests with the session.

    Attributes:
        store: the name of its store, or an object.
        cookie: how its cookie looks.
        guard: the `CSRF` that is put in where the list has none; None with `csrf=False`.

    Raises:
        ValueError: for a lifetime that is not positive, or an unknown store.
    """

    def __init__(
        self,
        *,
        store: StoreName | SessionStore | None = None,
        redis: str | None = None,
        shared: bool = False,
        secret: str | Sequence[str] | None = None,
        cookie: str = "session",
        domain: str | None = None,
        path: str = "/",
        samesite: SameSite = "lax",
        partitioned: bool | None = None,
        idle: float = IDLE,
        anonymous: float = ANONYMOUS,
        absolute: float = ABSOLUTE,
        preload: bool = True,
        csrf: bool = True,
        trusted_origins: Sequence[str] = (),
    ) -> None:
        for name, seconds in (("idle", idle), ("anonymous", anonymous), ("absolute", absolute)):
            if not seconds > 0:
                raise ValueError(f"Sessions {name} must be a number of seconds, got {seconds!r}")
        if isinstance(store, str) and store not in ("memory", "redis", "database", "cookie"):
            raise ValueError(
                f"Sessions store must be 'memory', 'redis', 'database' or 'cookie', got {store!r}"
            )
        if redis is not None and store not in (None, "redis"):
            message = f"Sessions cannot have both redis= and store={store!r}; leave one of them out"
            raise ValueError(message)
        if shared and not (redis or store == "redis"):
            raise ValueError("Sessions(shared=True) must have store='redis' or redis=, got neither")
        self.store: StoreName | SessionStore = store or ("redis" if redis else "memory")
        self._redis = redis
        self._shared = shared
        self._secrets = [secret] if isinstance(secret, str) else list(secret or ())
        if partitioned is None:
            partitioned = samesite == "none"
        self.cookie = CookieForm(
            name=cookie, domain=domain, path=path, samesite=samesite, partitioned=partitioned
        )
        self._lifetimes = Lifetimes(idle, min(anonymous, idle), absolute)
        self._preload = preload
        self.guard = None
        if csrf:
            names = self.cookie.possible_names
            self.guard = CSRF(trusted_origins=trusted_origins, cookies=names)
        self._keepers: WeakKeyDictionary[Runtime, Keeper] = WeakKeyDictionary()
        # a process has one application as a rule: an identity check costs less than a weak
        # dictionary
        self._last: tuple[Runtime | None, Any] = (None, None)
        self._waits = not (self.is_in_memory or self.store == "cookie")

    @property
    def is_in_memory(self) -> bool:
        """True if each process has sessions of its own."""
        return self.store == "memory" or isinstance(self.store, MemorySessions)

    def prepare(self, app: Runtime, extensions: Sequence[Any]) -> None:
        """Make ready for an application; called at boot.

        Raises:
            SettingsError: without a secret of 32 bytes, a Redis URL or a session store of the
                project, where they are needed.
        """
        settings = app.settings
        given = self._secrets
        if not given and settings.secret_key is not None:
            given = [settings.secret_key, *settings.secret_key_fallbacks]
        secrets = require_secrets(given, dev=app.dev)
        form, lifetimes, environment = self.cookie, self._lifetimes, app.names.environment
        if self.store == "cookie":
            keeper: Keeper = CookieKeeper(secrets, form, lifetimes, environment=environment)
        else:
            store = self._find_or_make_store(app, extensions)
            keeper = StoreKeeper(secrets, form, lifetimes, store, environment=environment)
        keeper.trusted_origins = None if self.guard is None else self.guard.trusted
        self._keepers[app] = keeper

    def _find_or_make_store(self, app: Runtime, extensions: Sequence[Any]) -> SessionStore:
        if self.store == "memory":
            return _get_or_create_memory_store(app, self.cookie.name)
        if self.store == "redis":
            if (url := self.find_redis_url(app)) is None:
                raise SettingsError(
                    "Sessions(store='redis') needs an address; set TREEFOLD_REDIS_URL, or pass"
                    " redis='redis://...'"
                )
            return RedisSessions(url, app, shared=self._shared)
        if self.store == "database":
            if (found := session_store_of(extensions)) is None:
                raise SettingsError(
                    "Sessions(store='database') needs a database; install treefold-orm and set"
                    " databases, or choose another store"
                )
            return found
        return self.store  # pyright: ignore[reportReturnType] - no name is left

    def find_redis_url(self, app: Runtime) -> str | None:
        """Return the URL of the Redis that has the sessions, None for another store."""
        return (self._redis or app.settings.redis_url or None) if self.store == "redis" else None

    def beside(self, entries: Sequence[Any]) -> Sequence[Any]:
        """Return the `CSRF` that has to run inside of it, unless the list has one.

        Raises:
            SettingsError: for a `CSRF` that comes before it, where there is no session yet.
        """
        own = [entry for entry in entries if isinstance(entry, CSRF)]
        if not own:
            return () if self.guard is None else (self.guard,)
        if any(entry is own[0] for entry in entries[: entries.index(self)]):
            raise SettingsError("CSRF needs the session; list it after Sessions")
        # a login is refused by the list of the guard that runs, which is the author's here
        for keeper in self._keepers.values():
            keeper.trusted_origins = own[0].trusted
        return ()

    def for_route(self, route: Route | None, entries: Sequence[Any]) -> Any:
        """Return the middleware for one route: plain hooks if the store needs no `await`."""
        del route, entries
        return self if self._waits else _Hooks(self)

    def find_keeper(self, app: Runtime) -> Keeper:
        """Return the keeper that `prepare` made for an application."""
        if self._last[0] is not app:
            self._last = (app, self._keepers[app])
        return self._last[1]

    async def http(self, request: Request, call_next: CallNext) -> Response:
        """Offer the session to a request, and save it before the answer."""
        keeper = request.session_keeper = self.find_keeper(request.app)
        request.opened_session = None
        # for each request: one application may serve several loops one after the other, as in tests
        keeper.loop = asyncio.get_running_loop()
        if self._preload and keeper.has_cookie(request):
            await request.session.preload_record()
        response = await call_next(request)
        session = request.opened_session
        if session is not None and session.is_touched:
            await _save_session(session, keeper, request, response.status)
        return response

    async def websocket(self, websocket: WebSocket, call_next: Any) -> None:
        """Offer the session to a socket, which can read it."""
        keeper = websocket.session_keeper = self.find_keeper(websocket.app)
        websocket.opened_session = None
        if keeper.waits and keeper.has_cookie(websocket):
            await websocket.session.preload_record()
        await call_next(websocket)


class _Hooks:
    """The same for sessions that can be read and saved without waiting."""

    def __init__(self, sessions: Sessions) -> None:
        self._keeper_of = sessions.find_keeper
        self.websocket = sessions.websocket

    def before(self, request: Request) -> None:
        request.session_keeper = self._keeper_of(request.app)
        request.opened_session = None

    def after(self, request: Request, response: Response) -> None:
        session = request.opened_session
        if session is not None and session.is_touched:
            work = _save_session(session, self._keeper_of(request.app), request, response.status)
            try:
                # A coroutine that never suspends ends at its first step. Run here, it costs no task
                # and no layer of awaits around the handler.
                work.send(None)
            except StopIteration:
                return
            raise RuntimeError("A store without awaits must not suspend")


async def _save_session(session: Session, keeper: Keeper, request: Request, status: int) -> None:
    """Save the session; its fields go beside the response, which a module may keep."""
    # a change from now on raises, instead of being lost after the record was encoded
    session.is_closed = True
    known = request.answer_fields or ()
    missing = [] if _VARY_OF_ROUTE in known else [_VARY]
    request.add_answer_fields(missing if _NO_STORE in known else [*missing, _NO_STORE])
    await keeper.save_session(session, request, status)


_VARY, _NO_STORE = (b"vary", b"Cookie"), (b"cache-control", b"no-store")
"""They keep an answer that depends on a session out of shared caches."""
_VARY_OF_ROUTE = (b"vary", b"cookie")
"""The same field of a route with a credential in a cookie."""


_memories: WeakKeyDictionary[Runtime, dict[str, MemorySessions]] = WeakKeyDictionary()


def _get_or_create_memory_store(app: Runtime, cookie_name: str) -> MemorySessions:
    """Return the memory of an application, which outlives a reload of `Middleware/`."""
    return _memories.setdefault(app, {}).setdefault(cookie_name, MemorySessions())
