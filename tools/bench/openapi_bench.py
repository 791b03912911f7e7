"""What the first OpenAPI document of 500 routes costs; exit code 1 above the bar.

    hatch run bench-openapi [--routes 500] [--bar 200]

CPU time of the process, boot excluded: the routes take path and query parameters, dataclass bodies,
pydantic models and typed answers in turn, behind one rate limit, as a project of that size would.
The median of several projects, each beside the floor of a boot, carried to the machine where the
bar was set.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from boot_floor import TABLE as BOOT_FLOOR, await_bytecode, boot_floor
from http_cases import project as floor_project

from treefold_http import Application
from treefold_http.openapi import openapi_document
from treefold_logging import configure

HANDLERS = (
    '''
async def handler(id: int, limit: int = 20, q: str | None = None) -> dict[str, int]:
    """List things.

    All of them, in order.
    """
    return {"id": id}
''',
    """
from dataclasses import dataclass, field
from treefold_http import Conflict, Depends, Unauthorized

@dataclass
class Line:
    name: str
    count: int = 1

@dataclass
class Order{number}:
    lines: list[Line]
    note: str | None = None
    tags: list[str] = field(default_factory=list)

async def user(request):
    raise Unauthorized("Who are you?")

async def handler(id: int, order: Order{number}, who: str = Depends(user)) -> Order{number}:
    if not order.lines:
        raise Conflict("Nothing in it")
    return order
""",
    """
from pydantic import BaseModel, Field

class Part{number}(BaseModel):
    name: str = Field(min_length=1)
    size: int = 0

class Thing{number}(BaseModel):
    parts: list[Part{number}]
    price: float | None = None

async def handler(id: int, thing: Thing{number}) -> Thing{number}:
    return thing
""",
    """
async def handler(request):
    return {}
""",
    """
from uuid import UUID
from treefold_http import NotFound

status_code = 200
tags = ["things"]

async def handler(id: UUID, page: int = 1) -> list[dict[str, str]]:
    raise NotFound("No such thing")
""",
)
MIDDLEWARE = """
from treefold_http.middleware import RateLimit

middlewares = [RateLimit("100/s")]
"""
METHODS = ("Get", "Post", "Put", "Delete", "Patch")


def project(routes: int) -> Path:
    """Write a project of that many routes."""
    root = Path(tempfile.mkdtemp(prefix="treefold-openapi-"))
    for number in range(routes):
        kind = number % len(HANDLERS)
        folder = root / f"Api/v1/Thing{number // len(HANDLERS)}/[id]"
        folder.mkdir(parents=True, exist_ok=True)
        text = HANDLERS[kind].replace("{number}", str(number))
        (folder / f"{METHODS[kind]}.py").write_text(text)
    (root / "Middleware").mkdir()
    (root / "Middleware" / "__init__.py").write_text(MIDDLEWARE)
    return root


def measure(routes: int) -> tuple[float, int]:
    """Give the CPU milliseconds of the first document, and its paths."""
    app = Application(project(routes))
    app.boot()
    await_bytecode()
    # A process has one project: a collection that walks those of earlier rounds is not its cost.
    gc.collect()
    gc.freeze()
    started = time.process_time()
    document = openapi_document(app)
    return (time.process_time() - started) * 1000, len(document["paths"])


def main() -> int:
    """Measure, print, and say by the exit code whether the bar holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=int, default=500)
    parser.add_argument("--bar", type=float, default=200.0, help="milliseconds of CPU")
    options = parser.parse_args()
    configure(level="ERROR")
    spent, ratios, paths = list[float](), list[float](), 0
    with floor_project(1000, {}) as root:
        for _ in range(9):
            taken, paths = measure(options.routes)
            spent.append(taken)
            ratios.append(taken / boot_floor(root))
    figure = median(ratios) * BOOT_FLOOR
    print(f"first document of {options.routes} routes, {paths} paths: {min(spent):.0f} ms at best")
    print(f"{median(ratios):.2f} floors of a boot of 1,000 routes, {figure:.0f} ms where one is 40")
    print(f"bar {options.bar:.0f} ms: {'holds' if figure <= options.bar else 'BROKEN'}")
    return 0 if figure <= options.bar else 1


if __name__ == "__main__":
    sys.exit(main())
