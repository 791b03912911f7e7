from Services import shop
from treefold import Conflict, UnprocessableEntity

from .Services.passwords import hash_password


async def handler(request):
    data = await request.json()
    if not isinstance(data, dict) or not {"name", "email", "password"} <= set(data):
        raise UnprocessableEntity("Send an object with name, email and password")
    if any(user.name == data["name"] for user in shop.users.values()):
        raise Conflict(f"There is a user named {data['name']!r} already")
    user = shop.add_user(data["name"], data["email"], hash_password(data["password"]))
    return {"id": user.id, "name": user.name}, 201, {"Location": f"/v1/user/{user.id}"}
