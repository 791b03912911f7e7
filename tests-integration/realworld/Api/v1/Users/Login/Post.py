from Models.people import User
from Services.accounts import Tokens
from treefold import Unauthorized
from treefold.auth import averify_password
from treefold.middleware import RateLimit

from ...Services.shapes import Login, UserAnswer

middlewares = [RateLimit("60/min")]
response_model = UserAnswer


async def handler(body: Login, tokens: Tokens):
    """Sign in with e-mail address and password."""
    user = await User.objects.filter(email=body.user.email).afirst()
    check = await averify_password(body.user.password, user.password_hash if user else None)
    if not user or not check:
        raise Unauthorized("Unknown address or wrong password")
    return {"user": tokens.sign_in(user)}
