"""Who is asking: dependencies for handlers that need a user."""

from Services import shop
from treefold import Request, Unauthorized, secured


@secured("bearer")
async def current_user(request: Request) -> shop.User:
    """Give the user whose name is the bearer token; 401 for anybody else."""
    scheme, _, name = request.headers.get("authorization", "").partition(" ")
    for user in shop.users.values():
        if scheme == "Bearer" and user.name == name:
            return user
    raise Unauthorized("Send Authorization: Bearer NAME", headers={"WWW-Authenticate": "Bearer"})
