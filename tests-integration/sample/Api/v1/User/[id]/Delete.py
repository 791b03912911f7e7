from Services import shop
from treefold import NotFound


def handler(id: int) -> None:
    if shop.users.pop(id, None) is None:
        raise NotFound(f"There is no user {id}")
