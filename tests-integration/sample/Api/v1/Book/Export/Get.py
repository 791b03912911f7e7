from Models.catalogue import Book
from treefold import StreamingResponse


async def lines():
    yield "isbn,title,author\n"
    async for book in Book.objects.select_related("author").aiterator():
        yield f'{book.isbn},"{book.title}",{book.author.name}\n'


async def handler(request) -> StreamingResponse:
    return StreamingResponse(lines(), media_type="text/csv; charset=utf-8")
