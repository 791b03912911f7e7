"""The Redis connections that sessions, cache, rooms and rate limits share."""

from treefold_http._redis.client import (
    RedisUnavailable as RedisUnavailable,
    SharedRedis as SharedRedis,
    close_shared as close_shared,
    known_redis as known_redis,
    open_redis as open_redis,
    shared_redis as shared_redis,
)
