from Services.accounts import signed_in
from treefold import Depends


async def handler(user: dict[str, int] = Depends(signed_in)) -> dict[str, int]:
    return user
