from datetime import datetime
from typing import TypedDict

from Models.people import User
from Models.sales import Order
from Services.accounts import current_user
from treefold import Depends


class Past(TypedDict):
    id: int
    placed_at: datetime
    titles: list[str]
    total: float


async def handler(user: User = Depends(current_user)) -> list[Past]:
    orders = await Order.objects.filter(user=user).prefetch_related("lines__book")[:100]
    return [
        {
            "id": order.id,
            "placed_at": order.placed_at,
            "titles": [line.book.title for line in order.lines.all()],
            "total": order.cents / 100,
        }
        for order in orders
    ]
