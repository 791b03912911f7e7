"""Create clients of redis-py: the import, the check of a URL, and common options.

The library is imported at the first use, never with this package. Time limits and reports of
failures belong to `client`.
"""

from __future__ import annotations

import importlib
from typing import Any

from treefold_http._errors import TreefoldError


def import_redis(feature: str) -> Any:
    """Return the module `redis.asyncio`.

    Raises:
        TreefoldError: if the `redis` extra is not installed; the message names the feature.
    """
    try:
        return importlib.import_module("redis.asyncio")
    except ImportError as error:
        raise TreefoldError(
            f'{feature} needs redis; install it: pip install "treefold[redis]"'
        ) from error


def check_url(url: str, feature: str) -> None:
    """Refuse a URL that redis-py cannot use.

    Raises:
        TreefoldError: if the `redis` extra is not installed.
        ValueError: if the URL is not one of Redis.
    """
    import_redis(feature).ConnectionPool.from_url(url)


def open_redis(url: str, *, retries: int, **options: Any) -> Any:
    """Return an asyncio client of redis-py; it connects at its first command.

    Args:
        retries: how often a command is sent again on a new connection, immediately. The retries
            of redis-py itself sleep for seconds.
    """
    redis = import_redis("Redis")
    return redis.from_url(url, retry=_retry("asyncio.", retries), **_OPTIONS, **options)


def open_blocking_redis(url: str, *, retries: int, **options: Any) -> Any:
    """Return a client of redis-py for worker threads; as `open_redis` in everything else."""
    redis: Any = importlib.import_module("redis")
    return redis.Redis.from_url(url, retry=_retry("", retries), **_OPTIONS, **options)


_OPTIONS = {"protocol": 2, "socket_keepalive": True}


def _retry(half: str, retries: int) -> Any:
    retry: Any = importlib.import_module(f"redis.{half}retry").Retry
    return retry(importlib.import_module("redis.backoff").NoBackoff(), retries)
