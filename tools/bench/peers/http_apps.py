"""Applications of installed frameworks that answer the requests of `http_cases`, and their boots.

Each is written as its documentation teaches, without middleware and without a request log.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from typing import Any

from http_cases import App, Item
from pydantic import BaseModel

Route = tuple[str, str, Callable[..., Any]]


class AddressModel(BaseModel):
    """A part of the body, for frameworks that validate with pydantic."""

    street: str
    city: str
    zip: str
    country: str


class ItemModel(BaseModel):
    """The body, for frameworks that validate with pydantic."""

    name: str
    email: str
    age: int
    active: bool
    tags: list[str]
    scores: list[float]
    address: AddressModel
    bio: str


async def starlette() -> App:
    """Starlette, whose handlers validate with pydantic by hand."""
    routing: Any = importlib.import_module("starlette.routing")
    responses: Any = importlib.import_module("starlette.responses")

    async def hello(request: Any) -> Any:
        return responses.JSONResponse({"message": "Hello"})

    async def user(request: Any) -> Any:
        return responses.JSONResponse({"id": request.path_params["id"]})

    async def items(request: Any) -> Any:
        item = ItemModel.model_validate_json(await request.body())
        return responses.Response(item.model_dump_json(), 201, media_type="application/json")

    application: Any = importlib.import_module("starlette.applications")
    return application.Starlette(
        routes=[
            routing.Route("/v1/hello", hello),
            routing.Route("/v1/user/{id}", user),
            routing.Route("/v1/items", items, methods=["POST"]),
        ]
    )


async def fastapi() -> App:
    """FastAPI with a response model."""
    library: Any = importlib.import_module("fastapi")
    app = library.FastAPI()

    async def hello() -> dict[str, str]:
        return {"message": "Hello"}

    async def user(id: str) -> dict[str, str]:
        return {"id": id}

    async def items(item: ItemModel) -> ItemModel:
        return item

    user.__annotations__ = {"id": str, "return": dict[str, str]}
    items.__annotations__ = {"item": ItemModel, "return": ItemModel}
    app.get("/v1/hello")(hello)
    app.get("/v1/user/{id}")(user)
    app.post("/v1/items", status_code=201)(items)
    return app


async def litestar() -> App:
    """Litestar with msgspec, its fastest way."""
    library: Any = importlib.import_module("litestar")

    async def hello() -> dict[str, str]:
        return {"message": "Hello"}

    async def user(user_id: str) -> dict[str, str]:
        return {"id": user_id}

    async def items(data: Item) -> Item:
        return data

    hello.__annotations__ = {"return": dict[str, str]}
    user.__annotations__ = {"user_id": str, "return": dict[str, str]}
    items.__annotations__ = {"data": Item, "return": Item}
    handlers = [
        library.get("/v1/hello")(hello),
        library.get("/v1/user/{user_id:str}")(user),
        library.post("/v1/items")(items),
    ]
    return library.Litestar(handlers, openapi_config=None, logging_config=None)


async def blacksheep() -> App:
    """BlackSheep, compiled with Cython."""
    library: Any = importlib.import_module("blacksheep")
    app = library.Application()

    async def hello() -> Any:
        return library.json({"message": "Hello"})

    async def user(id: str) -> Any:
        return library.json({"id": id})

    async def items(item: Any) -> Any:
        return library.json(item.value.model_dump(), 201)

    user.__annotations__ = {"id": str}
    items.__annotations__ = {"item": library.FromJSON[ItemModel]}
    app.router.add_get("/v1/hello", hello)
    app.router.add_get("/v1/user/:id", user)
    app.router.add_post("/v1/items", items)
    await app.start()
    return app


async def falcon() -> App:
    """Falcon, compiled with Cython, whose responders validate with pydantic by hand."""
    asgi: Any = importlib.import_module("falcon.asgi")

    class Hello:
        async def on_get(self, req: Any, resp: Any) -> None:
            resp.media = {"message": "Hello"}

    class User:
        async def on_get(self, req: Any, resp: Any, id: str) -> None:
            resp.media = {"id": id}

    class Items:
        async def on_post(self, req: Any, resp: Any) -> None:
            item = ItemModel.model_validate_json(await req.bounded_stream.read())
            resp.status = 201
            resp.content_type = "application/json"
            resp.data = item.model_dump_json().encode()

    app = asgi.App()
    app.add_route("/v1/hello", Hello())
    app.add_route("/v1/user/{id}", User())
    app.add_route("/v1/items", Items())
    return app


PEERS: dict[str, tuple[str, Callable[[], Awaitable[App]]]] = {
    "BlackSheep": ("blacksheep", blacksheep),
    "Falcon": ("falcon", falcon),
    "Litestar": ("litestar", litestar),
    "Starlette": ("starlette", starlette),
    "FastAPI": ("fastapi", fastapi),
}
"""Name to distribution and application."""

BOOTS = {
    "BlackSheep": (
        "import blacksheep\n"
        "app = blacksheep.Application()\n"
        "for n in range(1000):\n"
        "    async def handler(id: str): return blacksheep.json({'id': id})\n"
        "    app.router.add_get(f'/v1/dyn{n}/:id', handler)\n"
        "import asyncio; asyncio.run(app.start())\n"
    ),
    "Falcon": (
        "import falcon.asgi\n"
        "app = falcon.asgi.App()\n"
        "for n in range(1000):\n"
        "    class Leaf:\n"
        "        async def on_get(self, req, resp, id): resp.media = {'id': id}\n"
        "    app.add_route(f'/v1/dyn{n}/{{id}}', Leaf())\n"
    ),
    "Litestar": (
        "import litestar\n"
        "def make(n):\n"
        "    @litestar.get(f'/v1/dyn{n}/{{user_id:str}}')\n"
        "    async def handler(user_id: str) -> dict[str, str]: return {'id': user_id}\n"
        "    return handler\n"
        "litestar.Litestar([make(n) for n in range(1000)])\n"
    ),
    "Starlette": (
        "from starlette.applications import Starlette\n"
        "from starlette.responses import JSONResponse\n"
        "from starlette.routing import Route\n"
        "def make():\n"
        "    async def handler(request): return JSONResponse({'id': request.path_params['id']})\n"
        "    return handler\n"
        "Starlette(routes=[Route(f'/v1/dyn{n}/{{id}}', make()) for n in range(1000)])\n"
    ),
    "FastAPI": (
        "import fastapi\n"
        "app = fastapi.FastAPI()\n"
        "for n in range(1000):\n"
        "    @app.get(f'/v1/dyn{n}/{{id}}')\n"
        "    async def handler(id: str) -> dict[str, str]: return {'id': id}\n"
    ),
}
"""Name to a program that imports the framework and registers 1,000 routes."""
