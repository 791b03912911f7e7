"""The Redis connections that sessions, cache, rooms and rate limits share."""

from treefold_http._redis.client import (
    RedisUnavailable as RedisUnavailable,
    SharedRedis as SharedRedis,
    check_url as check_url,
    database_number as database_number,
    open_redis as open_redis,
)
from treefold_http._redis.own_redis import OwnRedis as OwnRedis, own_key as own_key
from treefold_http._redis.users import (
    RedisUse as RedisUse,
    begin_uses_again as begin_uses_again,
    close_redis as close_redis,
    ensure_claim as ensure_claim,
    used_redis as used_redis,
)
