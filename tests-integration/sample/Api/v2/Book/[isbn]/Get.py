from Services import shop
from treefold import NotFound

from ..Services.prices import price


async def handler(isbn: str):
    book = shop.books.get(isbn)
    if book is None:
        raise NotFound("There is no such book")
    return {"isbn": isbn, "title": book.title, "author": book.author, "price": price(book.cents)}
