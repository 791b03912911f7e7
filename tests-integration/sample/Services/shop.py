"""The shop's work: shared by all versions, never copied with one. Its data is in `Models/`."""

from __future__ import annotations

from Models.catalogue import Book
from Models.people import User
from Models.sales import Order, OrderLine
from Services.refusals import SoldOut
from treefold.orm import transaction


async def place_order(user: User, lines: dict[str, int]) -> Order:
    """Take copies from the shelves, all or none; SoldOut names the book that is short."""
    async with transaction():
        books = {
            book.isbn: book
            for book in await Book.objects.filter(isbn__in=list(lines)).select_for_update()
        }
        for isbn, quantity in lines.items():
            left = books[isbn].stock if isbn in books else 0
            if left < quantity:
                raise SoldOut(isbn, left)
            books[isbn].stock = left - quantity
        await Book.objects.abulk_update(list(books.values()), ["stock"])
        cents = sum(books[isbn].cents * quantity for isbn, quantity in lines.items())
        order = await Order.objects.acreate(user=user, cents=cents)
        await OrderLine.objects.abulk_create(
            [
                OrderLine(order=order, book=books[isbn], quantity=quantity)
                for isbn, quantity in lines.items()
            ]
        )
    return order
