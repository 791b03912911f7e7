"""What a request costs in process, beside a bare ASGI application in the same run.

    hatch run bench-http [--rounds 20]

Each scenario runs both in turns, a short batch each, and takes the best batch of CPU time: machines
are noisy, ratios are not. `bare` answers constants without routing or parsing; what treefold costs
above it is what a framework costs. docs/performance.md says what to reach.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from treefold_http import Application
from treefold_logging import configure, flush, get_logger

ITEM = {
    "name": "The Left Hand of Darkness",
    "email": "ursula@example.org",
    "age": 88,
    "active": True,
    "tags": ["gethen", "ekumen", "winter"],
    "scores": [1.5, 2.25, 3.125],
    "address": {"street": "1 Main Street", "city": "Portland", "zip": "97201"},
    "bio": "a book is a box of words until you open it " * 16,
}
BODY = json.dumps(ITEM).encode()
HEADERS = [
    (b"host", b"127.0.0.1:8000"),
    (b"user-agent", b"bench"),
    (b"accept", b"*/*"),
    (b"accept-encoding", b"gzip, deflate"),
    (b"connection", b"keep-alive"),
]
POSTED = [
    *HEADERS,
    (b"content-type", b"application/json"),
    (b"content-length", str(len(BODY)).encode()),
]

TREE = {
    "v1/Hello/Get.py": "async def handler(request):\n    return {'message': 'Hello'}\n",
    "v1/User/[id]/Get.py": "async def handler(request):\n    return dict(request.path_params)\n",
    "v1/Items/Post.py": """
from dataclasses import dataclass

@dataclass
class Item:
    name: str
    email: str
    age: int
    active: bool
    tags: list[str]
    scores: list[float]
    address: dict[str, str]
    bio: str

async def handler(item: Item):
    return item, 201
""",
    "v1/Di/Get.py": """
from treefold_http import Depends

async def config(): return {"dsn": "x"}
async def database(config=Depends(config)): return {"config": config}
async def user(database=Depends(database)): return {"name": "ada"}
async def handler(who=Depends(user)): return {"user": who["name"]}
""",
}

App = Callable[[Any, Any, Any], Awaitable[None]]
Case = tuple[str, str, list[tuple[bytes, bytes]], bytes]

CASES: dict[str, Case] = {
    "hello": ("GET", "/v1/hello", HEADERS, b""),
    "user": ("GET", "/v1/user/42", HEADERS, b""),
    "items": ("POST", "/v1/items", POSTED, BODY),
    "di": ("GET", "/v1/di", HEADERS, b""),
    "1,000 routes": ("GET", "/v1/dyn250/42/leaf", HEADERS, b""),
    "log": ("GET", "/v1/user/42", HEADERS, b""),
    "log_items": ("POST", "/v1/items", POSTED, BODY),
}


def project() -> Path:
    root = Path(tempfile.mkdtemp(prefix="treefold-bench-"))
    files = dict(TREE)
    for number in range(500):
        files[f"v1/Static{number}/Leaf/Get.py"] = TREE["v1/Hello/Get.py"]
        files[f"v1/Dyn{number}/[id]/Leaf/Get.py"] = TREE["v1/User/[id]/Get.py"]
    for name, text in files.items():
        path = root / "Api" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


async def bare(scope: Any, receive: Any, send: Any) -> None:
    if scope["method"] == "POST":
        await receive()
    body = b'{"message":"Hello"}'
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def batch(app: App, case: Case, count: int) -> float:
    method, path, headers, body = case

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        pass

    started = time.process_time()
    for _ in range(count):
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": list(headers),
            "scheme": "http",
            "http_version": "1.1",
            "client": ("127.0.0.1", 1),
        }
        await app(scope, receive, send)
    flush()
    return (time.process_time() - started) / count * 1e6


async def compare(app: App, case: Case, rounds: int) -> tuple[float, float]:
    best = {"bare": float("inf"), "treefold": float("inf")}
    for _ in range(rounds):
        for name, candidate in (("bare", bare), ("treefold", app)):
            best[name] = min(best[name], await batch(candidate, case, 1000))
    return best["bare"], best["treefold"]


async def run(rounds: int) -> None:
    application = Application(project())
    application.boot()
    print(f"{'scenario':14} {'bare us':>8} {'treefold us':>12} {'above bare us':>14} {'ratio':>6}")
    for name, case in CASES.items():
        get_logger().setLevel("INFO" if name.startswith("log") else "CRITICAL")
        floor, ours = await compare(application, case, rounds)
        print(f"{name:14} {floor:8.2f} {ours:12.2f} {ours - floor:14.2f} {ours / floor:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    # The log lines are written, as in production; only nobody is to read them here.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    configure(level="CRITICAL")
    os.environ["TREEFOLD_LOG_LEVEL"] = "CRITICAL"
    asyncio.run(run(arguments.rounds))


if __name__ == "__main__":
    main()
