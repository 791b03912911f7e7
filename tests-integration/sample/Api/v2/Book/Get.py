from typing import TypedDict

from Services import shop

from .Services.prices import price


class Listed(TypedDict):
    isbn: str
    title: str
    price: dict[str, int | str]


class Page(TypedDict):
    books: list[Listed]
    total: int


async def handler(author: str | None = None, page: int = 1, size: int = 20) -> Page:
    found = [book for book in shop.books.values() if author in (None, book.author)]
    shown = found[(page - 1) * size : page * size]
    books: list[Listed] = [
        {"isbn": b.isbn, "title": b.title, "price": price(b.cents)} for b in shown
    ]
    return {"books": books, "total": len(found)}
