"""A response that a module makes once: no layer may leave something of one client in it (S-140)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Response, Settings
from treefold_http._responses.response import copy_response

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

SETTINGS = Settings(secret_key="0123456789abcdef0123456789abcdef")

KEPT = {
    "Response": "Response.json({'ok': 'x' * 2000})",
    "StreamingResponse": "StreamingResponse(['x' * 2000], media_type='text/plain')",
    "FileResponse": "Response.file(__file__, media_type='text/plain')",
}
"""What a module may make at its top and return again and again."""

LAYERS = {
    "CORS": ("CORS(['https://app.example.com'])", "access-control-allow-origin"),
    "CSRF": ("CSRF()", None),
    "GZip": ("GZip(minimum=1, codings=['gzip'])", "content-encoding"),
    "IPAllowlist": ("IPAllowlist(['127.0.0.0/8'])", None),
    "ProxyHeaders": ("ProxyHeaders(['10.0.0.0/8'])", None),
    "RateLimit": ("RateLimit('100/hour')", "ratelimit"),
    "SecurityHeaders": ("SecurityHeaders()", "x-frame-options"),
    "Sessions": ("Sessions()", "set-cookie"),
    "Sessions, stored": ("Sessions(store=Store())", "set-cookie"),
    "Timeout": ("Timeout(60)", None),
    "TrustedHosts": ("TrustedHosts(['example.localhost'])", None),
    "cached": ("cached(60)", None),
    "a function": ("stamp", "x-client"),
    "an object": ("Stamp()", "x-client"),
    "a hook": ("Hook()", "x-client"),
    "a hook around a function": ("Hook(), stamp", "x-client"),
    "a function around a hook": ("stamp, Hook()", "x-client"),
    "a function around shipped ones": ("stamp, Timeout(60), GZip(), Sessions()", "x-client"),
}
"""Entries of `middlewares`, and the field that shows that the entry ran."""

OWN = """
    from treefold_http import Response, StreamingResponse
    from treefold_http.cache import cached
    from treefold_http.middleware import *
    from treefold_http._sessions.stores import MemorySessions

    class Store:
        '''A store that has to be waited for, as a database is.'''

        def __init__(self):
            memory = MemorySessions()
            self.get, self.set, self.delete = memory.get, memory.set, memory.delete
            self.replace, self.touch = memory.replace, memory.touch

    async def stamp(request, call_next):
        response = await call_next(request)
        response.headers.append("x-client", request.headers["x-name"])
        response.set_cookie("seen", request.headers["x-name"])
        return response

    class Stamp:
        async def http(self, request, call_next):
            return await stamp(request, call_next)

    class Hook:
        def after(self, request, response):
            response.headers.append("x-client", request.headers["x-name"])
            response.status = 203
"""

HANDLERS = {
    "a handler": """
        from treefold_http import Response, StreamingResponse
        OK = {kept}

        async def handler(request):
            if hasattr(request, "session_keeper"):
                request.session["name"] = request.headers["x-name"]
            return OK
        """,
    "a middleware": """
        from treefold_http import Response, StreamingResponse
        OK = {kept}

        async def answer(request, call_next):
            if hasattr(request, "session_keeper"):
                request.session["name"] = request.headers["x-name"]
            return OK

        middlewares = [answer]
        async def handler(request): raise AssertionError("a middleware answers")
        """,
    "a hook before": """
        from treefold_http import Response, StreamingResponse
        OK = {kept}

        class Answer:
            def before(self, request):
                if hasattr(request, "session_keeper"):
                    request.session["name"] = request.headers["x-name"]
                return OK

        middlewares = [Answer()]
        async def handler(request): raise AssertionError("a middleware answers")
        """,
    "a hook after": """
        from treefold_http import Response, StreamingResponse
        OK = {kept}

        class Answer:
            def after(self, request, response):
                return OK

        middlewares = [Answer()]
        async def handler(request):
            if hasattr(request, "session_keeper"):
                request.session["name"] = request.headers["x-name"]
        """,
    "an exception handler": """
        from treefold_http import Response, StreamingResponse
        OK = {kept}

        async def handler(request):
            if hasattr(request, "session_keeper"):
                request.session["name"] = request.headers["x-name"]
            raise LookupError
        """,
}


def state(response: Response) -> tuple[Any, ...]:
    return response.status, list(response.raw_headers), response.body, response.background


def request_as(app: Application, ask: Ask, name: str, **options: Any) -> Answer:
    headers = [
        ("x-name", name),
        ("x-request-id", f"id-{name}"),
        ("origin", "https://app.example.com"),
        ("accept-encoding", "gzip"),
        *options.pop("headers", ()),
    ]
    return ask(app, "GET", "/v1/x", headers=headers, **options)


def kept_by(app: Application) -> Response:
    (module,) = app.project.modules.values()
    return module.handler.__globals__["OK"]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


@pytest.fixture
def serve(project: Project) -> Callable[..., Application]:
    def make(layers: str, *, kept: str = "Response", returned_by: str = "a handler") -> Application:
        app = project(
            {
                "Middleware/__init__.py": f"{OWN}\n    middlewares = [{layers}]",
                "Api/v1/X/Get.py": HANDLERS[returned_by].format(kept=KEPT[kept]),
            },
            settings=SETTINGS,
        )
        app.boot()
        ok = kept_by(app)

        async def answer(request: Any, error: LookupError) -> Response:
            return ok

        app.exception_handler(LookupError)(answer)
        return app

    return make


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("returned_by", HANDLERS)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_leaves_a_kept_response_as_it_was(
    serve: Callable[..., Application], ask: Ask, layer: str, returned_by: str, kept: str
) -> None:
    code, field = LAYERS[layer]
    app = serve(code, kept=kept, returned_by=returned_by)
    before = state(kept_by(app))
    for name in ("@ann", "@bob"):
        answer = request_as(app, ask, name)
        assert state(kept_by(app)) == before
        assert answer.status in (200, 203)
        assert field is None or answer.fields(field), "the layer ran"
        others = {"@ann", "@bob"} - {name}
        assert not any(other in text for _, text in answer.headers for other in others)
        assert answer.fields("x-request-id") == [f"id-{name}"]
        if layer.startswith("Sessions"):
            assert len(answer.fields("set-cookie")) == 1


def test_the_second_client_is_not_given_the_session_of_the_first(
    serve: Callable[..., Application], ask: Ask
) -> None:
    app = serve("Sessions()")
    first, second = (request_as(app, ask, name).fields("set-cookie") for name in ("@ann", "@bob"))
    assert len(first) == len(second) == 1
    assert first != second


KEEPER = """
    KEPT = {}

    async def keep(request, call_next):
        if "x" not in KEPT:
            KEPT["x"] = await call_next(request)
        return KEPT["x"]

    class Keep:
        def before(self, request):
            return KEPT.get("x")

        def after(self, request, response):
            KEPT.setdefault("x", response)
"""


@pytest.mark.parametrize("keeper", ["keep", "Keep()"])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_leaves_a_response_that_an_inner_one_keeps(
    project: Project, ask: Ask, layer: str, keeper: str
) -> None:
    code, field = LAYERS[layer]
    handler = """
        async def handler(request):
            return {"ok": "x" * 2000}
        """
    name_in_session = """
    class Name:
        def before(self, request):
            if hasattr(request, "session_keeper"):
                request.session["name"] = request.headers["x-name"]
    """
    app = project(
        {
            "Middleware/__init__.py": f"{OWN}{KEEPER}{name_in_session}\n"
            f"    middlewares = [{code}, Name(), {keeper}]",
            "Api/v1/X/Get.py": handler,
        },
        settings=SETTINGS,
    )
    for name, other in (("@ann", "@bob"), ("@bob", "@ann"), ("@ann", "@bob")):
        answer = request_as(app, ask, name)
        assert field is None or answer.fields(field), "the layer ran"
        assert not any(other in text for _, text in answer.headers)
        if layer.startswith("Sessions"):
            assert len(answer.fields("set-cookie")) == 1


def test_a_kept_file_has_the_status_that_each_client_gets(
    serve: Callable[..., Application], ask: Ask, lines: Any
) -> None:
    app = serve("Timeout(60)", kept="FileResponse")
    etag = request_as(app, ask, "@ann").fields("etag")[0]
    assert request_as(app, ask, "@bob", headers=[("if-none-match", etag)]).status == 304
    assert kept_by(app).status == 200
    assert [text.split()[2] for text in lines.texts()][-2:] == ["200", "304"]


def test_a_failing_file_leaves_the_response_of_an_exception_handler(
    project: Project, ask: Ask
) -> None:
    app = project(
        {
            "Api/v1/X/Get.py": """
                from treefold_http import Response
                OK = Response.text("sorry", 500)

                async def handler(request):
                    return Response.file("missing", headers={"x-own": request.headers["x-name"]})
                """
        }
    )
    app.boot()
    ok = kept_by(app)

    async def answer(request: Any, error: OSError) -> Response:
        return ok

    app.exception_handler(OSError)(answer)
    before = state(ok)
    assert request_as(app, ask, "@ann").fields("x-own") == ["@ann"]
    assert request_as(app, ask, "@bob").fields("x-own") == ["@bob"]
    assert state(ok) == before


def test_a_cookie_of_the_handler_and_one_of_the_session_are_both_sent(
    project: Project, ask: Ask
) -> None:
    app = project(
        {
            "Middleware/__init__.py": f"{OWN}\n    middlewares = [Sessions()]",
            "Api/v1/X/Get.py": """
                from treefold_http import Response

                async def handler(request):
                    request.session["n"] = 1
                    response = Response.text("x")
                    response.set_cookie("theme", "dark")
                    return response
                """,
        },
        settings=SETTINGS,
    )
    cookies = request_as(app, ask, "@ann").fields("set-cookie")
    assert {cookie.partition("=")[0] for cookie in cookies} == {"theme", "__Host-session"}


def test_a_copy_has_fields_of_its_own() -> None:
    class Own(Response):
        def __init__(self) -> None:
            super().__init__("x", headers={"x-a": "1"})
            self.more = "kept"

    own = Own()
    own.headers["x-b"] = "2"
    copy = copy_response(own)
    copy.headers["x-c"] = "3"
    assert isinstance(copy, Own)
    assert (copy.more, copy.body, copy.status) == ("kept", b"x", 200)
    assert "x-c" not in own.headers
    assert copy.headers.getlist("x-b") == ["2"]


@pytest.mark.parametrize("cached", ["cached(60)", "cached(60, key=lambda request: 'all')"])
def test_an_answer_with_a_cookie_beside_it_is_not_kept(
    project: Project, ask: Ask, cached: str
) -> None:
    beside = """
    class Beside:
        def before(self, request):
            name = request.headers["x-name"].encode()
            request.add_answer_fields([(b"set-cookie", b"who=" + name)])
    """
    app = project(
        {
            "Middleware/__init__.py": f"{OWN}{beside}\n    middlewares = [{cached}, Beside()]",
            "Api/v1/X/Get.py": "async def handler(request):\n    return 'x'\n",
        }
    )
    for name in ("@ann", "@bob", "@ann"):
        assert request_as(app, ask, name).fields("set-cookie") == [f"who={name}"]
