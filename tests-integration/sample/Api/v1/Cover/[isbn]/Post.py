from typing import Literal

from Models.catalogue import Book, Cover
from treefold import NotFound, UploadFile

max_body = 5 * 1024 * 1024


async def handler(isbn: str, image: UploadFile) -> tuple[dict[str, str | int], Literal[201]]:
    book = await Book.objects.filter(isbn=isbn).afirst()
    if book is None:
        raise NotFound("There is no such book")
    await Cover.objects.aupdate_or_create({"image": await image.read()}, book=book)
    return {"type": image.content_type, "size": image.size}, 201
