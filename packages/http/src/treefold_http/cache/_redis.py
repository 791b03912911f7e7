"""A cache in Redis, for all workers: entries with the state of their tags at the time.

A tag is a random token that an invalidation replaces. An entry names its tags and their tokens; an
entry with an outdated token is a miss. So a value that was computed before an invalidation and
stored after it is never found. An invalidation that does not reach Redis is sent again before the
next command.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from treefold_http._redis import OwnRedis, RedisUnavailable

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime

Tokens: TypeAlias = "list[bytes] | None"
Stored: TypeAlias = "Tokens | int"

MAX_VALUE = 1024 * 1024
"""Bytes of a value that is kept."""
LONGEST_TTL = 30 * 24 * 3600
"""Seconds that an entry is kept, whatever ttl it is written with: the tokens of tags outlive it."""
_TAG_LIFE = (LONGEST_TTL + 24 * 3600) * 1000
"""Milliseconds that a token outlives every entry that may name a former one."""
_UNSENT = 10_000
"""Invalidations that wait for Redis to come back; more become one of all values."""

# A script, because the tags of an entry are known only once it is read: without one a read would
# take two round trips. A missing key is false in Lua, hence `or ''`.
_READ = """
local entry = redis.call('GET', KEYS[1])
local tokens = {0}
for i = 2, #KEYS do tokens[i] = redis.call('GET', KEYS[i]) or '' end
local head = entry and string.find(entry, '\\n', 1, true)
if not head then return tokens end
for name, token in string.gmatch(string.sub(entry, 1, head - 1), '([^ =;]+)=([^ =;]*);') do
  if (redis.call('GET', name) or '') ~= token then
    redis.call('DEL', KEYS[1])
    return tokens
  end
end
return {1, string.sub(entry, head + 1)}
"""

# ARGV has the tokens of the read that came before the computation. If one was replaced since, the
# entry is stored with the outdated token and is a miss at once; tokens of now would make it valid.
_WRITE = """
local head = ''
for i = 2, #KEYS do
  local token = ARGV[i + 1] or redis.call('GET', KEYS[i]) or ''
  head = head .. KEYS[i] .. '=' .. token .. ';'
end
return redis.call('SET', KEYS[1], head .. '\\n' .. ARGV[1], 'PX', ARGV[2])
"""


class RedisBackend:
    """Keeps bytes in Redis.

    Args:
        url: of the server.
        alias: the name of the cache; two caches of one server do not see each other.
        app: the application; None for a script.
        shared: keep values for all applications of the environment.

    Attributes:
        redis_url: the argument `url`.

    Raises:
        TreefoldError: if the `redis` extra is not installed.
        ValueError: if the URL is not one of Redis.
    """

    waits = True

    def __init__(self, url: str, alias: str, app: Runtime | None, *, shared: bool = False) -> None:
        self._redis = OwnRedis(url, effect="caches miss", app=app, shared=shared)
        self.redis_url: str | None = url
        self._alias = hash_name(alias)[:16]
        self._unsent: dict[str, tuple[str, ...]] = {}

    def read_entry(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, Tokens]:
        """Return the value, or None, and the tokens that `write_entry` stores.

        Without Redis there are neither, and `write_entry` has nothing to do.
        """
        keys = self._build_keys(key, tags)
        try:
            # invalidations that Redis has not heard come first, or the read finds what they
            # outdated
            if self._unsent:
                self._flush_commands()
            return _unpack_reply(self._redis.run_script_blocking(_READ, keys))
        except RedisUnavailable:
            return None, None

    async def aread_entry(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, Tokens]:
        """As `read_entry`."""
        keys = self._build_keys(key, tags)
        try:
            if self._unsent:
                await self._aflush_commands()
            return _unpack_reply(await self._redis.run_script(_READ, keys))
        except RedisUnavailable:
            return None, None

    def write_entry(
        self, key: str, value: bytes, ttl: float, tags: Sequence[str], read_version: Stored = -1
    ) -> None:
        """Keep a value with the tokens of a `read_entry`, or those of now."""
        if (words := _build_write_arguments(value, ttl, read_version)) is not None:
            with suppress(RedisUnavailable):
                self._redis.run_script_blocking(_WRITE, self._build_keys(key, tags), words)

    async def awrite_entry(
        self, key: str, value: bytes, ttl: float, tags: Sequence[str], read_version: Stored = -1
    ) -> None:
        """As `write_entry`."""
        if (words := _build_write_arguments(value, ttl, read_version)) is not None:
            with suppress(RedisUnavailable):
                await self._redis.run_script(_WRITE, self._build_keys(key, tags), words)

    def delete_entry(self, key: str) -> bool:
        """Remove a value; return True if there was one."""
        return bool(self._send_commands([("DEL", self._build_key(key))]))

    async def adelete_entry(self, key: str) -> bool:
        """As `delete_entry`."""
        return bool(await self._asend_commands([("DEL", self._build_key(key))]))

    def invalidate_tags(self, tags: Sequence[str]) -> bool:
        """Make every value with one of the tags a miss; return False if Redis did not hear it."""
        return self._send_commands(self._build_invalidations(tags)) is not None

    async def ainvalidate_tags(self, tags: Sequence[str]) -> bool:
        """As `invalidate_tags`."""
        return await self._asend_commands(self._build_invalidations(tags)) is not None

    def clear_entries(self) -> bool:
        """Make every value of this cache a miss; return False if Redis did not hear it."""
        return self.invalidate_tags([_ALL])

    async def aclear_entries(self) -> bool:
        """As `clear_entries`."""
        return await self.ainvalidate_tags([_ALL])

    def _send_commands(self, commands: Sequence[tuple[str, ...]]) -> Any:
        """Send commands with those before that were not heard; return the reply to the last."""
        self._queue_commands(commands)
        with suppress(RedisUnavailable):
            return self._flush_commands()[-1]
        return None

    async def _asend_commands(self, commands: Sequence[tuple[str, ...]]) -> Any:
        self._queue_commands(commands)
        with suppress(RedisUnavailable):
            return (await self._aflush_commands())[-1]
        return None

    def _queue_commands(self, commands: Sequence[tuple[str, ...]]) -> None:
        for command in commands:  # the latest last, so that its reply is the last
            self._unsent.pop(command[1], None)
            self._unsent[command[1]] = command
        # a Redis that stays away must not fill the memory
        if len(self._unsent) > _UNSENT:
            # Of each application of this process: all its values become a miss.
            beginnings = {key.rsplit(":", 2)[0] for key in self._unsent}
            names = (f"{one}:tag:{hash_name(_ALL)}" for one in beginnings)
            renewals = map(_build_new_token_command, names)
            self._unsent = {renewal[1]: renewal for renewal in renewals}

    def _flush_commands(self) -> list[Any]:
        # a copy, since the loop and threads add commands while these are on their way
        commands = list(self._unsent.values())
        replies = self._redis.run_transaction_blocking(commands) if commands else [True]
        self._discard_sent(commands)
        return replies

    async def _aflush_commands(self) -> list[Any]:
        commands = list(self._unsent.values())
        replies = await self._redis.run_transaction(commands) if commands else [True]
        self._discard_sent(commands)
        return replies

    def _discard_sent(self, commands: Sequence[tuple[str, ...]]) -> None:
        for command in commands:
            # a command for the same key that came meanwhile has another token and is still to be
            # sent
            if self._unsent.get(command[1]) == command:
                del self._unsent[command[1]]

    def _build_invalidations(self, tags: Sequence[str]) -> list[tuple[str, ...]]:
        return [_build_new_token_command(self._build_key(tag, "tag")) for tag in tags]

    def _build_keys(self, key: str, tags: Sequence[str]) -> list[str]:
        return [self._build_key(key), *(self._build_key(tag, "tag") for tag in (_ALL, *tags))]

    def _build_key(self, name: str, kind: str = "value") -> str:
        return self._redis.build_key(f"cache:{self._alias}:{kind}", hash_name(name))


_ALL = "\0all"
"""The tag of every entry; `clear_entries` replaces it. The names of an application have no NUL."""


def _build_new_token_command(key: str) -> tuple[str, ...]:
    return ("SET", key, secrets.token_hex(8), "PX", str(_TAG_LIFE))


def hash_name(name: str) -> str:
    """Return the SHA-256 of a name in hexadecimal: keys of any length and any characters."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _unpack_reply(reply: Any) -> tuple[bytes | None, Tokens]:
    return (reply[1], None) if reply[0] == 1 else (None, reply[1:])


def _build_write_arguments(value: bytes, ttl: float, tokens: Any) -> list[Any] | None:
    """Return the arguments of the script, or None if there is nothing to write."""
    # Redis was away at the read: without tokens of before the computation, an invalidation
    # during it would not be seen
    if tokens is None or len(value) > MAX_VALUE:
        return None
    # Redis refuses `PX 0`, which a ttl below half a millisecond would give
    milliseconds = max(1, round(min(ttl, LONGEST_TTL) * 1000))
    return [value, milliseconds, *(() if tokens == -1 else tokens)]
