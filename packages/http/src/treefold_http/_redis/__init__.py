"""The Redis connections that sessions, cache, rooms and rate limits share."""

from treefold_http._redis.client import (
    RedisUnavailable as RedisUnavailable,
    SharedRedis as SharedRedis,
    check_redis_url as check_redis_url,
    open_redis as open_redis,
    parse_database_number as parse_database_number,
)
from treefold_http._redis.own_redis import OwnRedis as OwnRedis, build_redis_key as build_redis_key
from treefold_http._redis.users import (
    RedisUse as RedisUse,
    close_redis as close_redis,
    ensure_claim as ensure_claim,
    list_used_redis_clients as list_used_redis_clients,
    reset_used_servers as reset_used_servers,
)
