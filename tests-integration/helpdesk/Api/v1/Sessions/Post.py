from Models.people import User
from Services.shapes import Credentials
from treefold import Request, Unauthorized
from treefold.auth import averify_password, login


async def handler(request: Request, given: Credentials) -> None:
    """Log in with a password."""
    user = await User.objects.filter(email=given.email, active=True).afirst()
    check = await averify_password(given.password, user.password_hash if user else None)
    if user is None or not check:
        raise Unauthorized("Unknown address or wrong password")
    login(request, user.id)
