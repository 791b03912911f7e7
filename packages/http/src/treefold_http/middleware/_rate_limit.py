"""Limit how many requests a client makes (S-93 to S-99, D-17); handshakes of sockets count too.

A bucket is a client at a route template: other spellings of a path, other methods and refused
requests count in the same one. Without Redis the limit is that of one process.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from treefold_http._headers.header_fields import encode_header
from treefold_http._redis import RedisUnavailable, build_redis_key, check_redis_url
from treefold_http._runtime.boot_report import TreefoldError
from treefold_http._wire.addresses import UNIX, to_client_network
from treefold_http._wire.errors import ServiceUnavailable, TooManyRequests
from treefold_http._wire.root_path import below_root
from treefold_http.middleware._gcra import MemoryTable, hash_client_key, parse_rate
from treefold_http.middleware._relayed import is_from_untrusted_proxy, warn_of_untrusted_proxy

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._requests.request import Request
    from treefold_http._responses.endpoints import CallNext
    from treefold_http._responses.response import Response
    from treefold_http._runtime.runtime import Runtime
    from treefold_http._websockets.websocket import WebSocket
    from treefold_http._wire.asgi import RawHeaders
    from treefold_http.middleware._redis_limits import RedisLimits
    from treefold_router import Route

KeyOf = Callable[[Any], "str | int | None"]

_SECOND = 1_000_000_000
MAX_KEYS = 100_000
"""Clients that are counted at one time; a new one takes the place of one with a free limit."""

_SECONDS = {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}}
_POLICY = "requests (`q`) and the seconds until all of them are back (`w`)"
_LEFT = "Requests that are left (`r`), and the seconds until all are back (`t`)"


class RateLimit:
    """Answer 429 with `Retry-After` to a client that makes too many requests.

    Every answer carries `RateLimit-Policy` and `RateLimit`. The client is its address, IPv6 by /64;
    behind a proxy put `ProxyHeaders` first. With `redis`, all processes share the limit.

    Args:
        rate: such as `100/hour`, `5/min` or `10/15s`.
        burst: requests at once; by default as many as the rate names.
        key: a plain function that returns the client to count, once it has checked who that is,
            such as the id of a user; None counts the address. With a value that a client can make
            up, such as an unchecked API key, there is no limit.
        per_route: count each route by itself; False counts all that this entry covers together.
        redis: URL of a Redis server; True is that of the setting `redis_url`.
        shared: count together with the other applications of the environment on this Redis that say
            so; each application counts for itself otherwise.
        without_redis: `pass` lets requests through while Redis does not answer, `refuse` answers
            503; either within 100 ms.
        name: in the fields and in the keys on Redis; entries with one name and one rate share. In
            the fields of one response, later limits of a name are numbered: `default-2`.
        max_keys: clients that are remembered without Redis, for each entry.

    Raises:
        ValueError: for a rate, a burst, a name or a URL that is none.
        TypeError: for an async `key`.
        TreefoldError: if the `redis` extra is not installed.
    """

    decides_access = True  # a cache around it would pass it by

    def __init__(
        self,
        rate: str,
        *,
        burst: int | None = None,
        key: KeyOf | None = None,
        per_route: bool = True,
        redis: str | bool = False,
        shared: bool = False,
        without_redis: Literal["pass", "refuse"] = "pass",
        name: str = "default",
        max_keys: int = MAX_KEYS,
    ) -> None:
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise ValueError(f"RateLimit name must be letters and digits, got {name!r}")
        if without_redis not in ("pass", "refuse"):
            raise ValueError(f"without_redis must be 'pass' or 'refuse', got {without_redis!r}")
        if inspect.iscoroutinefunction(key):
            raise TypeError(
                "RateLimit key must be a plain function, got an async one; check the credential in"
                " a middleware before it, and return what that has kept in request.state"
            )
        if shared and not redis:
            raise ValueError("RateLimit(shared=True) must have redis=, got none")
        if max_keys < 1:
            raise ValueError(f"RateLimit max_keys must be at least 1, got {max_keys!r}")
        self.rate = parse_rate(rate, burst)
        self.name = name
        self.key = key
        self.per_route = per_route
        self.passes = without_redis == "pass"
        self._max_keys = max_keys
        self._tables: WeakKeyDictionary[Runtime, MemoryTable] = WeakKeyDictionary()
        self._last: tuple[Runtime | None, MemoryTable] = (None, MemoryTable(self.rate, max_keys))
        self._on_redis: WeakKeyDictionary[Runtime, RedisLimits] = WeakKeyDictionary()
        self._redis = redis
        self.shared = shared
        refusal = {"headers": {"Retry-After": _SECONDS}}
        can_fail = redis and not self.passes
        self.openapi_responses = {429: refusal, 503: refusal} if can_fail else {429: refusal}
        self.openapi_headers = {
            "RateLimit-Policy": f"The limit: {_POLICY}: `{_format_policy(self, name)}`",
            "RateLimit": _LEFT,
        }
        if isinstance(redis, str):
            check_redis_url(redis, "Redis")

    @property
    def is_in_memory(self) -> bool:
        """True if each process counts for itself."""
        return not self._redis

    def prepare(self, app: Runtime, extensions: Sequence[Any]) -> None:
        """Look up the Redis of the application, if it is needed.

        Raises:
            TreefoldError: if the settings name no Redis where it is needed.
        """
        del extensions
        if self._redis:
            self.find_or_open_redis(app)

    def find_redis_url(self, app: Runtime) -> str | None:
        """Return the URL of the Redis that counts, None without one."""
        return (app.settings.redis_url if self._redis is True else self._redis) or None

    def for_route(self, route: Route | None, entries: Sequence[Any]) -> Any:
        """Return the limit of a route."""
        bucket = _Bucket(self, route, self._build_unique_label(entries))
        return _OnRedis(bucket, self) if self._redis else _InMemory(bucket, self)

    def find_or_open_redis(self, app: Runtime) -> RedisLimits:
        """Return the counts of an application on its Redis; see `find_or_add_table`."""
        if (found := self._on_redis.get(app)) is None:
            from treefold_http.middleware._redis_limits import RedisLimits

            if (url := self.find_redis_url(app)) is None:
                raise TreefoldError(
                    "RateLimit(redis=True) needs an address; set TREEFOLD_REDIS_URL, or pass"
                    " redis='redis://...'"
                )
            effect = "pass" if self.passes else "answer 503"
            found = RedisLimits(url, effect=f"rate limits {effect}", app=app)
            self._on_redis[app] = found
        return found

    def find_or_add_table(self, app: Runtime) -> MemoryTable:
        """Return the counts of an application.

        Applications in one process, as in tests, may have the modules of a project in common.
        """
        last, table = self._last
        if last is not app:
            table = self._tables.setdefault(app, MemoryTable(self.rate, self._max_keys))
            self._last = (app, table)
        return table

    def _build_unique_label(self, entries: Sequence[Any]) -> str:
        outer = itertools.takewhile(lambda entry: entry is not self, entries)
        same = sum(isinstance(entry, RateLimit) and entry.name == self.name for entry in outer)
        return f"{self.name}-{same + 1}" if same else self.name


def _format_policy(limit: RateLimit, label: str) -> str:
    return f'"{label}";q={limit.rate.burst};w={limit.rate.window_seconds}'


class _Bucket:
    """Names the bucket of a request at one route, and tells the client of it."""

    def __init__(self, limit: RateLimit, route: Route | None, label: str) -> None:
        self._key = limit.key
        self._is_miss = route is None and limit.per_route
        self._end = f" {route.template}" if route is not None and limit.per_route else ""
        self.rate = limit.rate
        self.passes = limit.passes
        # Later requests are checked for proxies only with the field of most, or if refused.
        self._is_first = True
        self._policy = encode_header("ratelimit-policy", _format_policy(limit, label))
        self._format = f'"{label}";r=%d;t=%d'.encode()

    def build_bucket_key(self, connection: Connection) -> str:
        client = connection.scope.get("client")
        who = client[0] if client and client[0] else UNIX
        if ":" in who:
            # one client has a whole /64, and could use another address of it for each request
            who = to_client_network(who)
        if self._key is not None and (named := self._key(connection)) is not None:
            # the word keeps a key "192.0.2.1" apart from the bucket of that address
            who = f"key {named}"
        elif self._is_first or b"x-forwarded-for" in connection.fields:
            self._is_first = False
            self._warn_if_untrusted_proxy(connection)
        return who + (_find_template_ignoring_method(connection) if self._is_miss else self._end)

    def _warn_if_untrusted_proxy(self, connection: Connection) -> None:
        if is_from_untrusted_proxy(connection):
            warn_of_untrusted_proxy(connection, "RateLimit", "counts all clients as one")

    def add_headers_or_refuse(self, connection: Connection, wait: int, used: int) -> None:
        """Add the fields; refuse where the client must wait.

        Args:
            wait, used: nanoseconds, as `MemoryTable.count_request_and_compute_wait` returns them.

        Raises:
            TooManyRequests: with the seconds to wait.
        """
        rate = self.rate
        left = 0 if wait else (rate.window_nanoseconds - used) // rate.interval
        fields: RawHeaders = [
            self._policy,
            (b"ratelimit", self._format % (left, -(-used // _SECOND))),
        ]
        connection.add_answer_fields(fields)
        if wait:
            if self._key is None:
                self._warn_if_untrusted_proxy(connection)
            # rounded up: a client that waits as long as it was told must be let in
            seconds = -(-wait // _SECOND)
            message = f"Too many requests; try again in {seconds} s"
            raise TooManyRequests(message, headers={"Retry-After": str(seconds)})


def _find_template_ignoring_method(connection: Connection) -> str:
    """The template of a path that has routes, for other methods; one bucket for all others."""
    path = below_root(connection.raw_path, connection.scope.get("root_path", ""))
    route = connection.app.find_route(path)
    return "" if route is None else f" {route.template}"


class _InMemory:
    def __init__(self, bucket: _Bucket, limit: RateLimit) -> None:
        self._bucket = bucket
        self._table_of = limit.find_or_add_table

    def before(self, connection: Connection) -> None:
        wait, used = self._table_of(connection.app).count_request_and_compute_wait(
            self._bucket.build_bucket_key(connection)
        )
        self._bucket.add_headers_or_refuse(connection, wait, used)


class _OnRedis:
    def __init__(self, bucket: _Bucket, limit: RateLimit) -> None:
        self._bucket = bucket
        self._limits_of = limit.find_or_open_redis
        # Microseconds, because numbers in Lua are doubles: a time in nanoseconds since 1970 exceeds
        # 2**53, up to which they are exact.
        self._interval = max(1, bucket.rate.interval // 1000)
        self._capacity = self._interval * bucket.rate.burst
        # With the numbers: the stored time means another use under another rate, so that a new rate
        # begins with new keys.
        self._kind = f"limit:{limit.name}:{self._interval}:{bucket.rate.burst}"
        self._shared = limit.shared

    async def http(self, request: Request, call_next: CallNext) -> Response:
        await self._count_and_apply_limit(request)
        return await call_next(request)

    async def websocket(self, websocket: WebSocket, call_next: Any) -> None:
        await self._count_and_apply_limit(websocket)
        await call_next(websocket)

    async def _count_and_apply_limit(self, connection: Connection) -> None:
        bucket = self._bucket
        names, limits = connection.app.names, self._limits_of(connection.app)
        client = hash_client_key(bucket.build_bucket_key(connection))
        key = build_redis_key(names, self._kind, client, shared=self._shared)
        try:
            if not self._shared:
                await limits.claim_names_if_due(names)
            count = limits.count_request_and_compute_wait
            wait, used = await count(key, self._interval, self._capacity)
        except RedisUnavailable:
            if bucket.passes:
                return
            message = "Requests cannot be counted now"
            raise ServiceUnavailable(message, headers={"Retry-After": "1"}) from None
        bucket.add_headers_or_refuse(connection, wait * 1000, used * 1000)
