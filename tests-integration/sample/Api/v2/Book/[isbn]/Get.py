from typing import TypedDict

from Services import shop
from treefold import NotFound

from ..Services.prices import price


class Detail(TypedDict):
    isbn: str
    title: str
    author: str
    price: dict[str, int | str]


async def handler(isbn: str) -> Detail:
    book = shop.books.get(isbn)
    if book is None:
        raise NotFound("There is no such book")
    return {"isbn": isbn, "title": book.title, "author": book.author, "price": price(book.cents)}
