from Services import shop
from treefold import StreamingResponse


def lines():
    yield "isbn,title,author\n"
    for book in shop.books.values():
        yield f'{book.isbn},"{book.title}",{book.author}\n'


async def handler(request) -> StreamingResponse:
    return StreamingResponse(lines(), media_type="text/csv; charset=utf-8")
