from Models.people import Named, User
from treefold import NotFound


async def handler(id: int) -> Named:
    user = await User.objects.filter(id=id).afirst()
    if user is None:
        raise NotFound(f"There is no user {id}")
    return {"id": user.id, "name": user.name}
