from typing import TypedDict

from Models.people import User
from Models.sales import Order
from Services.accounts import current_user
from treefold import Depends, NotFound


class Whole(TypedDict):
    id: int
    lines: dict[str, int]
    total: float


async def handler(id: int, user: User = Depends(current_user)) -> Whole:
    mine = Order.objects.filter(user=user).prefetch_related("lines__book")
    order = await mine.filter(id=id).afirst()
    if order is None:
        raise NotFound(f"There is no order {id} of yours")
    lines = {line.book.isbn: line.quantity for line in order.lines.all()}
    return {"id": order.id, "lines": lines, "total": order.cents / 100}
