from typing import TypedDict

from Models.catalogue import Book


class Listed(TypedDict):
    isbn: str
    title: str
    price: float


async def handler(author: str | None = None, limit: int = 20) -> list[Listed]:
    found = Book.objects.all() if author is None else Book.objects.filter(author__name=author)
    shown = found[: min(max(limit, 0), 100)]
    return [{"isbn": b.isbn, "title": b.title, "price": b.cents / 100} for b in await shown]
