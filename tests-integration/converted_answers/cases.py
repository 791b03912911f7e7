"""The handlers: each kind of return, input, error, dependency, limit and credential.

A case is the file of v1, the requests, and what `content` names of an answer: `KEEP` says it by
hand, as an oracle that knows nothing of how answers are read.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: path below the version, and what `httpx` takes."""

    path: str = ""
    options: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Case:
    """One handler of v1 and the type that v2 reads its answer into.

    Attributes:
        name: its folder.
        source: the file of v1, below the imports that all have.
        content: the type in brackets.
        asks: the requests.
        method: of the file.
        folder: below that of the case, such as `[id]`.
        given: the arguments in the call of v2.
        own: further parameters of the handler of v2.
    """

    name: str
    source: str
    content: str = "Book"
    asks: tuple[Ask, ...] = (Ask(),)
    method: str = "get"
    folder: str = ""
    given: str = ""
    own: str = ""


BOOK = {"isbn": "1", "title": "T", "author": {"name": "A", "born": 1900, "secret": "s"}, "price": 3}
IMPORTS = """
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

from treefold import (
    BackgroundTasks, BadRequest, Body, Changes, Conflict, Cookie, Depends, File, Forbidden, Form,
    Header, HTTPError, NotFound, Query, Request, Response, UploadFile, secured,
)
from treefold.auth import allow, api_key, bearer
from treefold.middleware import RateLimit
from Services.world import *

BOOK = {book}
""".replace("{book}", repr(BOOK))
WORLD = '''
"""What the handlers of both versions share."""

from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, TypedDict

from treefold import Depends, HTTPError, NotFound
from treefold.auth import Principal, api_key, bearer


@dataclass
class Author:
    name: str


@dataclass
class Book:
    isbn: str
    title: str
    author: Author


class Title(TypedDict):
    title: str


RUNS: list[str] = []
LOG: list[str] = []


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode()
    return asdict(value) if is_dataclass(value) else value


async def count_run() -> str:
    RUNS.append("run")
    return f"run {len(RUNS)}"


def open_sync():
    LOG.append("open")
    yield "sync"
    LOG.append("close")


async def open_async():
    yield "async"


def find_book(isbn: str) -> str:
    if isbn != "1":
        raise NotFound("No such book")
    return isbn


class Clock:
    def __init__(self, zone: str = "utc") -> None:
        self.zone = zone


KEY = "0123456789abcdef"


def find_token(token: str) -> Principal | None:
    return Principal(token, scopes=["book:read"] if token == "reader" else []) if token else None


keyed = api_key({"client": KEY})
signed_in = bearer(find_token)


async def require_header(request, call_next):
    if "x-guard" not in request.headers:
        raise HTTPError(403, "guarded")
    return await call_next(request)
'''
JSON_HEADERS = {"content-type": "application/json"}
KEY_HEADERS = {"x-api-key": "0123456789abcdef"}
READER, OTHER = {"authorization": "Bearer reader"}, {"authorization": "Bearer other"}


def ask(path: str = "", **options: Any) -> Ask:
    return Ask(path, options)


RETURNS = [
    Case(
        "dict",
        "async def handler(): return BOOK",
    ),
    Case(
        "sync",
        "def handler(): return BOOK",
    ),
    Case(
        "annotated",
        "async def handler() -> dict[str, object]: return BOOK",
    ),
    Case(
        "model",
        """
@dataclass
class Short:
    isbn: str
    title: str
    author: Author
response_model = Short
async def handler(): return BOOK
""",
    ),
    Case(
        "held",
        """
response_model = True
async def handler() -> Book: return BOOK  # type: ignore
""",
    ),
    Case(
        "instance",
        "async def handler(): return Book('1', 'T', Author('A'))",
    ),
    Case(
        "tuple",
        "async def handler() -> tuple[dict[str, Any], Literal[201]]: return BOOK, 201",
    ),
    Case(
        "tuple-fields",
        """
async def handler() -> tuple[dict[str, Any], Literal[202]]:
    return BOOK, 202, {'x-a': '1'}  # type: ignore
""",
    ),
    Case(
        "status-code",
        """
status_code = 201
async def handler() -> dict[str, Any]: return BOOK
""",
    ),
    Case(
        "response",
        "async def handler() -> Response: return Response.json(BOOK)",
    ),
    Case(
        "made-once",
        """
KEPT = Response.json(BOOK)
async def handler() -> Response: return KEPT
""",
    ),
    Case(
        "list",
        "async def handler() -> list[dict[str, Any]]: return [BOOK, BOOK]",
        content="list[Book]",
    ),
    Case(
        "listed-model",
        """
response_model = list[Book]
async def handler(): return [BOOK]
""",
        content="list[Title]",
    ),
    Case(
        "typed-dict",
        "async def handler() -> dict[str, Any]: return BOOK",
        content="Title",
    ),
    Case(
        "any",
        "async def handler() -> dict[str, Any]: return BOOK",
        content="dict[str, Any]",
    ),
    Case(
        "text",
        "async def handler() -> str: return 'hello'",
        content="str",
    ),
    Case(
        "text-json",
        "async def handler(): return Response.json('hello')",
        content="str",
    ),
    Case(
        "bytes",
        "async def handler() -> bytes: return b'hello'",
        content="bytes",
    ),
    Case(
        "none",
        "async def handler() -> None: return None",
        content="None",
        method="delete",
    ),
    Case(
        "perhaps",
        """
async def handler(empty: bool = False):
    return None if empty else BOOK
""",
        content="Book | None",
        asks=(ask(), ask("?empty=true")),
    ),
    Case(
        "named-tuple",
        """
class Pair(NamedTuple):
    title: str
    isbn: str
response_model = Title
async def handler(): return Pair('T', '1')
""",
        content="Title",
    ),
    Case(
        "decorated",
        """
import functools
def keep(f):
    @functools.wraps(f)
    async def inner(*a, **k): return await f(*a, **k)
    return inner
@keep
async def handler(n: int = 1): return {**BOOK, 'n': n}
""",
    ),
]
INPUTS = [
    Case(
        "path",
        "async def handler(id: int): return {**BOOK, 'isbn': str(id)}",
        asks=(ask("/7"), ask("/x")),
        folder="[id]",
    ),
    Case(
        "path-text",
        "async def handler(id): return {**BOOK, 'isbn': id}",
        asks=(ask("/a%20b"),),
        folder="[id]",
    ),
    Case(
        "query",
        """
async def handler(n: int, tags: list[str] = []):
    return {**BOOK, 'title': f'{n} {tags}'}
""",
        asks=(ask("?n=1&tags=a&tags=b"), ask("?n=x"), ask()),
    ),
    Case(
        "query-model",
        """
@dataclass
class Filters:
    n: int = 0
    q: str = ''
async def handler(filters: Annotated[Filters, Query()]):
    return {**BOOK, 'title': f'{filters}'}
""",
        asks=(ask("?n=1&q=a"), ask("?n=x"), ask()),
    ),
    Case(
        "header",
        """
async def handler(x_token: Annotated[str, Header()]):
    return {**BOOK, 'title': x_token}
""",
        asks=(ask(headers={"x-token": "a"}), ask()),
    ),
    Case(
        "cookie",
        """
async def handler(theme: Annotated[str, Cookie()] = 'dark'):
    return {**BOOK, 'title': theme}
""",
        asks=(ask(headers={"cookie": "theme=light"}), ask()),
    ),
    Case(
        "json",
        """
@dataclass
class New:
    title: str
async def handler(new: New) -> tuple[dict[str, Any], Literal[201]]:
    return {**BOOK, 'title': new.title}, 201
""",
        asks=(
            ask(json={"title": "N"}),
            ask(json={"title": 1}),
            ask(json={}),
            ask(content="{", headers=JSON_HEADERS),
            ask(content="x"),
        ),
        method="post",
    ),
    Case(
        "any-json",
        """
async def handler(new: Annotated[dict[str, Any], Body()]):
    return {**BOOK, **new}
""",
        asks=(ask(json={"title": "N"}), ask(json=[1])),
        method="put",
    ),
    Case(
        "form",
        """
async def handler(title: Annotated[str, Form()], n: Annotated[int, Form()] = 1):
    return {**BOOK, 'title': f'{title} {n}'}
""",
        asks=(ask(data={"title": "N"}), ask(data={"n": "x"})),
        method="post",
    ),
    Case(
        "file",
        """
async def handler(scan: UploadFile):
    return {**BOOK, 'title': (await scan.read()).decode()}
""",
        asks=(ask(files={"scan": ("a.txt", b"abc")}), ask()),
        method="post",
    ),
    Case(
        "request",
        """
async def handler(request: Request):
    return {**BOOK, 'title': request.query.get('t', '-')}
""",
        asks=(ask("?t=a"), ask()),
    ),
    Case(
        "request-body",
        """
async def handler(request: Request):
    return {**BOOK, 'title': (await request.json())['t']}
""",
        asks=(ask(json={"t": "a"}), ask(content="x", headers=JSON_HEADERS)),
        method="post",
    ),
    Case(
        "background",
        """
async def handler(background: BackgroundTasks):
    background.add(LOG.append, 'later')
    return BOOK
""",
    ),
    Case(
        "given-body",
        """
@dataclass
class New:
    title: str
async def handler(new: New): return {**BOOK, 'title': new.title}
""",
        asks=(),
        method="post",
        given="new=New('given')",
        own="made: Title, ",
    ),
    Case(
        "given-query",
        "async def handler(n: int): return {**BOOK, 'title': str(n)}",
        asks=(),
        given="n=5",
    ),
    Case(
        "two-places",
        """
async def handler(shop: str, id: int, q: str = ''):
    return {**BOOK, 'title': f'{shop} {id} {q}'}
""",
        asks=(ask("/a/items/7?q=z"), ask("/a/items/x")),
        folder="[shop]/Items/[id]",
    ),
]
ERRORS = [
    Case(
        "raised",
        """
async def handler(id: str):
    if id != '1':
        raise NotFound('No such book')
    return BOOK
""",
        asks=(ask("/1"), ask("/2")),
        folder="[id]",
    ),
    Case(
        "raised-fields",
        """
async def handler():
    raise Conflict('taken', headers={'x-why': 'a'})
""",
    ),
    Case(
        "returned",
        """
responses = {404: {'media_type': 'application/json'}}
async def handler(id: str):
    if id != '1':
        return {'why': 'gone'}, 404
    return BOOK
""",
        asks=(ask("/1"), ask("/2")),
        folder="[id]",
    ),
    Case(
        "response-error",
        """
responses = {409: {'media_type': 'application/json'}}
async def handler():
    return Response.json({'why': 'taken'}, 409)
""",
    ),
    Case(
        "redirect",
        """
responses = {302: 'Elsewhere'}
async def handler():
    return Response('', 302, headers={'location': '/v1/x'})
""",
    ),
    Case(
        "declared",
        """
responses = {410: {'model': Title}}
async def handler():
    return {'title': 'gone'}, 410
""",
    ),
    Case(
        "annotated-error",
        """
async def handler(id: str) -> (
    tuple[dict[str, Any], Literal[200]] | tuple[Title, Literal[404]]
):
    return (BOOK, 200) if id == '1' else ({'title': 'none'}, 404)
""",
        asks=(ask("/1"), ask("/2")),
        folder="[id]",
    ),
    Case(
        "raised-in-service",
        """
async def handler(book: str = Depends(find_book)):
    return BOOK
""",
        asks=(ask("/1"), ask("/2")),
        folder="[isbn]",
    ),
    Case(
        "forbidden",
        "async def handler(): raise Forbidden('no')",
    ),
    Case(
        "http-error",
        "async def handler(): raise HTTPError(418, 'tea')",
    ),
]
DEPENDENCIES = [
    Case(
        "shared",
        "async def handler(run: str = Depends(count_run)): return {**BOOK, 'title': run}",
        own="run: str = Depends(count_run), ",
    ),
    Case(
        "generator",
        """
async def handler(a: str = Depends(open_sync), b: str = Depends(open_async)):
    return {**BOOK, 'title': a + b}
""",
    ),
    Case(
        "class",
        """
async def handler(clock: Annotated[Clock, Depends()]):
    return {**BOOK, 'title': clock.zone}
""",
        asks=(ask("?zone=x"), ask()),
    ),
    Case(
        "nested",
        """
async def inner(n: int = 1): return n
async def outer(n: int = Depends(inner)): return n + 1
async def handler(n: int = Depends(outer)): return {**BOOK, 'title': str(n)}
""",
        asks=(ask("?n=4"), ask("?n=x")),
    ),
    Case(
        "local",
        """
from .Services.names import NAME
async def handler(): return {**BOOK, 'title': NAME}
""",
    ),
]
LIMITS = [
    Case(
        "max-body",
        """
max_body = 10
async def handler(new: Annotated[dict[str, Any], Body()]):
    return BOOK
""",
        asks=(ask(json={"a": 1}), ask(json={"a": "xxxxxxxxxxxxxxxxxxxx"})),
        method="post",
    ),
    Case(
        "timeout",
        """
import asyncio
timeout = 0.05
async def handler(slow: bool = False):
    if slow: await asyncio.sleep(5)
    return BOOK
""",
        asks=(ask(), ask("?slow=true")),
    ),
    Case(
        "rate",
        """
middlewares = [RateLimit('2/hour')]
responses = {429: 'Too many'}
async def handler(): return BOOK
""",
        asks=(ask(), ask(), ask()),
    ),
    Case(
        "unlogged",
        """
log_payload = False
async def handler(new: Annotated[dict[str, Any], Body()]):
    return BOOK
""",
        asks=(ask(json={"a": "kept out"}),),
        method="post",
    ),
]
CREDENTIALS = [
    Case(
        "key",
        """
async def handler(client: str = Depends(keyed)): return {**BOOK, 'title': client}
""",
        asks=(ask(headers=KEY_HEADERS), ask(headers={"x-api-key": "no"}), ask()),
    ),
    Case(
        "scoped",
        """
reader = allow('book:read', by=signed_in)
async def handler(user: Any = Depends(reader)): return BOOK
""",
        asks=(ask(headers=READER), ask(headers=OTHER), ask()),
    ),
    Case(
        "layered-key",
        """
middlewares = [keyed]
async def handler(): return BOOK
""",
        asks=(ask(headers=KEY_HEADERS), ask()),
    ),
    Case(
        "own-guard",
        """
middlewares = [require_header]
responses = {403: 'No'}
async def handler(): return BOOK
""",
        asks=(ask(headers={"x-guard": "1"}), ask()),
    ),
    Case(
        "project-guard",
        """
responses = {403: 'No'}
async def handler(): return BOOK
""",
        asks=(ask(headers={"x-guard": "1"}), ask()),
    ),
    Case(
        "marked",
        """
@secured({'type': 'http', 'scheme': 'bearer'}, name='marked')
async def check(request: Request) -> str:
    if request.headers.get('authorization') != 'Bearer x':
        raise HTTPError(401, 'who?')
    return 'x'
async def handler(user: str = Depends(check)): return BOOK
""",
        asks=(ask(headers={"authorization": "Bearer x"}), ask()),
    ),
]
CASES = [*RETURNS, *INPUTS, *ERRORS, *DEPENDENCIES, *LIMITS, *CREDENTIALS]


def keep(answer: Any, content: str) -> Any:
    """Return what a type names of an answer."""
    if answer is None:
        return None
    if content.startswith("list["):
        return [keep(each, content[5:-1]) for each in answer]
    match content.removesuffix(" | None"):
        case "Book":
            author = {"name": answer["author"]["name"]}
            return {"isbn": answer["isbn"], "title": answer["title"], "author": author}
        case "Title":
            return {"title": answer["title"]}
        case _:
            return answer


def write_project(root: Any) -> None:
    """Write the project: a case is a folder of v1, and one file of v2."""
    files = {
        "Services/world.py": WORLD,
        "Api/v2/version.toml": 'inherits = "v1"\n',
        "Middleware/__init__.py": (
            "from treefold.middleware import under\nfrom Services.world import require_header\n\n"
            'middlewares = [under("/v1/project-guard", require_header)]\n'
        ),
        "Api/v1/Local/Services/names.py": 'NAME = "the name of v1"\n',
        "Api/v2/Local/Services/names.py": 'NAME = "the name of v2"\n',
    }
    for case in CASES:
        below = f"{case.name.title()}/{case.folder}".rstrip("/")
        file = f"{below}/{case.method.capitalize()}.py"
        shapes = "@dataclass\nclass New:\n    title: str\n" if "New" in case.given else ""
        files[f"Api/v1/{file}"] = f"{IMPORTS}\n{case.source}\n"
        files[f"Api/v2/{file}"] = (
            f"{IMPORTS}\nfrom treefold import Inherited\n{shapes}\n"
            f"async def handler({case.own and '*, '}{case.own}before: Inherited[{case.content}])"
            " -> dict[str, Any]:\n"
            f'    return {{"before": plain(await before({case.given}))}}\n'
        )
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
