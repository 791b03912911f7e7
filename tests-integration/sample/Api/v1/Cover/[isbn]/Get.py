from Services import shop
from treefold import NotFound


async def handler(isbn: str) -> bytes:
    book = shop.books.get(isbn)
    if book is None or not book.cover:
        raise NotFound("There is no cover of this book")
    return book.cover
