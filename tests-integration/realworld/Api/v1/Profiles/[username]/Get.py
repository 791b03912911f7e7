from Models.people import User
from Services.people import user_of_path
from treefold import Depends

from ...Services.shapes import ProfileAnswer

response_model = ProfileAnswer


async def handler(profile: User = Depends(user_of_path)):
    """Return the profile of a user."""
    return {"profile": profile}
