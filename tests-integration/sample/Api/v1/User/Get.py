from Services import shop


async def handler(request) -> list[shop.Named]:
    return [{"id": user.id, "name": user.name} for user in shop.users.values()]
