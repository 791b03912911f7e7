from Services import shop

from .Services.prices import price


async def handler(author: str | None = None, page: int = 1, size: int = 20):
    found = [book for book in shop.books.values() if author in (None, book.author)]
    shown = found[(page - 1) * size : page * size]
    books = [{"isbn": b.isbn, "title": b.title, "price": price(b.cents)} for b in shown]
    return {"books": books, "total": len(found)}
