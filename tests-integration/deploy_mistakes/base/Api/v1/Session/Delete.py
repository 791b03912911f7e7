from treefold import Request
from treefold.auth import logout


async def handler(request: Request) -> None:
    logout(request)
