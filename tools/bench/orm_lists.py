"""A list of 50 rows through `FilterSet` and `Page`, beside a handler that writes the same by hand.

Both take the same parameters, are answered by the same application with the same bytes but the
cursor, and read the same columns. By hand is what an application had to write before: a filter for
each parameter, an order, one row more than the page, and a cursor of its last row without a
signature. `apage` alone is measured in the same way, without an application.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from http_cases import HEADERS, project
from orm_measuring import Async, Table, ameasure

from treefold_http import Application, Settings
from treefold_logging import get_logger
from treefold_orm import FilterSet, Index, Model, Page, acreate_all, fields

QUERY = {"views__gte": "100", "order": "views"}
SIZE = 50
_HANDLERS = {
    "v1/Shelf/Get.py": """
from orm_lists import Page, BookOut, Shelf


async def handler(shelf: Shelf) -> Page[BookOut]:
    return await shelf.apage(BookOut)
""",
    "v1/Hand/Get.py": """
from typing import Literal

from orm_lists import HandPage, BookOut, read_by_hand


async def handler(
    views__gte: int | None = None,
    title: str | None = None,
    order: Literal["views", "-views"] = "views",
    limit: int = 50,
    after: str | None = None,
) -> HandPage:
    return await read_by_hand(views__gte, title, order, limit, after)
""",
}


class BenchBook(Model):
    """A column with an index of its order: without one the database would sort all rows."""

    title = fields.CharField(max_length=100)
    body = fields.TextField(default="")
    views = fields.IntegerField()

    class Meta:
        indexes = (Index("views", "id"),)


@dataclass
class BookOut:
    """An item of the list."""

    id: int
    title: str
    views: int


@dataclass
class HandPage:
    """What `Page` is in the answer."""

    items: list[BookOut]
    next: str | None
    previous: str | None
    total: int | None = None


class Shelf(FilterSet):
    """The list, as it is declared."""

    model = BenchBook
    fields = {"views": ["gte"], "title": ["exact"]}  # noqa: RUF012 - read-only by contract
    ordering = ("views",)


async def read_by_hand(
    views: int | None, title: str | None, order: str, limit: int, after: str | None
) -> HandPage:
    """Read the page that the list reads."""
    query = BenchBook.objects.only("id", "title", "views").order_by(order, "id")
    if views is not None:
        query = query.filter(views__gte=views)
    if title is not None:
        query = query.filter(title=title)
    if after is not None:
        raise NotImplementedError("Only the first page is measured")
    rows = await query[: limit + 1]
    items = [BookOut(id=row.id, title=row.title, views=row.views) for row in rows[:limit]]
    cursor = None
    if len(rows) > limit:
        place = json.dumps([items[-1].views, items[-1].id]).encode()
        cursor = base64.urlsafe_b64encode(place).decode()
    return HandPage(items, cursor, None)


async def measure_lists(table: Table, name: str, rounds: int) -> None:
    """Add the rows of one engine."""
    await acreate_all(BenchBook)
    books = [BenchBook(title=f"book {i}", body="text " * 20, views=i) for i in range(10_000)]
    await BenchBook.objects.abulk_create(books)

    async def read_list() -> Page[BookOut]:
        return await Shelf(QUERY).apage(BookOut)

    async def read_hand() -> HandPage:
        return await read_by_hand(100, None, "views", SIZE, None)

    if (await read_list()).items != (await read_hand()).items:
        raise RuntimeError("The list and the rows by hand are not the same")
    pairs = await ameasure((read_hand, read_list), calls=40, rounds=rounds)
    table.add(f"{name} list of {SIZE}, apage / by hand", pairs, 1.15)
    with project(0, _HANDLERS) as root:
        app = Application(root, settings=Settings(installed_extensions=True, secret_key="s" * 32))
        app.boot()
        get_logger().setLevel("CRITICAL")  # the level that booting sets is that of the settings
        async with app.lifespan():
            requests = (_build_request(app, "/v1/hand"), _build_request(app, "/v1/shelf"))
            hand, shelf = [json.loads(await request()) for request in requests]
            if hand["items"] != shelf["items"] or len(hand["items"]) != SIZE:
                raise RuntimeError("The answers of the list and by hand are not the same")
            pairs = await ameasure(requests, calls=40, rounds=rounds)
            table.add(f"{name} list of {SIZE}, request / by hand", pairs, 1.15)


def _build_request(app: Any, path: str) -> Async:
    query = "&".join(f"{key}={value}" for key, value in QUERY.items()).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def request() -> bytes:
        body: list[bytes] = []

        async def keep(message: Any) -> None:
            if message["type"] == "http.response.body":
                body.append(message["body"])

        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 51234),
            "scheme": "http",
            "root_path": "",
            "headers": list(HEADERS),
            "state": {},
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
        }
        await app(scope, receive, keep)
        return b"".join(body)

    return request
