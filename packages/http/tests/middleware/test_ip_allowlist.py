"""IPAllowlist: networks, mapped addresses, who may speak for a client (S-93, S-94, D-09)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application
from treefold_http._wire.addresses import to_client_network
from treefold_http.middleware import IPAllowlist

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

TREE = {
    "Api/v1/Get.py": "async def handler(request):\n    return 'ok'\n",
    "Api/v1/Ws.py": "async def handler(websocket):\n    await websocket.accept()\n",
}
ALLOWED = "['10.0.0.0/8', '192.0.2.7', 'fd00::/8']"


def application(project: Project, entries: str = f"IPAllowlist({ALLOWED})") -> Application:
    code = f"from treefold_http.middleware import *\nmiddlewares = [{entries}]\n"
    return project({**TREE, "Middleware/__init__.py": code})


@pytest.mark.parametrize(
    ("client", "status"),
    [
        ("10.1.2.3", 200),
        ("192.0.2.7", 200),
        ("fd00::1", 200),
        ("fd00::1%eth0", 200),
        ("::ffff:10.1.2.3", 200),
        ("::ffff:0a01:0203", 200),
        ("11.0.0.1", 403),
        ("192.0.2.70", 403),
        ("::ffff:11.0.0.1", 403),
        ("::10.1.2.3", 403),
        ("fe80::1", 403),
        ("10.1.2", 403),
        ("010.1.2.3", 403),
        ("testclient", 403),
        (None, 403),
        ("", 403),
    ],
)
def test_s94_the_peer_of_the_socket_decides(
    project: Project, ask: Ask, talk: Talk, client: str | None, status: int
) -> None:
    app = application(project)
    more = {"client": None if client is None else (client, 1234)}

    for target in ("/v1", "/v1/none"):
        expected = 404 if status == 200 and target != "/v1" else status
        assert [ask(app, "GET", target, more=more).status for _ in range(2)] == [expected] * 2
    socket = talk(app, "/v1", more=more)
    assert socket.kinds[0] == ("accept" if status == 200 else "http.response.start")
    assert status == 200 or socket.refusal.status == 403


def test_a_unix_socket_is_let_in_where_it_is_listed(project: Project, ask: Ask) -> None:
    app = application(project, "IPAllowlist(['unix'])")

    assert ask(app, "GET", "/v1", more={"client": None}).status == 200
    assert ask(app, "GET", "/v1").status == 403


FORGED = [
    ("x-forwarded-for", "10.0.0.1"),
    ("x_forwarded_for", "10.0.0.1"),
    ("forwarded", "for=10.0.0.1"),
]


@pytest.mark.parametrize("field", FORGED)
def test_s93_a_forwarded_address_of_anybody_counts_for_nothing(
    project: Project, ask: Ask, field: tuple[str, str]
) -> None:
    app = application(project, f"ProxyHeaders(['127.0.0.2']), IPAllowlist({ALLOWED})")

    assert ask(app, "GET", "/v1", headers=[field]).status == 403


@pytest.mark.parametrize(
    ("chain", "status"),
    [
        ("10.0.0.1", 200),
        ("6.6.6.6, 10.0.0.1", 200),
        ("10.0.0.1, 6.6.6.6", 403),
        ("10.0.0.1, junk", 403),
        ("::ffff:10.0.0.1", 200),
    ],
)
def test_s93_the_nearest_address_that_a_trusted_proxy_saw_counts(
    project: Project, ask: Ask, talk: Talk, chain: str, status: int
) -> None:
    app = application(project, f"ProxyHeaders(['127.0.0.1']), IPAllowlist({ALLOWED})")
    headers = [("x-forwarded-for", chain)]

    assert ask(app, "GET", "/v1", headers=headers).status == status
    kinds = talk(app, "/v1", headers=headers).kinds
    assert kinds[0] == ("accept" if status == 200 else "http.response.start")


@pytest.mark.parametrize("allowed", [[], "10.0.0.1"])
def test_a_list_without_a_network_is_refused(allowed: list[str]) -> None:
    expected = f"IPAllowlist must list networks such as ['10.0.0.0/8'], got {allowed!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        IPAllowlist(allowed)


@pytest.mark.parametrize("name", ["10.0.0.1/8", "10.0.0", "localhost", ""])
def test_a_text_that_is_no_network_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"does not appear to be|has host bits set"):
        IPAllowlist([name])


def test_known_addresses_are_bounded(project: Project, ask: Ask) -> None:
    allowlist = IPAllowlist(["10.0.0.0/8"])
    for number in range(5000):
        allowlist._check_client(f"10.1.{number // 250}.{number % 250}")
    assert len(vars(allowlist)["_known"]) == 4096


@pytest.mark.parametrize(
    ("host", "bucket"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix", "unix"),
    ],
)
def test_s94_neighbours_of_a_64_share_a_bucket(host: str, bucket: str) -> None:
    assert to_client_network(host) == bucket
