"""Who sends a request: tokens, and the user of one."""

import datetime as dt
from typing import Annotated, Any

import jwt

from Models.people import User
from settings import ConduitSettings
from treefold import Connection, Depends, Settings, Unauthorized, auth


def key(settings: Settings) -> str:
    return settings.secret_key or ""


signed_in = auth.jwt(key, algorithm="HS256", scheme="Token", name="token")
maybe_signed_in = auth.jwt(key, algorithm="HS256", scheme="Token", name="token", optional=True)


async def viewer(claims: dict[str, Any] | None = Depends(maybe_signed_in)) -> User | None:
    return await User.objects.filter(id=int(claims["sub"])).afirst() if claims else None


Viewer = Annotated[User | None, Depends(viewer)]
"""The user of the token; None without one."""


async def current_user(viewer: Viewer, claims: dict[str, Any] = Depends(signed_in)) -> User:
    """Return the user of the token: what handlers get for a parameter of the type `User`."""
    if viewer is None:
        raise Unauthorized("There is no user of this token any more")
    return viewer


class Tokens:
    """Signs users in."""

    def __init__(self, connection: Connection, settings: ConduitSettings) -> None:
        self._key = key(connection.app.settings)
        self._life = dt.timedelta(days=settings.token_days)

    def sign_in(self, user: User) -> User:
        """Return the user with a new token, which responses show."""
        claims = {"sub": str(user.id), "exp": dt.datetime.now(dt.UTC) + self._life}
        user.token = jwt.encode(claims, self._key, "HS256")
        return user
