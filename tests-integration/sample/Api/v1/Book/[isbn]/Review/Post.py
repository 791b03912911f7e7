from typing import Annotated, Literal

from Models.catalogue import Book
from treefold import Form, NotFound
from treefold.cache import get_cache


async def handler(
    isbn: str, text: Annotated[str, Form()], stars: Annotated[int, Form()] = 5
) -> tuple[dict[str, int], Literal[201]]:
    book = await Book.objects.filter(isbn=isbn).afirst()
    if book is None:
        raise NotFound("There is no such book")
    await book.reviews.acreate(text=text, stars=stars)
    await get_cache().invalidate(f"reviews of {isbn}")
    return {"stars": stars, "reviews": await book.reviews.acount()}, 201
