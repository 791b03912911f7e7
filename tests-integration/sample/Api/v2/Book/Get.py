from typing import TypedDict

from Models.catalogue import Book, Shelf

from .Services.prices import price


class Listed(TypedDict):
    isbn: str
    title: str
    author: str
    genres: list[str]
    price: dict[str, int | str]


class Page(TypedDict):
    books: list[Listed]
    total: int


async def handler(request) -> Page:
    shelf = Shelf(request.query)
    books = await shelf.apply(Book.objects.select_related("author").prefetch_related("genres"))
    return {
        "books": [
            {
                "isbn": book.isbn,
                "title": book.title,
                "author": book.author.name,
                "genres": [genre.name for genre in book.genres.all()],
                "price": price(book.cents),
            }
            for book in books
        ],
        "total": await Book.objects.filter(shelf.conditions()).acount(),
    }
