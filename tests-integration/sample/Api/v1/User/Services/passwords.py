"""A local service: it belongs to this version of the user endpoints and is copied with it."""

from treefold.auth import ahash_password


async def hash_password(password: str) -> str:
    return await ahash_password(password)
