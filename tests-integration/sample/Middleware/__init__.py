"""Runs around every request, first entry outermost."""

from treefold import Request, Response


async def opening_hours(request: Request, call_next):
    """Say on every answer, errors included, that the shop is open."""
    response: Response = await call_next(request)
    response.headers["X-Shop"] = "open"
    return response


middlewares = [opening_hours]
