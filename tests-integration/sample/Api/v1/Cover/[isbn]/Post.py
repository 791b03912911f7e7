from typing import Literal

from Services import shop
from treefold import NotFound, UploadFile

max_body = 5 * 1024 * 1024


async def handler(isbn: str, image: UploadFile) -> tuple[dict[str, str | int], Literal[201]]:
    if isbn not in shop.books:
        raise NotFound("There is no such book")
    shop.books[isbn].cover = await image.read()
    return {"type": image.content_type, "size": image.size}, 201
