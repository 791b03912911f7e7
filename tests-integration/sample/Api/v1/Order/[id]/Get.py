from typing import TypedDict

from Services import shop
from Services.accounts import current_user
from treefold import Depends, NotFound


class Whole(TypedDict):
    id: int
    lines: dict[str, int]
    total: float


async def handler(id: int, user: shop.User = Depends(current_user)) -> Whole:
    order = shop.orders.get(id)
    if order is None or order.user_id != user.id:
        raise NotFound(f"There is no order {id} of yours")
    return {"id": order.id, "lines": order.lines, "total": order.cents / 100}
