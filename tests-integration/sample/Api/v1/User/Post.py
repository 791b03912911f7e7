from dataclasses import dataclass
from typing import Literal

from Services import shop
from treefold import Conflict

from .Services.passwords import hash_password


@dataclass
class NewUser:
    name: str
    email: str
    password: str


async def handler(user: NewUser) -> tuple[shop.Named, Literal[201], dict[str, str]]:
    if any(known.name == user.name for known in shop.users.values()):
        raise Conflict(f"There is a user named {user.name!r} already")
    made = shop.add_user(user.name, user.email, hash_password(user.password))
    return {"id": made.id, "name": made.name}, 201, {"Location": f"/v1/user/{made.id}"}
