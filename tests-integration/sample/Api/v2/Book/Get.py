from Models.catalogue import Book, Shelf

from .Services.prices import price


async def handler(request):
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
