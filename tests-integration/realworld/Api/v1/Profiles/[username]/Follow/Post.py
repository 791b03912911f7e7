from Models.people import User
from Services.people import user_of_path
from treefold import Depends

from ....Services.shapes import ProfileAnswer

response_model = ProfileAnswer


async def handler(user: User, profile: User = Depends(user_of_path)):
    """Follow a user."""
    await user.followed.aadd(profile)
    profile.following = True
    return {"profile": profile}
