from Services import shop


async def handler(author: str | None = None, limit: int = 20):
    found = [book for book in shop.books.values() if author in (None, book.author)][:limit]
    return [{"isbn": b.isbn, "title": b.title, "price": b.cents / 100} for b in found]
