"""Security rows of who asks and for which host, and the middleware that decides it (S-15, S-93).

The peer of every connection here is 127.0.0.1; it is a trusted proxy in one project and none in
the other.
"""

from __future__ import annotations

import pytest
from serving import Process, Serve, Served
from socket_client import UPGRADE
from wire import ServeOnSocket, Wire

SHOW = """
    async def handler(request):
        return [request.client.host, request.scheme, request.host]
    """
SOCKET = """
    async def handler(websocket):
        await websocket.accept()
    """


def tree(*entries: str) -> dict[str, str]:
    return {
        "Api/v1/Who/Get.py": SHOW,
        "Api/v1/Chat/Ws.py": SOCKET,
        "Middleware/__init__.py": "from treefold.middleware import ProxyHeaders, TrustedHosts\n"
        f"middlewares = [{', '.join(entries)}]\n",
    }


HOSTS = "TrustedHosts(['api.example.com', '*.example.org'])"


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(tree(HOSTS))


@pytest.fixture(scope="module")
def proxied(serve: Serve) -> Served:
    return serve(tree("ProxyHeaders(['127.0.0.0/8'], host=True)", HOSTS))


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(tree("ProxyHeaders(['127.0.0.1'])", HOSTS))


@pytest.mark.parametrize("host", ["api.example.com", "API.EXAMPLE.COM:8000", "a.example.org"])
def test_s15_an_allowed_host_is_served(app: Served, host: str) -> None:
    assert app.request("GET", "/v1/who", host=host).json() == ["127.0.0.1", "http", host]


@pytest.mark.parametrize(
    "host",
    ["apiXexample.com", "api.example.com.evil", "evil", "example.org", "xexample.org", "localhost"],
)
@pytest.mark.parametrize("target", ["/v1/who", "/v1/none", "/none"])
def test_s15_another_host_is_400(app: Served, target: str, host: str) -> None:
    assert app.request("GET", target, host=host).status == 400


@pytest.mark.parametrize("host", [None, "evil", ""])
def test_s15_a_forwarded_host_stands_for_none(app: Served, host: str | None) -> None:
    forwarded = [("X-Forwarded-Host", "api.example.com"), ("Forwarded", "host=api.example.com")]
    assert app.request("GET", "/v1/who", host=host, headers=forwarded).status == 400


def test_s15_a_trusted_proxy_may_name_the_host(proxied: Served) -> None:
    forwarded = [("X-Forwarded-Host", "api.example.com")]
    answer = proxied.request("GET", "/v1/who", host="inside", headers=forwarded)
    assert answer.json()[2] == "api.example.com"
    for wrong in ("evil", "api.example.com, evil", "api.example.com/", "a@api.example.com"):
        headers = [("X-Forwarded-Host", wrong)]
        assert proxied.request("GET", "/v1/who", host="inside", headers=headers).status == 400


def test_s93_nobody_but_a_trusted_proxy_says_who_asks(app: Served, proxied: Served) -> None:
    headers = [("X-Forwarded-For", "6.6.6.6, 1.2.3.4"), ("X-Forwarded-Proto", "https")]
    believed = proxied.request("GET", "/v1/who", host="api.example.com", headers=headers)
    ignored = app.request("GET", "/v1/who", host="api.example.com", headers=headers)
    assert believed.json() == ["1.2.3.4", "https", "api.example.com"]
    assert ignored.json() == ["127.0.0.1", "http", "api.example.com"]


def test_s16_an_underscored_name_is_no_trusted_one(proxied: Served) -> None:
    headers = [("X_Forwarded_For", "1.2.3.4"), ("X_Forwarded_Proto", "https")]
    answer = proxied.request("GET", "/v1/who", host="api.example.com", headers=headers)
    assert answer.json()[:2] == ["127.0.0.1", "http"]


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        (b"api.example.com", b"https://api.example.com", 101),
        (b"api.example.com", b"http://api.example.com", 403),
        (b"evil", b"https://evil", 400),
    ],
)
def test_s15_s70_a_socket_is_for_an_allowed_host_and_from_its_own_pages(
    server: Process, host: bytes, origin: bytes, status: int
) -> None:
    with Wire(server) as wire:
        wire.send(b"GET /v1/chat HTTP/1.1\r\nHost: " + host + b"\r\nOrigin: " + origin)
        wire.send(b"\r\nX-Forwarded-Proto: https\r\n" + UPGRADE + b"\r\n")
        assert wire.answer().status == status
