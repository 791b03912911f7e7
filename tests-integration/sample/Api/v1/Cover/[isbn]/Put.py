from Models.catalogue import Book, Cover
from treefold import NotFound, Request

max_body = 5 * 1024 * 1024


async def handler(request: Request, isbn: str) -> None:
    book = await Book.objects.filter(isbn=isbn).afirst()
    if book is None:
        raise NotFound("There is no such book")
    await Cover.objects.aupdate_or_create({"image": await request.body()}, book=book)
