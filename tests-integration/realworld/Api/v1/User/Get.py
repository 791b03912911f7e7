from Models.people import User
from Services.accounts import Tokens

from ..Services.shapes import UserAnswer

response_model = UserAnswer


async def handler(user: User, tokens: Tokens):
    """Return the signed in user."""
    return {"user": tokens.sign_in(user)}
