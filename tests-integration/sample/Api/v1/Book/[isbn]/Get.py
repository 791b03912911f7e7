from Models.catalogue import Book
from treefold import NotFound


async def handler(request):
    isbn = request.path_params["isbn"]
    book = await Book.objects.select_related("author").filter(isbn=isbn).afirst()
    if book is None:
        raise NotFound("There is no such book")
    price = book.cents / 100
    return {"isbn": isbn, "title": book.title, "author": book.author.name, "price": price}
