from Models.people import User
from Models.sales import Order
from Services.accounts import current_user
from treefold import Depends


async def handler(user: User = Depends(current_user)):
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
