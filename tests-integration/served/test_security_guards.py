"""Guards on the wire (S-06, S-71): no spelling and no handshake gets past an `under`.

The mounted application answers every path that reaches it, so that a 200 below `/legacy/private`
would be a hole.
"""

from __future__ import annotations

import pytest
from serving import Process, StartFailed
from socket_client import knock
from wire import ServeOnSocket, Wire

TREE = {
    "Api/v1/Admin/Get.py": "async def handler(request): return {}",
    "Api/v1/Open/Get.py": "async def handler(request): return {}",
    "Api/v1/Chat/Socket.py": "async def handler(websocket): await websocket.accept()",
    "Middleware/__init__.py": """
        from treefold import Forbidden
        from treefold.middleware import IPAllowlist, Metrics, under

        class Key:
            def before(self, request):
                if request.headers.get("x-key") != "right":
                    raise Forbidden("no key")

        elsewhere = IPAllowlist(["10.0.0.0/8"])
        middlewares = [
            Metrics(),
            under("/v1/chat", Key()),
            under("/*/admin", elsewhere),
            under("/legacy/private", elsewhere),
            under("/static/private", elsewhere),
            under("/docs", elsewhere),
            under("/openapi", elsewhere),
            under("/asyncapi", elsewhere),
            under("/readyz", elsewhere),
            under("/metrics", elsewhere),
        ]
        """,
    "hooks.py": """
        from treefold import StaticFiles

        async def legacy(scope, receive, send):
            if scope["type"] == "lifespan":
                return
            path = scope["path"].encode()
            if scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.accept"})
                await send({"type": "websocket.close", "code": 1000})
                return
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": path})

        def mount(app):
            app.mount("/legacy", legacy)
            app.mount("/static", StaticFiles("web"))

        on_startup = [mount]
        """,
    "web/private/a.css": "",
    "web/a.css": "",
    "treefold.toml": "docs = true\nhealth = true\n",
}


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


SPELLINGS = [
    ("/legacy/private", 403),
    ("/legacy/private/", 403),
    ("/legacy/private?a=/../open", 403),
    ("//legacy//private//x", 403),
    ("/legacy/PRIVATE/x", 403),
    ("/legacy/%70rivate/x", 403),
    ("/%6Cegacy/private/x", 403),
    ("/legacy/private%2Fx", 403),
    ("/legacy/private%5Cx", 403),
    ("/legacy/private\\x", 403),
    ("/legacy/private;v=1/x", 403),
    ("/legacy/private%3Bv=1/x", 403),
    ("/legacy/private./x", 403),
    ("/legacy/private%20/x", 403),
    ("/legacy/%2570rivate/x", 403),
    ("/legacy/private%252Fx", 403),
    ("/legacy/%252e%252e/private", 403),
    ("/legacy/open%252F..%252Fprivate", 403),
    ("/legacy/%EF%BD%90rivate", 403),
    ("/legacy/./private", 404),
    ("/legacy/%2e/private", 404),
    ("/legacy/open/../private", 404),
    ("/legacy/open/%2e%2e/private", 404),
    ("/legacy/open%2F..%2Fprivate", 404),
    ("/legacy/private%00", 400),
    ("/legacy/private%ff", 400),
    ("/static/private/a.css", 403),
    ("/static/private/none.css", 403),
    ("/static//private/a.css", 403),
    ("/static/PRIVATE/a.css", 403),
    ("/static/%70rivate/a.css", 403),
    ("/docs", 403),
    ("/docs/", 403),
    ("//docs", 403),
    ("/%64ocs", 403),
    ("/openapi.json", 403),
    ("/openapi/v1.json", 403),
    ("/asyncapi.json", 403),
    ("/readyz", 403),
    ("/metrics", 403),
    ("/v1/admin", 403),
    ("/v1//admin/", 403),
    ("/legacy/open", 200),
    ("/static/a.css", 200),
    ("/livez", 200),
    ("/v1/open", 200),
]


@pytest.mark.parametrize(("target", "status"), SPELLINGS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_s06_no_spelling_gets_past_a_guard(
    server: Process, method: str, target: str, status: int
) -> None:
    answer = server.request(method, target)

    routes = target.startswith("/v1") and method == "HEAD"
    assert answer.status == (405 if routes and status == 200 else status)


def test_an_absolute_target_is_guarded_too(server: Process) -> None:
    host, port = server.address
    for path, status in (("private", 403), ("open", 200)):
        target = f"http://{host}:{port}/legacy/{path}"
        assert server.request("GET", target, host=f"{host}:{port}").status == status


def test_the_application_gets_the_path_that_the_guard_saw(server: Process) -> None:
    for sent, path in (
        ("//legacy//open//a/", b"/legacy/open/a/"),
        ("/legacy/open%2Fa", b"/legacy/open/a"),
        ("/legacy/%25", b"/legacy/%"),
    ):
        assert server.get(sent).body == path


def test_s71_a_handshake_is_checked_by_before(server: Process) -> None:
    assert knock(server, "/v1/chat").status == 403
    assert knock(server, "/v1/chat", b"X-Key: wrong\r\n").status == 403
    assert knock(server, "/v1/chat", b"X-Key: right\r\n").status == 101


@pytest.mark.parametrize(("target", "status"), [case for case in SPELLINGS if "legacy" in case[0]])
def test_s71_no_spelling_of_a_handshake_gets_past_a_guard(
    server: Process, target: str, status: int
) -> None:
    assert knock(server, target).status == (101 if status == 200 else status)


def test_pipelined_requests_are_guarded_one_by_one(server: Process) -> None:
    host, port = server.address
    asked = ("/legacy/open", "/legacy/private", "/legacy/open")
    with Wire(server) as wire:
        wire.send(
            b"".join(
                f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode() for target in asked
            )
        )
        assert [wire.answer().status for _ in asked] == [200, 403, 200]


def test_serve_refuses_a_prefix_that_covers_nothing(serve_on_socket: ServeOnSocket) -> None:
    files = {
        **TREE,
        "Middleware/__init__.py": TREE["Middleware/__init__.py"].replace(
            '"/legacy/private"', '"/legcy/private"'
        ),
    }
    with pytest.raises(StartFailed) as failed:
        serve_on_socket(files)

    assert "got '/legcy/private'; the nearest is '/legacy'" in failed.value.stderr
