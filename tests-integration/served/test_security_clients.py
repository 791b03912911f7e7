"""Origins (S-59) and addresses (S-94) of clients on the wire, with either parser."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from http_messages import read_answer
from serving import PATIENCE, Process, write_tree
from socket_client import knock
from wire import ServeOnSocket

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(): return {}",
    "Api/v1/Limited/Get.py": "async def handler(): return {}",
    "Api/v1/Limited/Ws.py": "async def handler(websocket): await websocket.accept()",
    "Api/v1/Inside/Get.py": "async def handler(): return {}",
    "Api/v1/Peer/Get.py": "async def handler(request): return request.client[0]",
    "Middleware/__init__.py": r"""
        from treefold.middleware import CORS, IPAllowlist, ProxyHeaders, RateLimit, under

        middlewares = [
            CORS(
                ["https://a.example", "https://*.b.example"],
                allow_origin_pattern=r"https://pr-[0-9]+\.c\.example",
            ),
            ProxyHeaders(["127.0.0.1"]),
            under("/v1/limited", RateLimit("1/day")),
            under("/v1/inside", IPAllowlist(["127.0.0.1", "192.0.2.0/24", "2001:db8:7:7::/64"])),
        ]
        """,
}


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


@pytest.fixture(scope="module")
def on_both(parser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server for IPv4 and IPv6 on one socket."""
    root = write_tree(tmp_path_factory.mktemp("both"), TREE)
    server = Process(root, parser, dev=False, default_version=None, host="::")
    yield server
    server.stop()


# -- S-59: origins


def granted(server: Process, *origins: str) -> tuple[list[str], list[str]]:
    """What a page of an origin is told of its request, and of its preflight."""
    fields = [("Origin", origin) for origin in origins]
    plain = server.request("GET", "/v1/ok", headers=fields)
    assert plain.status == 200
    assert plain.values("vary") == ["Origin"]
    asked = [*fields, ("Access-Control-Request-Method", "GET")]
    preflight = server.request("OPTIONS", "/v1/ok", headers=asked)
    name = "access-control-allow-origin"
    assert preflight.status == (204 if preflight.values(name) else 405)
    return plain.values(name), preflight.values(name)


@pytest.mark.parametrize(
    "origin",
    [
        "https://a.example",
        "https://x.b.example",
        "https://x.y.b.example",
        "https://pr-17.c.example",
    ],
)
def test_s59_a_listed_origin_is_allowed(server: Process, origin: str) -> None:
    assert granted(server, origin) == ([origin], [origin])


@pytest.mark.parametrize(
    "origin",
    [
        "https://aXexample",
        "https://a.example.evil",
        "https://a.example.evil.example",
        "https://evila.example",
        "https://evilb.example",
        "https://b.example",
        "https://.b.example",
        "https://x..b.example",
        "https://evil.example/.b.example",
        "https://evil.example#.b.example",
        "https://evil.example:443.b.example",
        "https://user@x.b.example",
        "https://x.b.example:8443",
        "http://x.b.example",
        "http://a.example",
        "https://a.example:8443",
        "https://a.example:443",
        "https://a.example/",
        "https://A.example",
        "HTTPS://a.example",
        "https://a.example, https://a.example",
        "https://a.example\t.evil",
        "https://a.example\xa0",
        "https://pr-17.c.example.evil",
        "https://pr-17xc.example",
        "https://evil.example/https://pr-17.c.example",
        "https://pr-.c.example",
        "null",
        "*",
        "",
    ],
)
def test_s59_no_other_origin_is(server: Process, origin: str) -> None:
    assert granted(server, origin) == ([], [])


def test_s59_two_origins_are_none(server: Process) -> None:
    for origins in (
        ("https://a.example", "https://evil.example"),
        ("https://evil.example", "https://a.example"),
        ("https://a.example", "https://a.example"),
    ):
        assert granted(server, *origins) == ([], [])


# -- S-94: addresses


def limited(server: Process, address: str) -> int:
    return server.get("/v1/limited", ("X-Forwarded-For", address)).status


@pytest.mark.parametrize(
    ("first", "others", "status"),
    [
        (
            "2001:db8:1:2::1",
            ["2001:db8:1:2:ffff::9", "2001:DB8:1:2::2", "2001:0db8:0001:0002::3"],
            429,
        ),
        ("2001:db8:1:4::1", ["[2001:db8:1:4::5]", "[2001:db8:1:4::6]:443"], 429),
        ("2001:db8:2:2::1", ["2001:db8:2:3::1", "2001:db8:2:1::1"], 200),
        ("198.51.100.1", ["::ffff:198.51.100.1", "::ffff:c633:6401", "198.51.100.1:81"], 429),
        ("::ffff:198.51.100.2", ["198.51.100.2", "[::ffff:198.51.100.2]:82"], 429),
        ("198.51.100.3", ["198.51.100.4", "::ffff:198.51.100.5"], 200),
    ],
)
def test_s94_who_shares_a_limit(
    server: Process, first: str, others: list[str], status: int
) -> None:
    assert limited(server, first) == 200
    assert limited(server, first) == 429
    assert [limited(server, other) for other in others] == [status] * len(others)


def test_s94_a_handshake_counts_for_the_same_network(server: Process) -> None:
    assert limited(server, "2001:db8:9:9::1") == 200
    field = b"X-Forwarded-For: 2001:db8:9:9:abcd::2\r\n"
    assert knock(server, "/v1/limited", field).status == 429


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("192.0.2.9", 200),
        ("::ffff:192.0.2.9", 200),
        ("::ffff:c000:209", 200),
        ("2001:db8:7:7:1::1", 200),
        ("2001:db8:7:8::1", 403),
        ("::192.0.2.9", 403),
        ("64:ff9b::192.0.2.9", 403),
        ("2002:c000:209::1", 403),
    ],
)
def test_s94_only_a_mapped_address_is_the_one_inside(
    server: Process, address: str, status: int
) -> None:
    assert server.get("/v1/inside", ("X-Forwarded-For", address)).status == status


def test_s94_a_peer_on_a_socket_for_both_is_what_it_is_on_one_of_its_own(
    on_both: Process,
) -> None:
    def ask(host: str, target: str, *fields: str) -> int:
        lines = [f"GET {target} HTTP/1.1", "Host: localhost", "Connection: close", *fields, "", ""]
        address = (host, on_both.address[1])
        with socket.create_connection(address, PATIENCE) as connection:
            connection.sendall("\r\n".join(lines).encode())
            received = b"".join(iter(lambda: connection.recv(65536), b""))
        return read_answer("GET", received).status

    assert ask("127.0.0.1", "/v1/inside") == 200  # ::ffff:127.0.0.1 to the server
    assert ask("::1", "/v1/inside") == 403
    through = "X-Forwarded-For: 198.51.100.9"
    assert ask("127.0.0.1", "/v1/limited", through) == 200  # the proxy is trusted as IPv4
    assert ask("127.0.0.1", "/v1/limited", through) == 429
    assert ask("::1", "/v1/limited", through) == 200  # no proxy: counts as ::1
    assert ask("::1", "/v1/limited") == 429
    assert ask("127.0.0.1", "/v1/limited", "X-Forwarded-For: ::1") == 429
    assert ask("127.0.0.1", "/v1/limited") == 200
