"""Runs around every request, first entry outermost."""

from treefold import Request, Response
from treefold.middleware import CORS, GZip, SecurityHeaders, Sessions, requests_only, under


async def opening_hours(request: Request, call_next):
    """Say on every answer, errors included, that the shop is open."""
    response: Response = await call_next(request)
    response.headers["X-Shop"] = "open"
    return response


async def no_store(request: Request, call_next):
    """Orders are nobody else's: no cache may keep them."""
    response: Response = await call_next(request)
    response.headers["Cache-Control"] = "no-store"
    return response


middlewares = [
    SecurityHeaders(),
    under("/v2/book", CORS(["*"])),  # the catalogue is for pages of everybody
    GZip(),
    requests_only(opening_hours),  # sockets have no answer to say it on
    Sessions(store="database"),
    under("/v1/order", no_store),
]
