from Models.people import Named, User
from Services.accounts import signed_in
from treefold import Depends


async def handler(user: User = Depends(signed_in)) -> Named:
    return {"id": user.id, "name": user.name}
