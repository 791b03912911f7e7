from Services import shop
from treefold import NotFound


async def handler(request):
    book = shop.books.get(request.path_params["isbn"])
    if book is None:
        raise NotFound("There is no such book")
    price = book.cents / 100
    return {"isbn": book.isbn, "title": book.title, "author": book.author, "price": price}
