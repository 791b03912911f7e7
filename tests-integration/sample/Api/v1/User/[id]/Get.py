from Models.people import User
from treefold import HTTPError, NotFound


async def handler(request):
    number = request.path_params["id"]
    if not number.isdecimal():
        raise HTTPError(422, f"A user id is a number, not {number!r}")
    user = await User.objects.filter(id=int(number)).afirst()
    if user is None:
        raise NotFound(f"There is no user {number}")
    return {"id": user.id, "name": user.name}
