from Models.people import User
from Services.access import Admin
from Services.shapes import PersonChange, PersonOut
from treefold import Changes, NotFound

responses = {409: "This address is taken"}


async def handler(user_id: int, changes: Changes[PersonChange], admin: Admin) -> PersonOut:
    """Change an account, or close it."""
    user = await User.objects.filter(id=user_id).afirst()
    if user is None:
        raise NotFound("There is no such person")
    user.assign(changes)
    await user.asave()
    return PersonOut.of(user)
