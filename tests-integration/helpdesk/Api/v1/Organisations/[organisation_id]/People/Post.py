from typing import Literal

from Models.people import Organisation, Role, User
from Services.access import Admin
from Services.shapes import NewPerson, PersonOut
from treefold.auth import ahash_password

responses = {409: "This address is taken"}


async def handler(
    new: NewPerson, organisation: Organisation, admin: Admin
) -> tuple[PersonOut, Literal[201]]:
    """Add a customer."""
    hashed = await ahash_password(new.password)
    user = User(role=Role.CUSTOMER, organisation=organisation, password_hash=hashed)
    user.assign(new, fields=["name", "email"])
    await user.asave()
    return PersonOut.of(user), 201
