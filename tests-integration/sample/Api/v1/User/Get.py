from Services import shop


async def handler(request):
    return [{"id": user.id, "name": user.name} for user in shop.users.values()]
