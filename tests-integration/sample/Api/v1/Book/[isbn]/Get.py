from typing import TypedDict

from Models.catalogue import Book
from treefold import NotFound


class Detail(TypedDict):
    isbn: str
    title: str
    author: str
    price: float


async def handler(request) -> Detail:
    isbn = request.path_params["isbn"]
    book = await Book.objects.select_related("author").filter(isbn=isbn).afirst()
    if book is None:
        raise NotFound("There is no such book")
    price = book.cents / 100
    return {"isbn": isbn, "title": book.title, "author": book.author.name, "price": price}
