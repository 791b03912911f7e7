"""What users write, as type checkers see it: strict pyright and strict mypy report nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, assert_type
from uuid import UUID

from treefold import (
    Application,
    BackgroundTasks,
    CallNext,
    Connection,
    Depends,
    ErrorFormat,
    Event,
    EventStream,
    FileResponse,
    Form,
    Header,
    HTTPError,
    NotFound,
    Query,
    Request,
    Response,
    StreamingResponse,
    UploadFile,
    WebSocket,
    WebSocketCallNext,
    get_logger,
    mask,
)
from treefold.auth import (
    Principal,
    allow,
    api_key,
    bearer,
    current_user as session_user,
    identify,
    jwt,
    jwt_issuer,
    one_of,
    principal_key,
)
from treefold.middleware import RateLimit


@dataclass
class User:
    id: int
    name: str


class Database:
    async def user(self, id: int) -> User | None:
        return User(id, "ada") if id == 1 else None


async def database() -> AsyncIterator[Database]:
    yield Database()


def settings() -> Iterator[dict[str, str]]:
    yield {"dsn": "x"}


async def current_user(
    request: Request, db: Database = Depends(database), token: Annotated[str, Header()] = ""
) -> User:
    user = await db.user(len(token))
    if user is None:
        raise NotFound("There is no such user")
    request.state.user = user
    return user


class Page:
    def __init__(self, page: int = 1, size: int = 20) -> None:
        self.start = (page - 1) * size


async def get(
    id: int,
    user: User = Depends(current_user),
    page: Page = Depends(Page),
    config: dict[str, str] = Depends(settings),
    tags: Annotated[list[str] | None, Query()] = None,
) -> dict[str, object]:
    name: str = user.name
    start: int = page.start
    return {"id": id, "name": name, "start": start, "dsn": config["dsn"], "tags": tags}


async def post(user: User, background: BackgroundTasks) -> tuple[User, int, dict[str, str]]:
    background.add(get_logger().info, "made %s", user.name)
    return user, 201, {"Location": f"/v1/user/{user.id}"}


async def upload(image: UploadFile, note: Annotated[str, Form()]) -> dict[str, int]:
    data: bytes = await image.read()
    return {"size": len(data), "note": len(note)}


def plain(id: UUID) -> str:
    if not id.int:
        raise HTTPError(422, "not that one")
    return str(id)


async def answers(request: Request) -> Response:
    body = await request.json()
    query: str | None = request.query.get("q")
    many: list[str] = request.query.getlist("q")
    if query == "stream":
        return StreamingResponse(iter([b"a", b"b"]))
    if query == "events":
        return EventStream(events())
    if query == "file":
        return FileResponse("page.html")
    response = Response.json({"body": mask(body), "many": many}, status=202)
    response.headers["X-One"] = "1"
    response.set_cookie("seen", "yes", max_age=60)
    return response


async def events() -> AsyncIterator[Event]:
    yield Event({"n": 1}, "tick")


async def socket(websocket: WebSocket, room: str) -> None:
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_json({"room": room, "text": text})
    first: User = await websocket.receive_json(User)
    async for user in websocket.iter_json(User):
        names: list[str] = [first.name, user.name]
        await websocket.send_json(names)


app = Application("shop", dev=True, default_version="latest")
app.overrides[current_user] = lambda: User(1, "ada")


@app.exception_handler(KeyError)
async def missing(request: Request, error: KeyError) -> tuple[str, int]:
    return f"{request.path} {error}", 404


async def timing(request: Request, call_next: CallNext) -> Response:
    response = await call_next(request)
    response.headers["x-route"] = request.route or ""
    return response


class Members:
    async def websocket(self, websocket: WebSocket, call_next: WebSocketCallNext) -> None:
        await call_next(websocket)


def language(connection: Connection) -> str:
    return connection.headers.get("accept-language", "en")


def error_format(request: Connection, error: HTTPError) -> dict[str, str]:
    return {"error": error.title}


app.error_format(error_format)
app.error_format(ErrorFormat(error_format, media_type="application/problem+json"))


def find_plain(key: str) -> User | None:
    return User(1, key) if key else None


async def find_async(key: str) -> User | None:
    return find_plain(key)


by_plain = api_key(find_plain)
by_async = api_key(find_async, header="X-Partner-Key")
by_name = api_key({"till": "b9e3a7d1c5f04826"})
by_token = bearer(find_async)


async def find_user(id: int) -> User | None:
    return User(id, "ada")


async def principal_of(user: User) -> Principal:
    return Principal(user.id, roles=["editor"], scopes={"book:write"})


by_session = session_user(find_user, identify=principal_of)
by_claims = jwt("k" * 32, algorithm="HS256", name="claims", scheme="Token")
by_issuer = jwt_issuer("https://id.example.com", audience="shop", algorithms=["ES256"])
anyone = one_of(by_session, by_name)
whoever = one_of(by_session, by_name, by_claims)
visitor = one_of(by_session, by_name, optional=True)
writers = allow("book:write", by=anyone)
readers = allow("book:read")
editors = allow(roles=["editor"], by=by_session)
limits = [anyone, RateLimit("9/min", key=principal_key)]


def check_badge(request: Request) -> None:
    identify(request, Principal(7, "badge"))


async def callers_of(
    request: Request,
    either: Annotated[User | str, Depends(anyone)],
    writer: Annotated[User | str, Depends(writers)],
    editor: User = Depends(editors),
    caller: Principal = Depends(readers),
    guest: User | str | None = Depends(visitor),
) -> dict[str, str | int]:
    assert_type(await anyone(request), User | str)
    assert_type(await whoever(request), User | str | dict[str, Any])
    assert_type(await visitor(request), User | str | None)
    assert_type(await writers(request), User | str)
    assert_type(await editors(request), User)
    assert_type(await by_issuer(request), dict[str, Any])
    assert_type(request.principal, Principal | None)
    return {"id": caller.id, "name": editor.name, "either": str(either), "guest": str(guest)}


async def partner_of(
    request: Request,
    plain: Annotated[User, Depends(by_plain)],
    client: Annotated[str, Depends(by_name)],
    user: User = Depends(by_async),
    holder: User = Depends(by_token),
) -> dict[str, str]:
    assert_type(await by_plain(request), User)
    assert_type(await by_async(request), User)
    assert_type(await by_name(request), str)
    return {"plain": plain.name, "client": client, "user": user.name, "holder": holder.name}
