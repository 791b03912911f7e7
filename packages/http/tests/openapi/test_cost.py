"""A loose bound on what a document costs; `hatch run bench-openapi` holds the tight one."""

from __future__ import annotations

import time
from collections.abc import Callable

from treefold_http import Application
from treefold_http.openapi import openapi_document

HANDLER = """
    from dataclasses import dataclass

    @dataclass
    class Item{number}:
        name: str
        next: "Item{number} | None" = None

    async def handler(id: int, item: Item{number}, q: str | None = None) -> list[Item{number}]:
        '''Do it.'''
    """


def test_two_hundred_routes_take_less_than_a_second(project: Callable[..., Application]) -> None:
    app = project(
        {f"Api/v1/X{number}/[id]/Post.py": HANDLER.format(number=number) for number in range(200)}
    )
    app.boot()
    started = time.thread_time()
    document = openapi_document(app)

    assert len(document["paths"]) == 200
    assert len(document["components"]["schemas"]) == 402
    assert time.thread_time() - started < 1
