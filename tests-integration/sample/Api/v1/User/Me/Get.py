from Models.people import User
from Services.accounts import current_user
from treefold import Depends


async def handler(user: User = Depends(current_user)) -> dict[str, str | int]:
    return {"id": user.id, "name": user.name, "email": user.email}
