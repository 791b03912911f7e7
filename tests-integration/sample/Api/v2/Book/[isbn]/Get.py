from typing import TypedDict

from Models.catalogue import Book
from treefold import NotFound
from treefold.orm import Avg, Count

from ..Services.prices import price


class Reviews(TypedDict):
    count: int
    stars: float | None


class Detail(TypedDict):
    isbn: str
    title: str
    author: str
    price: dict[str, int | str]
    reviews: Reviews


async def handler(isbn: str) -> Detail:
    rated = Book.objects.annotate(rated=Count("reviews"), stars=Avg("reviews__stars"))
    columns = rated.values("title", "author__name", "cents", "rated", "stars")
    book = await columns.filter(isbn=isbn).afirst()
    if book is None:
        raise NotFound("There is no such book")
    return {
        "isbn": isbn,
        "title": book["title"],
        "author": book["author__name"],
        "price": price(book["cents"]),
        "reviews": {"count": book["rated"], "stars": book["stars"]},
    }
