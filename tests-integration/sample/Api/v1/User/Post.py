from Models.people import User
from treefold import Conflict, UnprocessableEntity
from treefold.orm import UniqueViolation

from .Services.passwords import hash_password


async def handler(request):
    data = await request.json()
    if not isinstance(data, dict) or not {"name", "email", "password"} <= set(data):
        raise UnprocessableEntity("Send an object with name, email and password")
    user = User(password_hash=hash_password(str(data["password"])))
    user.assign(data, fields=["name", "email"])  # User(**data) would be refused
    try:
        await user.asave()
    except UniqueViolation:
        raise Conflict(f"There is a user named {user.name!r} already") from None
    return {"id": user.id, "name": user.name}, 201, {"Location": f"/v1/user/{user.id}"}
