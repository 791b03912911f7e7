from typing import Literal

from Models.people import User
from Services.access import Admin
from Services.shapes import NewAgent, PersonOut
from treefold.auth import ahash_password

responses = {409: "This address is taken"}


async def handler(new: NewAgent, admin: Admin) -> tuple[PersonOut, Literal[201]]:
    """Add an agent."""
    user = User(password_hash=await ahash_password(new.password))
    user.assign(new, fields=["name", "email", "role"])
    await user.asave()
    return PersonOut.of(user), 201
