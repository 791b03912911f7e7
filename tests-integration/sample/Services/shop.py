"""The shop's work: shared by all versions, never copied with one. Its data is in `Models/`."""

from __future__ import annotations

from Models.catalogue import Author, Book, Genre
from Models.people import User
from Models.sales import Order, OrderLine
from Services.refusals import SoldOut
from treefold.orm import transaction

FIRST_BOOKS = (
    ("9780441478125", "The Left Hand of Darkness", "Le Guin", 1299, ("science fiction",)),
    ("9780061054884", "The Dispossessed", "Le Guin", 1450, ("science fiction", "utopia")),
    ("9780553293357", "Foundation", "Asimov", 999, ("science fiction",)),
)


async def open_shop() -> None:
    """Fill the shelves of a new shop; its tables are made by the migrations."""
    if not await Book.objects.aexists():
        await stock_shelves()


async def stock_shelves() -> None:
    """Several processes may begin with this at once: what is there already is left alone."""
    async with transaction():
        await User.objects.abulk_create(
            [User(name="ada", email="ada@example.org")], ignore_conflicts=True
        )
        names = dict.fromkeys(author for _, _, author, _, _ in FIRST_BOOKS)
        await Author.objects.abulk_create([Author(name=n) for n in names], ignore_conflicts=True)
        kinds = dict.fromkeys(genre for *_, genres in FIRST_BOOKS for genre in genres)
        await Genre.objects.abulk_create([Genre(name=n) for n in kinds], ignore_conflicts=True)
        authors = await Author.objects.ain_bulk(list(names), field="name")
        await Book.objects.abulk_create(
            [
                Book(isbn=isbn, title=title, author=authors[author], cents=cents)
                for isbn, title, author, cents, _ in FIRST_BOOKS
            ],
            ignore_conflicts=True,
        )
        genres = await Genre.objects.ain_bulk(list(kinds), field="name")
        books = await Book.objects.ain_bulk([row[0] for row in FIRST_BOOKS], field="isbn")
        for isbn, *_, of_book in FIRST_BOOKS:
            await books[isbn].genres.aadd(*(genres[name] for name in of_book))


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
