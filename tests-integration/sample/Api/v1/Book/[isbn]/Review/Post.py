from typing import Annotated, Literal

from Services import shop
from treefold import Form, NotFound


async def handler(
    isbn: str, text: Annotated[str, Form()], stars: Annotated[int, Form()] = 5
) -> tuple[dict[str, int], Literal[201]]:
    if isbn not in shop.books:
        raise NotFound("There is no such book")
    shop.books[isbn].reviews.append(text)
    return {"stars": stars, "reviews": len(shop.books[isbn].reviews)}, 201
