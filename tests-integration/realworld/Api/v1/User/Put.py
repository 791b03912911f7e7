from Models.people import User
from Services.accounts import Tokens
from Services.people import save_account
from treefold.auth import ahash_password

from ..Services.shapes import UserAnswer, UserUpdate

response_model = UserAnswer


async def handler(body: UserUpdate, user: User, tokens: Tokens):
    """Change the signed in user."""
    user.assign(body.user, fields=["username", "email", "bio", "image"])
    if password := body.user.get("password"):
        user.password_hash = await ahash_password(password)
    await save_account(user)
    return {"user": tokens.sign_in(user)}
