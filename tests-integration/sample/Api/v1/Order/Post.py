from Services import shop
from Services.accounts import current_user
from treefold import Conflict, Depends, Request, UnprocessableEntity


async def handler(request: Request, user: shop.User = Depends(current_user)):
    data = await request.json()
    lines = data.get("lines") if isinstance(data, dict) else None
    if not isinstance(lines, dict) or not lines:
        raise UnprocessableEntity('Send {"lines": {"isbn": quantity}}')
    if not all(type(quantity) is int and quantity > 0 for quantity in lines.values()):
        raise UnprocessableEntity("A quantity is a whole number above zero")
    for isbn, quantity in lines.items():
        if isbn not in shop.books or shop.books[isbn].stock < quantity:
            raise Conflict(f"There are not {quantity} copies of {isbn}")
    order = shop.Order(next(shop.order_ids), user.id, lines)
    for isbn, quantity in lines.items():
        shop.books[isbn].stock -= quantity
        order.cents += shop.books[isbn].cents * quantity
    shop.orders[order.id] = order
    return {"id": order.id, "total": order.cents / 100}, 201
