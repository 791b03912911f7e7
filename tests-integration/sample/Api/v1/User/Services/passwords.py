"""A local service: it belongs to this version of the user endpoints and is copied with it."""

from treefold import UnprocessableEntity
from treefold.auth import ahash_password


async def hash_password(password: str) -> str:
    if not 0 < len(password) <= 200:
        raise UnprocessableEntity("Choose a password of 1 to 200 characters")
    return await ahash_password(password)
