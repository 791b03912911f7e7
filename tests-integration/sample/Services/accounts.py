"""Who is asking: dependencies for handlers that need a user."""

from Models.people import User
from treefold import Request, Unauthorized, secured
from treefold.auth import current_user as user_of_session


@secured("bearer")
async def current_user(request: Request) -> User:
    """Give the user whose name is the bearer token; 401 for anybody else."""
    scheme, _, name = request.headers.get("authorization", "").partition(" ")
    user = await User.objects.filter(name=name).afirst() if scheme == "Bearer" else None
    if user is None:
        raise Unauthorized(
            "Send Authorization: Bearer NAME", headers={"WWW-Authenticate": "Bearer"}
        )
    return user


async def find(id: int) -> User | None:
    """Return the user of a session, who may be gone by now."""
    return await User.objects.filter(id=id).afirst()


signed_in = user_of_session(find)
