from Api.v2.Services.shapes import UserAnswer
from Models.people import User
from Services.accounts import Tokens

response_model = UserAnswer


async def handler(user: User, tokens: Tokens):
    """Return the signed in user."""
    return {"user": tokens.sign_in(user)}
