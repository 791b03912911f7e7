from dataclasses import dataclass

from Models.people import Named, User
from treefold import Request, Unauthorized
from treefold.auth import averify_password, login
from treefold.middleware import RateLimit

middlewares = [RateLimit("60/min")]  # a guess takes a second


@dataclass
class Credentials:
    name: str
    password: str


async def handler(request: Request, given: Credentials) -> Named:
    user = await User.objects.filter(name=given.name).afirst()
    check = await averify_password(given.password, (user and user.password_hash) or None)
    if user is None or not check:
        raise Unauthorized(
            "Unknown name or wrong password", headers={"WWW-Authenticate": "Session"}
        )
    if check.new_hash:
        user.password_hash = check.new_hash
        await user.asave()
    login(request, user.id)
    return {"id": user.id, "name": user.name}
