from dataclasses import dataclass
from typing import Literal, TypedDict

from Models.people import User
from Services import news, shop
from Services.accounts import current_user
from Services.mail import Mailer
from treefold import BackgroundTasks, Depends, UnprocessableEntity


@dataclass
class Basket:
    """Copies by ISBN."""

    lines: dict[str, int]


class Placed(TypedDict):
    id: int
    total: float


responses = {409: {"description": "Sold out", "model": dict[str, str | int]}}


async def handler(
    basket: Basket,
    background: BackgroundTasks,
    mailer: Mailer,
    user: User = Depends(current_user),
) -> tuple[Placed, Literal[201]]:
    if not basket.lines or any(quantity < 1 for quantity in basket.lines.values()):
        raise UnprocessableEntity("Order at least one copy of something")
    order = await shop.place_order(user, basket.lines)
    news.publish(order.id, order.cents)
    background.add(mailer.send, user.email, f"order {order.id}")
    return {"id": order.id, "total": order.cents / 100}, 201
