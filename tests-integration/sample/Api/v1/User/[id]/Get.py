from Models.people import Named, User
from treefold import NotFound

response_model = Named  # of a user, this and nothing else is sent


async def handler(id: int):
    user = await User.objects.filter(id=id).afirst()
    if user is None:
        raise NotFound(f"There is no user {id}")
    return user
