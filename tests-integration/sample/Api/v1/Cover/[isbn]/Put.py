from Services import shop
from treefold import NotFound, Request

max_body = 5 * 1024 * 1024


async def handler(request: Request, isbn: str) -> None:
    if isbn not in shop.books:
        raise NotFound("There is no such book")
    shop.books[isbn].cover = await request.body()
