from typing import TypedDict

from Services import shop


class Listed(TypedDict):
    isbn: str
    title: str
    price: float


async def handler(author: str | None = None, limit: int = 20) -> list[Listed]:
    found = [book for book in shop.books.values() if author in (None, book.author)][:limit]
    return [{"isbn": b.isbn, "title": b.title, "price": b.cents / 100} for b in found]
