from typing import TypedDict

from Models.catalogue import Shelf
from treefold.orm import Page


class Named(TypedDict):
    name: str


class Listed(TypedDict):
    isbn: str
    title: str
    author: Named
    genres: list[Named]
    cents: int


async def handler(shelf: Shelf) -> Page[Listed]:
    return await shelf.apage(Listed)
