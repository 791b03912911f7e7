"""The Redis connections that sessions, cache, rooms and rate limits share."""

from treefold_http._redis.client import (
    RedisUnavailable as RedisUnavailable,
    SharedRedis as SharedRedis,
    claim_known as claim_known,
    close_shared as close_shared,
    database_number as database_number,
    ensure_claim as ensure_claim,
    known_redis as known_redis,
    open_redis as open_redis,
    shared_redis as shared_redis,
)
from treefold_http._redis.own_redis import OwnRedis as OwnRedis, own_key as own_key
