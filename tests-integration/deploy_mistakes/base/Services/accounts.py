from treefold.auth import current_user


async def find(id: int) -> dict[str, int]:
    return {"id": id}


signed_in = current_user(find)
