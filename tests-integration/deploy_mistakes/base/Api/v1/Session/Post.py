from dataclasses import dataclass

from treefold import Request, Unauthorized
from treefold.auth import averify_password, login
from treefold.middleware import RateLimit

middlewares = [RateLimit("10/min", redis=True)]


@dataclass
class Credentials:
    name: str
    password: str


async def handler(request: Request, given: Credentials) -> None:
    if not await averify_password(given.password, None):
        raise Unauthorized("Unknown name or wrong password")
    login(request, 1)
