from typing import TypedDict

from Models.catalogue import Review
from treefold import Request
from treefold.cache import cached


class Shown(TypedDict):
    stars: int
    text: str


def of_the_book(request: Request) -> list[str]:
    return [f"reviews of {request.path_params['isbn']}"]


@cached(60, tags=of_the_book)
async def handler(isbn: str) -> list[Shown]:
    found = await Review.objects.filter(book__isbn=isbn).order_by("-id")[:100]
    return [{"stars": review.stars, "text": review.text} for review in found]
