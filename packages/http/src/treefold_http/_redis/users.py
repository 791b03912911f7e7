"""The clients of a process by URL, and the applications that use them.

Two applications share the connections to one server, and nothing else: each asks only the servers
of its own whether it is ready, claims its names on these, and leaves the others connected.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from treefold_http._redis.client import RedisUnavailable, SharedRedis
from treefold_http._runtime.name_space import NameSpace

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime

Uses: TypeAlias = dict[str, SharedRedis]
"""By URL, the clients whose commands an application needs."""

_clients: dict[str, SharedRedis] = {}
_uses: WeakKeyDictionary[Runtime, Uses] = WeakKeyDictionary()
"""The clients whose commands an application needs; one that only claims names is in none."""


class RedisUse:
    """The use of a server by one part of an application.

    Args:
        url: of the server; all uses of one URL have one client.
        effect: the effect of a failure for the part, for the warning.
        app: the application that needs it; None for a script.

    Raises:
        TreefoldError: if the `redis` extra is not installed.
        ValueError: if the URL is not one of Redis.
    """

    def __init__(self, url: str, *, effect: str, app: Runtime | None) -> None:
        self._client = _get_or_create_client(url)
        self._client.add_failure_effect(effect)
        self._uses: Uses = {} if app is None else _uses.setdefault(app, {})
        self._uses[url] = self._client

    @property
    def client(self) -> SharedRedis:
        """The client, for a command: its application needs the server from now on."""
        # again with each command: `reset_used_servers` may have removed it after a reload
        self._uses[self._client.url] = self._client
        return self._client


def reset_used_servers(app: Runtime, urls: Iterable[str]) -> None:
    """Count these servers as needed, and others once the application sends them a command again.

    Called after a reload, which may have removed the last use of a server.
    """
    uses = _uses.setdefault(app, {})
    uses.clear()
    uses.update({url: _get_or_create_client(url) for url in urls})


def _get_or_create_client(url: str) -> SharedRedis:
    if (found := _clients.get(url)) is None:
        found = _clients[url] = SharedRedis(url)
    return found


def list_used_redis_clients(app: Runtime) -> list[SharedRedis]:
    """Return the clients whose commands an application needs."""
    return list(_uses.get(app, {}).values())


def list_redis_clients() -> list[SharedRedis]:
    """Return the clients of this process."""
    return list(_clients.values())


async def claim_names_on_used_servers(app: Runtime) -> None:
    """Claim the names of an application on every server that it is to use.

    A server that is away is asked at the first use.

    Raises:
        SettingsError: another deployment uses them.
    """
    for client in list_used_redis_clients(app):
        await _claim_names_if_due(client, app.names)


async def ensure_claim(url: str, names: NameSpace) -> None:
    """Claim names on a server whose commands are sent by another client, such as subscribers.

    Raises:
        SettingsError: another deployment uses them.
    """
    await _claim_names_if_due(_get_or_create_client(url), names)


async def _claim_names_if_due(client: SharedRedis, names: NameSpace) -> None:
    if client.is_claim_due(names):
        with contextlib.suppress(RedisUnavailable):  # the use of the server reports it
            await client.claim_names(names)


def has_claims() -> bool:
    """Return True while this process claims names on any server."""
    return any(client.has_claims for client in _clients.values())


async def release_claims(names: NameSpace) -> None:
    """End the claims of this process to the names of an application that stops."""
    for client in _clients.values():
        await client.release_names(names)


async def close_redis(*, keep_open_for: Iterable[Runtime] = ()) -> None:
    """Close the connections of the running event loop.

    Args:
        keep_open_for: applications whose servers stay connected.
    """
    kept = {client for app in keep_open_for for client in list_used_redis_clients(app)}
    for client in _clients.values():
        if client not in kept:
            await client.close()
