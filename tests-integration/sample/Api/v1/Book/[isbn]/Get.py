from typing import TypedDict

from Services import shop
from treefold import NotFound


class Detail(TypedDict):
    isbn: str
    title: str
    author: str
    price: float


async def handler(request) -> Detail:
    book = shop.books.get(request.path_params["isbn"])
    if book is None:
        raise NotFound("There is no such book")
    price = book.cents / 100
    return {"isbn": book.isbn, "title": book.title, "author": book.author, "price": price}
