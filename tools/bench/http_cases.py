"""What is measured in process: the project, the requests, and what treefold is held against.

`bare` answers constants without routing or parsing. A `floor` is the least Python that does the
same work as the handler. Nothing here measures or judges.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

App = Callable[[Any, Any, Any], Awaitable[None]]
Header = list[tuple[bytes, bytes]]

ITEM = {
    "name": "The Left Hand of Darkness",
    "email": "ursula@example.org",
    "age": 88,
    "active": True,
    "tags": ["gethen", "ekumen", "winter"],
    "scores": [1.5, 2.25, 3.125],
    "address": {"street": "1 Main Street", "city": "Portland", "zip": "97201", "country": "US"},
    "bio": "a book is a box of words until you open it " * 16,
}
BODY = json.dumps(ITEM).encode()
BOUNDARY = b"bench-boundary"
UPLOAD = (
    b"--" + BOUNDARY + b'\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n'
    b"Content-Type: application/octet-stream\r\n\r\n"
    + bytes(range(256)) * 4096
    + b"\r\n--"
    + BOUNDARY
    + b"--\r\n"
)
CHUNKS = 16
CHUNK = b"x" * 4096
HEADERS: Header = [
    (b"host", b"127.0.0.1:8000"),
    (b"user-agent", b"bench"),
    (b"accept", b"*/*"),
    (b"accept-encoding", b"gzip, deflate"),
    (b"connection", b"keep-alive"),
]


def with_body(kind: bytes, body: bytes) -> Header:
    length = str(len(body)).encode()
    return [*HEADERS, (b"content-type", kind), (b"content-length", length)]


JSON_HEADERS = with_body(b"application/json", BODY)
UPLOAD_HEADERS = with_body(b"multipart/form-data; boundary=" + BOUNDARY, UPLOAD)

_ITEMS = """
class Address({base}):
    street: str
    city: str
    zip: str
    country: str

class Item({base}):
    name: str
    email: str
    age: int
    active: bool
    tags: list[str]
    scores: list[float]
    address: Address
    bio: str

async def handler(item: Item):
    return item, 201
"""

HELLO = "async def handler(request):\n    return {'message': 'Hello'}\n"
USER = "async def handler(request):\n    return dict(request.path_params)\n"
TREE = {
    "v1/Hello/Get.py": HELLO,
    "v1/User/[id]/Get.py": USER,
    "v1/Items/Post.py": f"import msgspec\n{_ITEMS.format(base='msgspec.Struct')}",
    "v1/Checked/Post.py": f"from pydantic import BaseModel\n{_ITEMS.format(base='BaseModel')}",
    "v1/Di/Get.py": """
from treefold_http import Depends

async def config(): return {"dsn": "x"}
async def database(config=Depends(config)): return {"config": config}
async def user(database=Depends(database)): return {"name": "ada"}
async def handler(who=Depends(user)): return {"user": who["name"]}
""",
    "v1/Stream/Get.py": f"""
from treefold_http import StreamingResponse

CHUNK = b"x" * {len(CHUNK)}

async def chunks():
    for _ in range({CHUNKS}):
        yield CHUNK

async def handler(request):
    return StreamingResponse(chunks())
""",
    "v1/Upload/Post.py": """
max_body = 4 * 1024 * 1024

async def handler(request):
    return {"size": (await request.files())["file"].size}
""",
    "v1/Socket/Ws.py": """
async def handler(websocket):
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)
""",
}


@contextmanager
def project(routes: int = 0, tree: Mapping[str, str] = TREE) -> Generator[Path]:
    """Write a tree, and so many more routes beside it; gone afterwards."""
    root = Path(tempfile.mkdtemp(prefix="treefold-bench-"))
    files = dict(tree)
    for number in range(routes // 2):
        files[f"v1/Static{number}/Leaf/Get.py"] = HELLO
        files[f"v1/Dyn{number}/[id]/Leaf/Get.py"] = USER
    for name, text in files.items():
        path = root / "Api" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    try:
        yield root
    finally:
        shutil.rmtree(root)


_JSON = (b"content-type", b"application/json")


async def _answer(send: Any, body: bytes, status: int = 200) -> None:
    headers = [_JSON, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Answer a constant; a body is taken and thrown away."""
    if scope["method"] == "POST":
        while (await receive()).get("more_body"):
            pass
    await _answer(send, b'{"message":"Hello"}')


async def bare_stream(scope: Any, receive: Any, send: Any) -> None:
    """Send as many chunks as the handler does."""
    headers = [(b"content-type", b"application/octet-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for _ in range(CHUNKS):
        await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


_routes = {b"/v1/hello": {"message": "Hello"}}
_encode = msgspec.json.Encoder().encode


async def floor_hello(scope: Any, receive: Any, send: Any) -> None:
    """Look the path up, encode the answer."""
    await _answer(send, _encode(_routes[scope["raw_path"]]))


async def floor_user(scope: Any, receive: Any, send: Any) -> None:
    """Split the path, give its last segment."""
    await _answer(send, _encode({"id": scope["raw_path"].split(b"/")[3].decode()}))


class Address(msgspec.Struct):
    """A part of the body of `items`."""

    street: str
    city: str
    zip: str
    country: str


class Item(msgspec.Struct):
    """The body of `items`."""

    name: str
    email: str
    age: int
    active: bool
    tags: list[str]
    scores: list[float]
    address: Address
    bio: str


_decode = msgspec.json.Decoder(Item).decode


async def floor_items(scope: Any, receive: Any, send: Any) -> None:
    """Decode and validate the body, encode it again."""
    await _answer(send, _encode(_decode((await receive())["body"])), 201)


async def _config() -> dict[str, str]:
    return {"dsn": "x"}


async def _database(config: Any) -> dict[str, Any]:
    return {"config": config}


async def _user(database: Any) -> dict[str, str]:
    return {"name": "ada"}


async def floor_di(scope: Any, receive: Any, send: Any) -> None:
    """Await three functions, one in the other."""
    who = await _user(await _database(await _config()))
    await _answer(send, _encode({"user": who["name"]}))


async def floor_upload(scope: Any, receive: Any, send: Any) -> None:
    """Parse the form with the same library and keep what it gives in memory."""
    from python_multipart.multipart import MultipartParser

    kept: list[bytes] = []

    def keep(data: bytes, start: int, end: int) -> None:
        kept.append(data[start:end])

    parser = MultipartParser(BOUNDARY, {"on_part_data": keep})
    more = True
    while more:
        message = await receive()
        parser.write(message["body"])
        more = message["more_body"]
    await _answer(send, _encode({"size": sum(map(len, kept))}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One scenario in process.

    Attributes:
        bar: microseconds of CPU that a request may take where `bare` takes `bare_table`.
        per: what a request consists of, where that is more than one thing.
        logged: whether the request line is written.
    """

    name: str
    path: str
    bar: float
    bare_table: float = 0.95
    method: str = "GET"
    headers: Header
    body: bytes = b""
    bare: App = bare
    floor: App | None = None
    per: int = 1
    logged: bool = False
    count: int = 1000


CASES = [
    Case(name="hello", path="/v1/hello", headers=HEADERS, bar=3.5, floor=floor_hello),
    Case(name="user", path="/v1/user/42", headers=HEADERS, bar=3.8, floor=floor_user),
    Case(
        name="items (fast)",
        path="/v1/items",
        method="POST",
        headers=JSON_HEADERS,
        body=BODY,
        bar=9.0,
        bare_table=1.15,
        floor=floor_items,
    ),
    Case(
        name="items (pydantic)",
        path="/v1/checked",
        method="POST",
        headers=JSON_HEADERS,
        body=BODY,
        bar=16.0,
        bare_table=1.15,
    ),
    Case(name="di", path="/v1/di", headers=HEADERS, bar=5.0, floor=floor_di),
    Case(name="1,000 routes", path="/v1/dyn250/42/leaf", headers=HEADERS, bar=4.1),
    Case(name="log", path="/v1/user/42", headers=HEADERS, bar=6.0, logged=True),
    Case(
        name="log_items",
        path="/v1/items",
        method="POST",
        headers=JSON_HEADERS,
        body=BODY,
        bar=16.0,
        bare_table=1.15,
        logged=True,
    ),
    Case(
        name="stream, a chunk",
        path="/v1/stream",
        headers=HEADERS,
        bare=bare_stream,
        bar=7.0,
        bare_table=0.15,
        per=CHUNKS,
        count=100,
    ),
]
UPLOAD_CASE = Case(
    name="upload",
    path="/v1/upload",
    method="POST",
    headers=UPLOAD_HEADERS,
    body=UPLOAD,
    bar=1.5,
    floor=floor_upload,
    count=20,
)
