from Models.people import User
from Services.accounts import Tokens
from Services.people import save_account
from treefold.auth import ahash_password

from ..Services.shapes import Registration, UserAnswer

response_model = UserAnswer
status_code = 201


async def handler(body: Registration, tokens: Tokens):
    """Register a user."""
    new = body.user
    hashed = await ahash_password(new.password)
    user = User(username=new.username, email=new.email, password_hash=hashed)
    await save_account(user)
    return {"user": tokens.sign_in(user)}
