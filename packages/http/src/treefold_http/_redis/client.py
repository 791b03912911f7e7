"""One Redis for all of a process: commands that wait 100 ms at most, one warning per 10 seconds.

Connections belong to an event loop. While the server is unavailable, one command a second tries it
again; all others fail immediately. The caller decides the effect of a failure (a cache miss, a 503,
an unlimited request). `users` has the clients of a process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import importlib
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from treefold_http._redis import claims
from treefold_http._redis.claims import Claim
from treefold_http._runtime.boot_report import TreefoldError, import_extra
from treefold_http._runtime.name_space import NameSpace
from treefold_logging import get_logger

Word: TypeAlias = str | bytes | int | float
_T = TypeVar("_T")

TIMEOUT = 0.1
"""Seconds that a command may take, connecting included."""
TICKS = 10
"""Ticks of the time limit, each a turn of the event loop."""
LATE = 1.5
"""The most ticks that one late tick counts for."""
CONCURRENT = 32
"""Commands that one event loop sends at the same time; the others wait their turn."""
PAUSE = 1.0
"""Seconds without an attempt once the server is unavailable."""
TIMEOUTS = 3
"""Timeouts in a row after which the server is unavailable; one refused connection suffices."""
WARN_EVERY = 10.0
"""Seconds between two warnings, since each request would log one while Redis is away."""


class RedisUnavailable(TreefoldError):
    """Redis did not answer in time, refused the connection, or answered with an error."""


class SharedRedis:
    """The client of one URL; made by `users.RedisUse`.

    Args:
        url: `redis://`, `rediss://` or `unix://`.

    Attributes:
        url: the argument.

    Raises:
        TreefoldError: if the `redis` extra is not installed.
        ValueError: if the URL is not one of Redis.
    """

    def __init__(self, url: str) -> None:
        check_redis_url(url, "Redis")
        errors = import_redis("Redis")
        self._failures = (errors.RedisError, OSError)
        # an error reply (out of memory, a read-only replica) is a ResponseError: the server is
        # there
        self._refused = (errors.ConnectionError, OSError)
        self.url = url
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClient]
        self._loops = WeakKeyDictionary()
        self._blocking: Any = None  # the client of worker threads
        self._effects: dict[str, None] = {}  # an ordered set
        self._timeouts = 0  # in a row
        self._away_until = 0.0  # until then no command is sent
        # True from a warning until Redis answers again, and when that was
        self._is_told = False
        self._warned = float("-inf")
        self._claims: dict[str, tuple[Claim, float]] = {}

    def add_failure_effect(self, effect: str) -> None:
        """Add an effect of failures to the warning, such as `sessions answer 503`."""
        self._effects[effect] = None

    async def execute(self, *command: Word) -> Any:
        """Send one command and return its reply; replies are bytes, never text.

        Raises:
            RedisUnavailable: after 100 ms at most.
        """
        return await self._run_command(lambda client: client.execute_command(*command))

    async def run_transaction(self, commands: Sequence[Sequence[Word]]) -> list[Any]:
        """Send commands as one transaction (MULTI) and return their replies.

        Raises:
            RedisUnavailable: as `execute`.
        """

        async def send(client: Any) -> list[Any]:
            # MULTI: no other client sees the effect of only some of the commands
            async with client.pipeline(transaction=True) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                return await pipe.execute()

        return await self._run_command(send)

    async def run_script(self, source: str, keys: Sequence[str], words: Sequence[Word] = ()) -> Any:
        """Run a Lua script, which is atomic, and return its reply.

        Raises:
            RedisUnavailable: as `execute`.
        """

        async def send(client: Any) -> Any:
            loop = self._get_or_create_loop_client()
            if source not in loop.scripts:
                # sends the hash of the script, and its text only to a server that does not know it
                loop.scripts[source] = client.register_script(source)
            return await loop.scripts[source](keys=keys, args=words)

        return await self._run_command(send)

    def execute_blocking(self, *command: Word) -> Any:
        """Send one command from a worker thread, where no event loop runs.

        Raises:
            RedisUnavailable: after 100 ms for connecting and 100 ms for each read.
        """
        return self._run_command_blocking(lambda client: client.execute_command(*command))

    def run_transaction_blocking(self, commands: Sequence[Sequence[Word]]) -> list[Any]:
        """Send commands as one transaction from a worker thread.

        Raises:
            RedisUnavailable: as `execute_blocking`.
        """

        def send(client: Any) -> list[Any]:
            with client.pipeline(transaction=True) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                return pipe.execute()

        return self._run_command_blocking(send)

    def run_script_blocking(
        self, source: str, keys: Sequence[str], words: Sequence[Word] = ()
    ) -> Any:
        """Run a Lua script from a worker thread.

        Raises:
            RedisUnavailable: as `execute_blocking`.
        """
        return self._run_command_blocking(methodcaller("eval", source, len(keys), *keys, *words))

    def is_claim_due(self, names: NameSpace) -> bool:
        """Return True if `claim_names` has to ask the server before the names are used."""
        if names.is_test:
            return False
        known = self._claims.get(names.own)
        return known is None or time.monotonic() >= known[1] or not known[0].covers_names(names)

    async def claim_names(self, names: NameSpace) -> None:
        """Claim the names of an application for its deployment.

        Raises:
            RedisUnavailable: as `execute`.
            SettingsError: another deployment uses them.
        """
        claim = Claim(names)
        answer = await self._run_command(partial(_send_claim, claim=claim))
        self._check_and_store_claim(claim, answer)

    def claim_names_blocking(self, names: NameSpace) -> None:
        """As `claim_names`, from a worker thread."""
        claim = Claim(names)
        answer = self._run_command_blocking(partial(_send_claim, claim=claim))
        self._check_and_store_claim(claim, answer)

    @property
    def has_claims(self) -> bool:
        """True while this process claims names on the server."""
        return bool(self._claims)

    async def release_names(self, names: NameSpace) -> None:
        """End the claim to the names of an application that stops."""
        if (known := self._claims.pop(names.own, None)) is not None:
            with contextlib.suppress(RedisUnavailable):
                await self.execute(*known[0].release_command)

    def release_claims_blocking(self) -> None:
        """End all claims of this process, which ends; a lost server costs 100 ms."""
        known, self._claims = self._claims, {}
        if not known:
            return
        # a new connection: those of the event loops are theirs, and at the exit no loop runs
        options = {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT}
        client = open_blocking_redis(self.url, retries=0, **options)
        with contextlib.suppress(*self._failures):  # the server forgets them by itself
            for claim, _ in known.values():
                client.execute_command(*claim.release_command)

    def _check_and_store_claim(self, claim: Claim, reply: Any) -> None:
        claim.refuse_other_deployment(reply)
        # once, whatever the number of claims: the callback ends all of them
        if not self._claims:
            atexit.register(self.release_claims_blocking)
        self._claims[claim.names.own] = (claim, time.monotonic() + claims.RENEW_AFTER)

    async def ping_server(self) -> None:
        """Check that the server answers, also during the pause after a failure.

        Raises:
            RedisUnavailable: as `execute`.
        """
        # a probe must see the server return, and not only that a pause still runs
        self._away_until = 0.0
        await self.execute("PING")

    async def close(self) -> None:
        """Close the connections of the running event loop; the next command opens new ones."""
        if (loop := self._loops.pop(asyncio.get_running_loop(), None)) is not None:
            await loop.client.aclose()
        blocking, self._blocking = self._blocking, None
        if blocking is not None:
            blocking.close()

    def _get_or_create_loop_client(self) -> _LoopClient:
        running = asyncio.get_running_loop()
        if (found := self._loops.get(running)) is None:
            found = self._loops[running] = _LoopClient(self.url)
        return found

    async def _run_command(self, send: Callable[[Any], Awaitable[_T]]) -> _T:
        # before the wait for a turn: while the server is away, commands fail at once and do not
        # queue
        self._raise_during_pause()
        loop = self._get_or_create_loop_client()
        async with loop.turns:
            self._begin_attempt_or_raise()  # the server may have failed while this command waited
            try:
                async with _TimeLimit(TIMEOUT):
                    reply = await send(loop.client)
            # the built-in one, of `_TimeLimit`; redis-py has a class of its own of that name
            except TimeoutError as error:
                text = "no reply within 100 ms"
                raise self._record_failure(text, error, is_timeout=True) from error
            except self._failures as error:
                raise self._record_failure(str(error), error) from error
        if self._timeouts or self._away_until:
            self._record_recovery()
        return reply

    def _run_command_blocking(self, send: Callable[[Any], _T]) -> _T:
        self._begin_attempt_or_raise()
        if (client := self._blocking) is None:
            client = self._blocking = open_blocking_redis(
                self.url, retries=1, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT
            )
        try:
            reply = send(client)
        except self._failures as error:
            # by name, for the class of redis-py and the built-in one alike
            is_timeout = "timeout" in type(error).__name__.lower()
            raise self._record_failure(str(error), error, is_timeout=is_timeout) from error
        if self._timeouts or self._away_until:
            self._record_recovery()
        return reply

    def _raise_during_pause(self) -> None:
        if self._away_until and time.monotonic() < self._away_until:
            raise RedisUnavailable("Redis is unavailable; the next attempt is within a second")

    def _begin_attempt_or_raise(self) -> None:
        self._raise_during_pause()
        if self._away_until:
            self._away_until = time.monotonic() + PAUSE  # one attempt; other commands fail

    def _record_failure(
        self, text: str, error: BaseException, *, is_timeout: bool = False
    ) -> RedisUnavailable:
        now = time.monotonic()
        # One slow reply is no sign of a lost server (a long script of another client, a save to
        # disk), while a refused connection is.
        self._timeouts = self._timeouts + 1 if is_timeout else 0
        if self._timeouts >= TIMEOUTS or (not is_timeout and isinstance(error, self._refused)):
            self._away_until = now + PAUSE
        if now - self._warned >= WARN_EVERY:
            self._warned, self._is_told = now, True
            effects = ", ".join(self._effects) or "commands fail"
            get_logger().warning("redis unavailable, %s: %s", effects, text)
        return RedisUnavailable(f"Redis is unavailable: {text}")

    def _record_recovery(self) -> None:
        if self._away_until and self._is_told:
            get_logger().info("redis available again")
            self._is_told = False
        self._timeouts, self._away_until = 0, 0.0


class _LoopClient:
    """The state of one event loop: a client with its connections, and a semaphore for commands."""

    def __init__(self, url: str) -> None:
        # `_TimeLimit` covers connecting and reading; the timeouts of redis-py count the delays of a
        # busy loop as those of the server
        self.client = open_redis(url, retries=1, socket_timeout=None, socket_connect_timeout=None)
        self.turns = asyncio.Semaphore(CONCURRENT)
        self.scripts: dict[str, Any] = {}


class _TimeLimit:
    """A timeout that a busy event loop does not shorten.

    The time is counted in ticks, and a late tick counts little more than a punctual one: the loop
    was busy, and the reply may be in the socket, unread.
    """

    def __init__(self, seconds: float) -> None:
        self._tick = seconds / TICKS
        self._left = seconds
        self._loop = asyncio.get_running_loop()
        # without a deadline at first: the last tick sets it
        self._limit = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        self._schedule_tick()

    def _schedule_tick(self) -> None:
        self._began = self._loop.time()
        self._timer = self._loop.call_later(self._tick, self._subtract_elapsed_tick)

    def _subtract_elapsed_tick(self) -> None:
        now = self._loop.time()
        # a loop that was blocked for 200 ms between two ticks has used 15 ms of the 100
        self._left -= min(now - self._began, LATE * self._tick)
        if self._left > 0:
            self._schedule_tick()
        else:
            self._limit.reschedule(now)

    async def __aexit__(self, *error: Any) -> bool | None:
        self._timer.cancel()
        return await self._limit.__aexit__(*cast("tuple[Any, Any, Any]", error))


def _send_claim(client: Any, *, claim: Claim) -> Any:
    return client.eval(claims.SCRIPT, 1, claim.deployment_key, *claim.script_arguments)


def import_redis(feature: str) -> Any:
    """Return the module `redis.asyncio`.

    Raises:
        TreefoldError: if the `redis` extra is not installed; the message names the feature.
    """
    message = f'{feature} needs redis; install it: pip install "treefold[redis]"'
    return import_extra("redis.asyncio", message)


def check_redis_url(url: str, feature: str) -> None:
    """Refuse a URL that redis-py cannot use.

    Raises:
        TreefoldError: if the `redis` extra is not installed.
        ValueError: if the URL is not one of Redis.
    """
    import_redis(feature).ConnectionPool.from_url(url)


def parse_database_number(url: str) -> int:
    """Return the number of the database that a URL names; channels are common to all of them."""
    pool: Any = import_redis("Redis").ConnectionPool.from_url(url)
    return int(pool.connection_kwargs.get("db") or 0)


def open_redis(url: str, *, retries: int, **options: Any) -> Any:
    """Return an asyncio client of redis-py; it connects at its first command.

    Args:
        retries: how often a command is sent again on a new connection, immediately. The retries
            of redis-py itself sleep for seconds.
    """
    redis = import_redis("Redis")
    own = _choose_connection_options(url)
    return redis.from_url(url, retry=_make_retry("asyncio.", retries), **own, **options)


def open_blocking_redis(url: str, *, retries: int, **options: Any) -> Any:
    """Return a client of redis-py for worker threads; as `open_redis` in everything else."""
    redis: Any = importlib.import_module("redis")
    own = _choose_connection_options(url)
    return redis.Redis.from_url(url, retry=_make_retry("", retries), **own, **options)


def _choose_connection_options(url: str) -> dict[str, Any]:
    # redis-py refuses every connection of a Unix socket with the option for TCP
    return {"protocol": 2} | ({} if url.startswith("unix:") else {"socket_keepalive": True})


def _make_retry(module_prefix: str, retries: int) -> Any:
    retry: Any = importlib.import_module(f"redis.{module_prefix}retry").Retry
    return retry(importlib.import_module("redis.backoff").NoBackoff(), retries)
