from dataclasses import dataclass
from typing import Literal

from Models.people import Named, User
from treefold import Conflict
from treefold.orm import UniqueViolation

from .Services.passwords import hash_password


@dataclass
class NewUser:
    name: str
    email: str
    password: str


async def handler(new: NewUser) -> tuple[Named, Literal[201], dict[str, str]]:
    hashed = await hash_password(new.password)
    try:
        user = await User.objects.acreate(name=new.name, email=new.email, password_hash=hashed)
    except UniqueViolation:
        raise Conflict(f"There is a user named {new.name!r} already") from None
    return {"id": user.id, "name": user.name}, 201, {"Location": f"/v1/user/{user.id}"}
