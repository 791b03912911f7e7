from Models.people import User
from Services.people import user_of_path
from treefold import Depends

from ....Services.shapes import ProfileAnswer

response_model = ProfileAnswer


async def handler(user: User, profile: User = Depends(user_of_path)):
    """Stop following a user."""
    await user.followed.aremove(profile)
    profile.following = False
    return {"profile": profile}
