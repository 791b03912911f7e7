from Models.people import User
from treefold import Conflict, NotFound
from treefold.orm import ForeignKeyViolation


def handler(id: int) -> None:
    try:
        gone = User.objects.filter(id=id).delete()
    except ForeignKeyViolation:
        raise Conflict(f"User {id} has orders") from None
    if not gone:
        raise NotFound(f"There is no user {id}")
