"""Sessions: what is kept for a client, how long, who may bring it (S-64 to S-69, D-10, D-11)."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError, Settings, SettingsError
from treefold_http._session_keepers import keepers
from treefold_http._sessions import stores
from treefold_http._sessions.records import SessionRecord
from treefold_http._sessions.signing import Signer
from treefold_http._sessions.stores import MemorySessions
from treefold_http.middleware import Sessions
from treefold_http.middleware._sessions import _memories
from treefold_logging import flush

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange, Lines, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

SECRET = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"
SETTINGS = Settings(secret_key=SECRET)

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return 'ok'",
    "Api/v1/Count/Post.py": """
        async def handler(request):
            session = request.session
            session["n"] = session.get("n", 0) + 1
            return {"n": session["n"], "user": session.user, "new": session.is_new}
        """,
    "Api/v1/Show/Get.py": """
        async def handler(request):
            return {"data": dict(request.session), "user": request.session.user}
        """,
    "Api/v1/Sync/Post.py": """
        def handler(request):
            request.session["sync"] = True
            return dict(request.session)
        """,
    "Api/v1/List/Post.py": """
        async def handler(request):
            request.session.setdefault("items", []).append("x")
            return {"n": len(request.session["items"])}
        """,
    "Api/v1/Login/Post.py": """
        from treefold_http.auth import login

        async def handler(request):
            login(request, (await request.json())["user"])
        """,
    "Api/v1/Logout/Post.py": """
        from treefold_http.auth import logout

        async def handler(request):
            logout(request)
        """,
    "Api/v1/Rotate/Post.py": """
        async def handler(request):
            request.session.rotate()
        """,
    "Api/v1/Slow/Post.py": """
        import asyncio

        begun, finish = asyncio.Event(), asyncio.Event()

        async def handler(request):
            request.session["slow"] = True
            if request.query.get("rotate"):
                request.session.rotate()
            begun.set()
            await finish.wait()
        """,
    "Api/v1/Crash/Post.py": """
        from treefold_http.auth import login

        async def handler(request):
            login(request, "ann")
            raise LookupError
        """,
    "Api/v1/Put/Post.py": """
        import datetime

        async def handler(request):
            request.session["v"] = eval(await request.json())
        """,
    "Api/v1/Stream/Get.py": """
        async def handler(request):
            async def lines():
                yield "a"
                request.session["late"] = True
            request.session["early"] = True
            return lines()
        """,
    "Api/v1/Cached/Get.py": """
        from treefold_http import Response

        async def handler(request):
            request.session.get("a")
            return Response.text("a", headers={"Cache-Control": "private, max-age=5"})
        """,
    "Api/v1/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            await websocket.send_json({"user": websocket.session.user})
            try:
                websocket.session["a"] = 1
            except RuntimeError as error:
                await websocket.send_text(str(error))
        """,
    "Middleware/__init__.py": """
        from treefold_http.middleware import Sessions
        middlewares = [Sessions()]
        """,
}


def tree(entry: str = "Sessions()") -> dict[str, str]:
    return TREE | {
        "Middleware/__init__.py": "from treefold_http.middleware import CSRF, Sessions, under\n"
        f"middlewares = [{entry}]\n"
    }


class Client:
    """A client that keeps cookies as a browser does, and sends requests from this site."""

    def __init__(self, app: Application, ask: Ask) -> None:
        self.app = app
        self._ask = ask
        self.cookies: dict[str, str] = {}

    def send(self, method: str, target: str, body: Any = None, **options: Any) -> Answer:
        headers = [("origin", "http://example.localhost"), *options.pop("headers", ())]
        if self.cookies:
            headers.append(("cookie", "; ".join(f"{k}={v}" for k, v in self.cookies.items())))
        if body is not None:
            options["chunks"] = [json.dumps(body).encode()]
        answer = self._ask(self.app, method, target, headers=headers, **options)
        self.take(answer)
        return answer

    def take(self, answer: Answer) -> None:
        for field in answer.fields("set-cookie"):
            name, _, value = field.partition(";")[0].partition("=")
            if "Max-Age=0;" in field:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value

    def get(self, target: str) -> Answer:
        return self.send("GET", target)

    def post(self, target: str, body: Any = None) -> Answer:
        return self.send("POST", target, body)

    def shown(self) -> Any:
        return self.get("/v1/show").json()


@pytest.fixture
def client(project: Project, ask: Ask) -> Client:
    return Client(project(TREE, settings=SETTINGS), ask)


@pytest.fixture(params=["Sessions()", "Sessions(store='cookie')"], ids=["memory", "cookie"])
def either(project: Project, ask: Ask, request: pytest.FixtureRequest) -> Client:
    """A client of an application with sessions of either kind."""
    return Client(project(tree(request.param), settings=SETTINGS), ask)


def memory_of(app: Application) -> MemorySessions:
    from treefold_http.middleware._sessions import _get_or_create_memory_store

    return _get_or_create_memory_store(app, "session")


# -- what is kept


def test_values_last_from_one_request_to_the_next(either: Client) -> None:
    assert either.post("/v1/count").json() == {"n": 1, "user": None, "new": True}
    assert either.post("/v1/count").json() == {"n": 2, "user": None, "new": False}
    assert either.shown() == {"data": {"n": 2}, "user": None}


def test_a_change_inside_of_a_list_is_kept(either: Client) -> None:
    assert [either.post("/v1/list").json()["n"] for _ in range(3)] == [1, 2, 3]


def test_a_plain_function_uses_the_session_too(either: Client) -> None:
    either.post("/v1/count")
    assert either.post("/v1/sync").json() == {"n": 1, "sync": True}
    assert either.shown()["data"] == {"n": 1, "sync": True}


def test_two_clients_have_two_sessions(client: Client, ask: Ask) -> None:
    other = Client(client.app, ask)
    client.post("/v1/count")
    assert other.post("/v1/count").json()["n"] == 1


def test_a_request_that_does_not_touch_its_session_gets_no_cookie(either: Client) -> None:
    assert either.get("/v1/ok").fields("set-cookie") == []
    either.post("/v1/count")
    answer = either.get("/v1/ok")
    assert (answer.fields("set-cookie"), answer.fields("vary")) == ([], [])


def test_s68_requests_that_only_read_keep_nothing(client: Client, ask: Ask) -> None:
    for _ in range(50):
        answer = Client(client.app, ask).get("/v1/show")
        assert answer.fields("set-cookie") == []
    assert len(memory_of(client.app)) == 0


def test_s68_the_memory_is_bounded_and_drops_the_least_recently_used() -> None:
    async def main() -> None:
        store = MemorySessions(max_bytes=100_000)
        await store.set("kept", b"x" * 100, seconds=60)
        for n in range(2000):
            await store.set(f"k{n}", b"x" * 100, seconds=60)
            assert await store.get("kept") is not None
        assert len(store) <= 200
        assert await store.get("k0") is None
        assert await store.get("k1999") is not None

    asyncio.run(main())


def record_of(user: str | None, size: int = 100) -> bytes:
    return SessionRecord("id", time.time(), user, {"v": "x" * size}).to_json()


def test_s68_anonymous_sessions_give_way_before_those_of_users() -> None:
    async def main() -> None:
        store = MemorySessions(max_bytes=100_000)
        for n in range(100):
            await store.set(f"user {n}", record_of("ann"), seconds=60)
        for n in range(5000):
            await store.set(f"anonymous {n}", record_of(None), seconds=60)
        assert [n for n in range(100) if await store.get(f"user {n}") is None] == []
        assert await store.get("anonymous 0") is None
        assert await store.get("anonymous 4999") is not None

    asyncio.run(main())


def test_s68_users_leave_room_for_those_who_log_in() -> None:
    async def main() -> None:
        store = MemorySessions(max_bytes=100_000)
        for n in range(20):
            await store.set(f"anonymous {n}", record_of(None), seconds=60)
        for n in range(5000):
            await store.set(f"user {n}", record_of("ann"), seconds=60)
        assert [n for n in range(20) if await store.get(f"anonymous {n}") is None] == []
        assert await store.get("user 0") is None
        assert await store.get("user 4999") is not None

    asyncio.run(main())


def test_s68_a_session_that_gets_a_user_is_counted_once() -> None:
    async def main() -> None:
        store = MemorySessions(max_bytes=100_000)
        anonymous, of_user = record_of(None), record_of("ann")
        for _ in range(2000):
            await store.set("k", anonymous, seconds=60)
            await store.replace("k", of_user, seconds=60)
        assert (store._users.bytes, store._anonymous.bytes) == (len(of_user) + 400, 0)
        await store.delete("k")
        assert (len(store), store._users.bytes) == (0, 0)

    asyncio.run(main())


def test_s68_pages_with_tokens_do_not_log_users_out(project: Project, ask: Ask) -> None:
    token = "async def handler(request): return request.session.csrf_token()"
    app = project({**TREE, "Api/v1/Form/Get.py": token}, settings=SETTINGS)
    _memories.setdefault(app, {})["session"] = MemorySessions(max_bytes=100_000)
    user = Client(app, ask)
    user.post("/v1/login", {"user": "ann"})
    for _ in range(400):
        assert Client(app, ask).get("/v1/form").status == 200
    assert user.shown()["user"] == "ann"


def test_s68_one_value_does_not_empty_the_store() -> None:
    async def main() -> None:
        store = MemorySessions(max_bytes=100_000)
        await store.set("kept", record_of("ann"), seconds=60)
        with pytest.raises(ValueError, match="must have at most 12500 bytes, got 12"):
            await store.set("large", record_of("bob", 12_100), seconds=60)
        assert await store.get("kept") is not None
        assert await store.get("large") is None

    asyncio.run(main())


def test_s68_a_session_of_many_bytes_is_an_error_that_says_so(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.post("/v1/count")
    answer = client.post("/v1/put", "'x' * 300_000")
    assert answer.status == 500
    assert client.shown()["data"] == {"n": 1}
    flush()
    assert "A session must have at most 262144 bytes, got 3000" in caplog.text


@pytest.mark.parametrize(
    ("before", "after"),
    [("Sessions()", "Sessions(store='cookie')"), ("Sessions(store='cookie')", "Sessions()")],
)
def test_a_cookie_of_another_store_is_nobody_and_no_error(
    project: Project, ask: Ask, before: str, after: str
) -> None:
    """The store of a project changes, and its secret stays."""
    old = Client(project(tree(before), root="old", settings=SETTINGS), ask)
    new = Client(project(tree(after), root="new", settings=SETTINGS), ask)
    old.post("/v1/login", {"user": "ann"})
    new.cookies = old.cookies
    assert new.shown() == {"data": {}, "user": None}
    assert new.post("/v1/count").json() == {"n": 1, "user": None, "new": True}


def test_a_stored_value_that_has_expired_is_absent_for_every_method() -> None:
    async def main() -> None:
        store = MemorySessions()
        await store.set("k", b"v", seconds=0.001)
        await asyncio.sleep(0.002)
        assert await store.get("k") is None
        assert await store.touch("k", seconds=9) is False
        assert await store.replace("k", b"w", seconds=9) is False
        assert await store.delete("k") is False
        assert len(store) == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("datetime.datetime(2026, 1, 1)", "got 'datetime', which JSON cannot restore"),
        ("{1: 2}", "must have text keys, got 1"),
        ("[{'a': (1, 2)}]", "got 'tuple', which"),
        ("b'x'", "got 'bytes', which"),
        ("float('nan')", "JSON"),
    ],
)
def test_a_value_that_json_cannot_give_back_is_an_error_that_names_it(
    either: Client, lines: Lines, value: str, message: str
) -> None:
    assert either.post("/v1/put", value).status == 500
    (error,) = lines.errors()
    with pytest.raises((TypeError, ValueError), match=message):
        raise error
    assert either.shown()["data"] == {}


def test_a_key_is_text(project: Project, ask: Ask, lines: Lines) -> None:
    files = TREE | {"Api/v1/Key/Post.py": "async def handler(request): request.session[5] = 1"}
    assert ask(project(files, settings=SETTINGS), "POST", "/v1/key").status == 500
    assert str(lines.errors()[0]) == "A session key must be text, got 5"


def test_an_answer_that_fails_saves_nothing(either: Client) -> None:
    either.post("/v1/count")
    before = dict(either.cookies)
    assert either.post("/v1/crash").status == 500
    assert either.cookies == before
    assert either.shown() == {"data": {"n": 1}, "user": None}


def test_a_change_after_the_answer_began_is_an_error(client: Client, lines: Lines) -> None:
    client.get("/v1/stream")
    assert client.shown()["data"] == {"early": True}
    (error,) = lines.errors()
    with pytest.raises(
        RuntimeError, match="The session was saved when the response started; change it"
    ):
        raise error


def test_without_the_middleware_the_error_says_what_to_do(
    project: Project, ask: Ask, lines: Lines
) -> None:
    app = project({**TREE, "Middleware/__init__.py": ""})
    assert ask(app, "GET", "/v1/show").status == 500
    (error,) = lines.errors()
    with pytest.raises(RuntimeError, match=r"add Sessions\(\) of treefold.middleware to"):
        raise error


# -- the cookie


ATTRIBUTES = {"Max-Age=1209600", "Path=/", "Secure", "HttpOnly", "SameSite=Lax"}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_s67_the_cookie_has_all_flags_and_the_host_prefix(either: Client, scheme: str) -> None:
    answer = either.send(
        "POST", "/v1/count", more={"scheme": scheme}, headers=[("sec-fetch-site", "same-origin")]
    )
    (field,) = answer.fields("set-cookie")
    cookie, *attributes = field.split("; ")
    assert cookie.startswith("__Host-session=")
    assert set(attributes) == ATTRIBUTES


def test_s67_only_development_over_plain_http_has_another_cookie(
    project: Project, ask: Ask
) -> None:
    app = project(TREE, dev=True)
    plain = ask(app, "POST", "/v1/count").fields("set-cookie")[0]
    assert plain.startswith("session=")
    assert "Secure" not in plain
    tls = ask(app, "POST", "/v1/count", more={"scheme": "https"}).fields("set-cookie")[0]
    assert tls.startswith("__Host-session=")
    assert "Secure" in tls


def test_a_cookie_for_subdomains_has_the_secure_prefix(project: Project, ask: Ask) -> None:
    entry = "Sessions(domain='example.localhost', samesite='strict')"
    app = project(tree(entry), settings=SETTINGS)
    (field,) = ask(app, "POST", "/v1/count").fields("set-cookie")
    assert field.startswith("__Secure-session=")
    assert "Domain=example.localhost" in field
    assert "SameSite=Strict" in field


def test_s52_an_answer_with_a_session_is_not_for_shared_caches(client: Client) -> None:
    answer = client.get("/v1/show")
    assert (answer.fields("vary"), answer.fields("cache-control")) == (["Cookie"], ["no-store"])
    assert client.get("/v1/cached").fields("cache-control") == ["private, max-age=5"]


def test_d10_an_id_has_256_bits_and_the_store_does_not_know_it(client: Client) -> None:
    client.post("/v1/count")
    id = client.cookies["__Host-session"].partition(".")[0]
    assert len(base64.urlsafe_b64decode(f"{id}=")) == 32
    assert id not in repr(vars(memory_of(client.app)))


# -- who may bring which session


def test_s64_a_login_gives_another_id_and_the_old_one_is_anonymous(client: Client) -> None:
    client.post("/v1/count")
    old = dict(client.cookies)
    client.post("/v1/login", {"user": 7})
    assert client.cookies != old
    assert client.shown() == {"data": {"n": 1}, "user": 7}

    client.cookies = old
    assert client.shown() == {"data": {}, "user": None}


@pytest.mark.parametrize(
    "value", ["chosen", "chosen.", ".chosen", "a" * 43 + "." + "a" * 43, "\xff.x"]
)
def test_s64_an_id_that_a_client_chose_is_never_adopted(either: Client, value: str) -> None:
    either.cookies = {"__Host-session": value, "session": value}
    either.post("/v1/login", {"user": "ann"})
    assert value not in either.cookies["__Host-session"].split(".")
    assert either.shown()["user"] == "ann"


def test_s64_a_session_of_another_user_leaves_nothing_to_the_next(client: Client) -> None:
    client.post("/v1/login", {"user": "ann"})
    client.post("/v1/count")
    client.post("/v1/login", {"user": "bob"})
    assert client.shown() == {"data": {}, "user": "bob"}


def test_a_session_may_be_given_another_id_without_a_login(either: Client) -> None:
    either.post("/v1/login", {"user": "ann"})
    old = dict(either.cookies)
    either.post("/v1/rotate")
    assert either.cookies != old
    assert either.shown()["user"] == "ann"


def test_s65_after_a_logout_the_old_cookie_is_anonymous(client: Client) -> None:
    client.post("/v1/login", {"user": "ann"})
    kept = dict(client.cookies)
    answer = client.post("/v1/logout")
    assert "Max-Age=0" in answer.fields("set-cookie")[0]
    assert client.cookies == {}

    client.cookies = kept
    assert client.shown() == {"data": {}, "user": None}


def test_s65_a_logout_ends_the_cookie_of_a_signed_session(project: Project, ask: Ask) -> None:
    client = Client(project(tree("Sessions(store='cookie')"), settings=SETTINGS), ask)
    client.post("/v1/login", {"user": "ann"})
    client.post("/v1/logout")
    assert client.cookies == {}


@pytest.mark.parametrize("target", ["/v1/slow", "/v1/slow?rotate=1"])
def test_s65_a_request_that_saves_after_the_logout_revives_nothing(
    client: Client, exchange: type[Exchange], target: str
) -> None:
    client.post("/v1/login", {"user": "ann"})
    cookie = "; ".join(f"{k}={v}" for k, v in client.cookies.items())
    headers = [("cookie", cookie), ("origin", "http://example.localhost")]
    (slow,) = [m for r, m in client.app.project.modules.items() if r.template == "/v1/slow"]

    async def main() -> Answer:
        names: dict[str, asyncio.Event] = getattr(slow, "handler").__globals__  # noqa: B009 - a union
        racing = asyncio.ensure_future(exchange("POST", target, headers=headers).run(client.app))
        async with asyncio.timeout(10):
            await names["begun"].wait()
            await exchange("POST", "/v1/logout", headers=headers).run(client.app)
            names["finish"].set()
            return await racing

    answer = asyncio.run(main())
    assert answer.fields("set-cookie") == []
    assert client.shown() == {"data": {}, "user": None}
    assert len(memory_of(client.app)) == 0


# -- signatures


def test_s66_a_flipped_bit_makes_any_cookie_worthless(either: Client) -> None:
    either.post("/v1/login", {"user": "ann"})
    good = either.cookies["__Host-session"]
    for position in range(0, len(good), 3):
        for bit in (1, 2, 4, 8, 16, 32):
            flipped = chr(ord(good[position]) ^ bit)
            if not flipped.isalnum() and flipped not in "-_.":
                continue
            either.cookies = {"__Host-session": good[:position] + flipped + good[position + 1 :]}
            assert either.shown()["user"] is None, position


def test_s66_a_cookie_without_a_signature_is_nothing(project: Project, ask: Ask) -> None:
    client = Client(project(tree("Sessions(store='cookie')"), settings=SETTINGS), ask)
    document: dict[str, Any] = {"created": time.time(), "user": "ann", "data": {}}
    text = base64.urlsafe_b64encode(b"%d id %b" % (time.time(), json.dumps(document).encode()))
    for value in (text.decode(), f"{text.decode()}.", f"{text.decode().rstrip('=')}.x"):
        client.cookies = {"__Host-session": value.replace("=", "")}
        assert client.shown()["user"] is None


def test_s66_context_parts_never_run_together() -> None:
    contexts = [("ab", "c"), ("a", "bc"), ("abc",), ("a", "b", "c"), ("", "abc"), ("abc", "")]
    made = {Signer([SECRET.encode()], context).sign_data(b"x") for context in contexts}
    assert len(made) == len(contexts)


def test_s66_a_cookie_of_one_name_is_worth_nothing_under_another(
    project: Project, ask: Ask
) -> None:
    one = Client(project(tree("Sessions(store='cookie', cookie='a')"), settings=SETTINGS), ask)
    other = Client(
        project(tree("Sessions(store='cookie', cookie='b')"), root="other", settings=SETTINGS), ask
    )
    one.post("/v1/login", {"user": "ann"})
    other.cookies = {"__Host-b": one.cookies["__Host-a"]}
    assert other.shown()["user"] is None


class _SharedStore(MemorySessions):
    """A store that two deployments reach, such as a copied database."""


@pytest.mark.parametrize("store", ["cookie", _SharedStore()], ids=["cookie", "stored"])
def test_s66_a_session_of_staging_does_not_open_in_production(
    project: Project, ask: Ask, store: Any
) -> None:
    def client(root: str, environment: str) -> Client:
        settings = Settings(secret_key=SECRET, environment=environment)
        app = project(tree("Sessions()"), root=root, settings=settings)
        app.boot()
        for entry in app.project.middlewares:
            if isinstance(entry, Sessions):
                entry.store = store
                entry.prepare(app, [])
        return Client(app, ask)

    staging, again = client("a", "staging"), client("b", "staging")
    production = client("c", "production")
    staging.post("/v1/login", {"user": "ann"})
    for other in (again, production):
        other.cookies = dict(staging.cookies)
    assert (again.shown()["user"], production.shown()["user"]) == ("ann", None)


def test_s66_secrets_rotate(project: Project, ask: Ask) -> None:
    def client(root: str, cookies: Mapping[str, str], **settings: Any) -> Client:
        made = Client(
            project(tree("Sessions(store='cookie')"), root=root, settings=Settings(**settings)), ask
        )
        made.cookies = dict(cookies)
        return made

    before = client("a", {}, secret_key=SECRET)
    before.post("/v1/login", {"user": "ann"})
    during = client("b", before.cookies, secret_key=OTHER, secret_key_fallbacks=(SECRET,))
    assert during.shown()["user"] == "ann"
    during.post("/v1/count")  # signed again, with the newest
    after = client("c", during.cookies, secret_key=OTHER)
    assert after.shown() == {"data": {"n": 1}, "user": "ann"}
    after.cookies = before.cookies
    assert after.shown()["user"] is None


@pytest.mark.parametrize(
    "entry", ["Sessions()", "Sessions(store='cookie')", "under('/v1', Sessions())"]
)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"Sessions need a secret; set TREEFOLD_SECRET_KEY and make one with: python -c"),
        ({"secret_key": "x" * 31}, r"must have at least 32 bytes, got 31; make one with"),
        (
            {"secret_key": SECRET, "secret_key_fallbacks": ("x" * 31,)},
            r"must have at least 32 bytes, got 31",
        ),
    ],
)
def test_s66_production_does_not_boot_without_a_good_secret(
    project: Project, entry: str, settings: Mapping[str, Any], message: str
) -> None:
    app = project(tree(entry), settings=Settings(**settings))
    with pytest.raises(BootError, match=message):
        app.boot()


def test_s66_a_short_secret_is_refused_in_development_too(project: Project) -> None:
    app = project(tree("Sessions(secret='short')"), dev=True)
    with pytest.raises(BootError, match="at least 32 bytes, got 5"):
        app.boot()


def test_a_secret_is_never_shown() -> None:
    made = Settings(secret_key=SECRET, secret_key_fallbacks=(OTHER,), redis_url="redis://:pw@h")
    assert SECRET not in repr(made)
    assert OTHER not in repr(made)
    assert ":pw@" not in repr(made)
    with pytest.raises(SettingsError) as caught:
        Settings.from_mapping({"secret_key": [SECRET]})
    assert SECRET not in str(caught.value)


# -- lifetimes


def _later(clock: Callable[[], float], seconds: float) -> Callable[[], float]:
    return lambda: clock() + seconds


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Advance the clock of sessions by seconds."""

    def skip(seconds: float) -> None:
        for module, name in ((stores, "monotonic"), (keepers, "monotonic"), (keepers, "time")):
            monkeypatch.setattr(module, name, _later(getattr(module, name), seconds))

    return skip


def test_a_session_ends_when_it_is_not_used(either: Client, wait: Callable[[float], None]) -> None:
    either.post("/v1/login", {"user": "ann"})
    wait(7190)
    assert either.shown()["user"] == "ann"
    wait(7201)
    assert either.shown()["user"] is None


def test_a_session_that_is_used_goes_on(either: Client, wait: Callable[[float], None]) -> None:
    either.post("/v1/login", {"user": "ann"})
    for _ in range(12):
        wait(3600)
        assert either.shown()["user"] == "ann"


def test_s68_a_session_without_a_user_ends_earlier(
    either: Client, wait: Callable[[float], None]
) -> None:
    either.post("/v1/count")
    wait(1790)
    assert either.shown()["data"] == {"n": 1}
    wait(1801)
    assert either.shown()["data"] == {}


def test_a_session_is_extended_after_an_eighth_of_its_time(
    project: Project, ask: Ask, wait: Callable[[float], None]
) -> None:
    client = Client(project(tree("Sessions(store='cookie')"), settings=SETTINGS), ask)
    client.post("/v1/login", {"user": "ann"})
    assert client.get("/v1/show").fields("set-cookie") == []
    wait(7200 / 8 + 1)
    assert len(client.get("/v1/show").fields("set-cookie")) == 1


@pytest.mark.parametrize("store", ["memory", "cookie"])
def test_a_session_ends_at_last_however_it_is_used(
    project: Project, ask: Ask, wait: Callable[[float], None], store: str
) -> None:
    entry = f"Sessions(store={store!r}, idle=10**9, absolute=1000)"
    client = Client(project(tree(entry), settings=SETTINGS), ask)
    client.post("/v1/login", {"user": "ann"})
    for user in ("ann", "ann", None):
        wait(400)
        assert client.shown()["user"] == user


def test_a_session_too_large_for_a_cookie_is_an_error(
    project: Project, ask: Ask, lines: Lines
) -> None:
    client = Client(project(tree("Sessions(store='cookie')"), settings=SETTINGS), ask)
    assert client.post("/v1/put", "'x' * 4000").status == 500
    (error,) = lines.errors()
    expected = r"^The session cookie must have at most 4096 bytes, got \d+; store less"
    with pytest.raises(ValueError, match=expected):
        raise error


# -- sockets


def test_a_socket_reads_the_session_and_cannot_change_it(
    client: Client, talk: Callable[..., Socket]
) -> None:
    client.post("/v1/login", {"user": "ann"})
    cookie = "; ".join(f"{k}={v}" for k, v in client.cookies.items())
    texts = talk(client.app, "/v1", headers=[("cookie", cookie)]).texts
    assert texts[0] == '{"user":"ann"}'
    assert str(texts[1]).startswith("A WebSocket cannot change its session")
    assert talk(client.app, "/v1").texts[0] == '{"user":null}'


# -- how it is made


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"idle": 0}, "Sessions idle must be a number of seconds, got 0"),
        ({"absolute": -1}, "Sessions absolute must be"),
        ({"store": "disk"}, "must be 'memory', 'redis', 'database' or 'cookie', got 'disk'"),
        ({"store": "cookie", "redis": "redis://h"}, "cannot have both redis= and store='cookie'"),
        ({"trusted_origins": ["app.example"]}, "such as 'https://app.example.com', got 'app.ex"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_given(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sessions(**options)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("redis", r"needs an address; set TREEFOLD_REDIS_URL"),
        ("database", r"needs a database; install treefold-orm"),
    ],
)
def test_a_store_that_is_not_there_stops_the_boot(
    project: Project, store: str, message: str
) -> None:
    app = project(tree(f"Sessions(store={store!r})"), settings=SETTINGS)
    with pytest.raises(BootError, match=message):
        app.boot()


def test_an_own_store_is_used(project: Project, ask: Ask) -> None:
    files = tree("Sessions(store=store)")
    files["Middleware/__init__.py"] = """
        from treefold_http.middleware import Sessions

        class Rows:
            def __init__(self):
                self.rows = {}
            async def get(self, key):
                return self.rows.get(key)
            async def set(self, key, value, *, seconds):
                self.rows[key] = value
            async def replace(self, key, value, *, seconds):
                return key in self.rows and not self.rows.update({key: value})
            async def delete(self, key):
                return self.rows.pop(key, None) is not None
            async def touch(self, key, *, seconds):
                return key in self.rows

        store = Rows()
        middlewares = [Sessions(store=store)]
        """
    client = Client(project(files, settings=SETTINGS), ask)
    client.post("/v1/login", {"user": "ann"})
    assert client.post("/v1/count").json() == {"n": 1, "user": "ann", "new": False}
    assert client.post("/v1/sync").json() == {"n": 1, "sync": True}
    kept = dict(client.cookies)
    client.post("/v1/logout")
    client.cookies = kept
    assert client.shown() == {"data": {}, "user": None}


LAZY = tree()
LAZY["Middleware/__init__.py"] = """
    from treefold_http._sessions.stores import MemorySessions
    from treefold_http.middleware import Sessions

    class Waiting:
        def __init__(self):
            self.inner, self.asked = MemorySessions(), 0
        async def get(self, key):
            self.asked += 1
            return await self.inner.get(key)
        def __getattr__(self, name):
            return getattr(self.inner, name)

    store = Waiting()
    middlewares = [Sessions(store=store, preload=PRELOAD)]
    """


@pytest.mark.parametrize("preload", [True, False])
def test_a_store_that_has_to_be_waited_for_is_asked_once_and_only_for_a_signed_cookie(
    project: Project, ask: Ask, lines: Lines, preload: bool
) -> None:
    files = LAZY | {
        "Middleware/__init__.py": LAZY["Middleware/__init__.py"].replace("PRELOAD", str(preload)),
        "Api/v1/Load/Get.py": """
            async def handler(request):
                session = await request.session.load()
                return {"user": session.user, "again": (await request.session.load()).user}
            """,
    }
    client = Client(project(files, settings=SETTINGS), ask)
    client.app.boot()
    (sessions,) = client.app.project.boot_files.middlewares
    store: Any = sessions.store
    client.get("/v1/ok")
    client.cookies = {"__Host-session": "a.b"}
    client.get("/v1/load")
    assert store.asked == 0

    client.cookies = {}
    client.post("/v1/login", {"user": "ann"})
    asked = store.asked
    assert client.get("/v1/load").json() == {"user": "ann", "again": "ann"}
    assert store.asked == asked + 1
    assert client.post("/v1/sync").json() == {"sync": True}  # a thread may wait for the loop
    answer = client.get("/v1/show")
    if preload:
        assert answer.json()["user"] == "ann"
    else:
        assert answer.status == 500
        assert "write `await request.session.load()` first" in str(lines.errors()[-1])
