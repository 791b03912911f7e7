from Services import shop
from treefold import NotFound


async def handler(id: int) -> shop.Named:
    user = shop.users.get(id)
    if user is None:
        raise NotFound(f"There is no user {id}")
    return {"id": user.id, "name": user.name}
