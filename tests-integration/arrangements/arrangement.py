"""One arrangement: an application as data, before a line of it is written.

Everything that can differ between two arrangements is a member of `Arrangement`. Nothing here is
random, knows how a member is written in Python, or what follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from arrangements.targets import Target


class Credential(StrEnum):
    """What tells one client from another."""

    NONE = "none"
    BEARER = "bearer"
    JWT = "jwt"
    BASIC = "basic"
    HEADER_KEY = "key in a header"
    QUERY_KEY = "key in the query"
    COOKIE_KEY = "key in a cookie"
    SESSION = "session"
    ADDRESS = "client address"
    LANGUAGE = "accept-language"
    TENANT = "tenant header"


UNVERIFIED = frozenset(
    {Credential.NONE, Credential.ADDRESS, Credential.LANGUAGE, Credential.TENANT}
)
"""Credentials that every value satisfies: they decide what is answered, never whether."""


class Reading(StrEnum):
    """How a handler learns who calls."""

    REQUEST = "handler(request) by itself"
    DEPENDENCY = "Depends(who) with who(request)"
    DECLARED = "declared: a shipped dependency, Header(), Query() or Cookie()"
    STATE = "request.state, set by middleware"
    CONTEXT = "a context variable, set by middleware"
    PROVIDER = "a provider of providers.py"


class Access(StrEnum):
    """How the author's code takes a value out of a request."""

    GET = "get"
    ITEM = "item"
    ALL = "all fields at once"
    SCOPE = "the ASGI scope"


class Guard(StrEnum):
    """What refuses a client."""

    NONE = "none"
    DEPENDENCY = "Depends(guard)"
    ALLOWLIST = "IPAllowlist"
    HOSTS = "TrustedHosts"
    CSRF = "CSRF"
    FUNCTION = "function"
    BEFORE = "object with before"
    HTTP = "object with http"
    WEBSOCKET = "object with websocket"
    BOTH = "object with http and websocket"


OWN_GUARDS = frozenset({Guard.FUNCTION, Guard.BEFORE, Guard.HTTP, Guard.WEBSOCKET, Guard.BOTH})
"""Guards that the author has written as middleware."""


class Rule(StrEnum):
    """What a guard of the author looks at."""

    GATE = "the field X-Gate"
    PEER = "the client's address"


class Cover(StrEnum):
    """What a guard in the list of middleware covers."""

    LIST = "everything"
    UNDER = "under(prefix)"
    MODULE = "the middlewares of a handler module"


class CacheSite(StrEnum):
    """Where responses are kept."""

    DECORATOR = "@cached on the handler"
    LIST = "cached in the list"
    UNDER = "under(prefix, cached)"


class CacheKey(StrEnum):
    """What the author says of the key of a kept response."""

    NOTHING = "nothing"
    KEY = "key="
    VARY = "vary="


class Limit(StrEnum):
    """A limit on requests of an address."""

    NONE = "none"
    WIDE = "never reached"
    TIGHT = "reached"


TIGHT_BURST = 8
"""Requests of one address that a tight limit lets pass."""


class Session(StrEnum):
    """Where sessions are kept."""

    NONE = "none"
    COOKIE = "cookie"
    MEMORY = "memory"
    REDIS = "redis"


class Echo(StrEnum):
    """What besides the credential a handler puts into its response."""

    PATH = "the path as sent"
    QUERY = "the query, in order"
    BODY = "the body of a GET"
    OWNER = "a value of the session"
    TAG = "a field of the client"
    GREETING = "a kept result of a function"


class Answer(StrEnum):
    """What a handler returns."""

    TABLE = "a dict"
    RESPONSE = "a Response of its own"
    SHARED = "one Response of the module"


class Entry(StrEnum):
    """One entry of the project's list of middleware."""

    SESSIONS = "Sessions"
    CACHE_LIST = "cached"
    CACHE_UNDER = "cached under a prefix"
    LIMIT = "RateLimit"
    GUARD = "guard"
    IDENTITY = "who calls"
    STAMP = "stamp"
    METRICS = "Metrics"
    SECURITY_HEADERS = "SecurityHeaders"
    GZIP = "GZip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """An application.

    Attributes:
        access: how fields are read by hand.
        is_plain: handlers are plain functions, in worker threads.
        rule: what a guard of the author looks at.
        prefix: segments that an `under` of the guard covers; `*` is any one.
        is_mistyped: the prefix has a typing error, and covers nothing.
        cached_prefix: segments that an `under` of a cache covers.
        cache_redis, limit_redis: kept in Redis, not in memory.
        targets: what clients ask for.
        entries: the list of middleware, the first outermost.
    """

    seed: int
    credential: Credential
    reading: Reading
    access: Access
    is_plain: bool
    guard: Guard
    rule: Rule
    cover: Cover
    prefix: tuple[str, ...]
    is_mistyped: bool
    caches: frozenset[CacheSite]
    cached_prefix: tuple[str, ...]
    cache_key: CacheKey
    cache_redis: bool
    limit: Limit
    limit_redis: bool
    session: Session
    targets: tuple[Target, ...]
    echoes: frozenset[Echo]
    answer: Answer
    entries: tuple[Entry, ...]

    @property
    def uses_redis(self) -> bool:
        """True if a server is needed."""
        return (
            (self.cache_redis and bool(self.caches))
            or (self.limit_redis and self.limit is not Limit.NONE)
            or self.session is Session.REDIS
        )

    def has_before(self, first: Entry, second: Entry) -> bool:
        """Return True if both entries are there, the first one further out."""
        there = self.entries
        return first in there and second in there and there.index(first) < there.index(second)
