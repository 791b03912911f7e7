"""Users by their names, and what their accounts may not share."""

from Models.people import User
from Services.accounts import Viewer
from treefold import NotFound, UnprocessableEntity
from treefold.orm import UniqueViolation


async def user_of_path(username: str, viewer: Viewer) -> User:
    """Return the user that the address names."""
    user = await User.objects.seen_by(viewer).filter(username=username).afirst()
    if user is None:
        raise NotFound("There is no such user")
    return user


async def save_account(user: User) -> None:
    """Save a user; 422 for the name or the address of another one."""
    try:
        await user.asave()
    except UniqueViolation as error:
        raise UnprocessableEntity(
            errors=[
                {"loc": ("body", "user", name), "msg": "is taken", "type": "unique"}
                for name in error.fields
            ]
        ) from None
