"""The end of a test run on Redis: no other run reads its names, so their keys are deleted."""

from __future__ import annotations

from typing import Any

from treefold_http._redis.users import list_redis_clients

LIMIT = 2.0
"""Seconds that a server may take for one command."""


def delete_test_run_keys(run: str) -> None:
    """Delete the keys of a test run on every server that this process has used.

    A server that does not answer keeps them; those that expire do so within 31 days.

    Args:
        run: its number, such as `test-3f2a11c0`.
    """
    for client in list_redis_clients():
        delete_test_run_keys_on(client.url, run)


def delete_test_run_keys_on(url: str, run: str) -> None:
    """Delete the keys of a test run on one server, if it answers."""
    from redis import Redis, RedisError  # installed: a client of it is known

    made: Any = Redis  # its annotations are not complete
    try:
        with made.from_url(url, socket_timeout=LIMIT, socket_connect_timeout=LIMIT) as client:
            # the run is followed by the colon of a key, or by a dot and the configured environment
            for names in (f"treefold:*:{run}[:.]*", f"treefold-shared:{run}[:.]*"):
                if keys := list(client.scan_iter(names, count=1000)):
                    client.unlink(*keys)
    except (RedisError, OSError):
        return
