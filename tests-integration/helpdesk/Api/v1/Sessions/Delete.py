from Services.access import Person
from treefold import Request
from treefold.auth import logout


async def handler(request: Request, person: Person) -> None:
    """Log out."""
    logout(request)
