"""The clients of a process by URL, and the applications that use them.

Two applications share the connections to one server, and nothing else: each asks only the servers
of its own whether it is ready, claims its names on these, and leaves the others connected.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from treefold_http._redis.client import RedisUnavailable, SharedRedis
from treefold_http._runtime.name_space import NameSpace

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime

_clients: dict[str, SharedRedis] = {}
_of_applications: WeakKeyDictionary[Runtime, dict[str, SharedRedis]] = WeakKeyDictionary()
"""The clients whose commands an application needs; one that only claims names is in none."""


def shared_redis(url: str, *, effect: str, app: Runtime | None) -> SharedRedis:
    """Return the client of a URL, the same one for every caller.

    Args:
        effect: the effect of a failure for the caller, for the warning.
        app: the application that needs it; None for a script.

    Raises:
        TreefoldError: if the `redis` extra is not installed.
        ValueError: if the URL is not one of Redis.
    """
    client = _client_of(url)
    client.add_effect(effect)
    if app is not None:
        _of_applications.setdefault(app, {})[url] = client
    return client


def _client_of(url: str) -> SharedRedis:
    found = _clients.get(url)
    if found is None:
        found = _clients[url] = SharedRedis(url)
    return found


def used_redis(app: Runtime) -> list[SharedRedis]:
    """Return the clients whose commands an application needs."""
    return list(_of_applications.get(app, {}).values())


def every_redis() -> list[SharedRedis]:
    """Return the clients of this process."""
    return list(_clients.values())


async def claim_at_start(app: Runtime) -> None:
    """Claim the names of an application on every server that it is to use.

    A server that is away is asked at the first use.

    Raises:
        SettingsError: another deployment uses them.
    """
    for client in used_redis(app):
        await _claim_names(client, app.names)


async def ensure_claim(url: str, names: NameSpace) -> None:
    """Claim names on a server whose commands are sent by another client, such as subscribers.

    Raises:
        SettingsError: another deployment uses them.
    """
    await _claim_names(_client_of(url), names)


async def _claim_names(client: SharedRedis, names: NameSpace) -> None:
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


async def close_redis(*, besides: Iterable[Runtime] = ()) -> None:
    """Close the connections of the running event loop.

    Args:
        besides: applications whose servers stay connected.
    """
    kept = {client for app in besides for client in used_redis(app)}
    for client in _clients.values():
        if client not in kept:
            await client.close()
