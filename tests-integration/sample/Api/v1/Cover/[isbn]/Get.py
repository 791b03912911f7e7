from Models.catalogue import Cover
from treefold import NotFound


async def handler(isbn: str) -> bytes:
    cover = await Cover.objects.filter(book__isbn=isbn).afirst()
    if cover is None:
        raise NotFound("There is no cover of this book")
    return cover.image
