"""ProxyHeaders: who may speak for a client, and what of it is believed (S-16, S-93, S-94, D-09)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http.middleware import ProxyHeaders

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Fields = Sequence[tuple[str, str]]

SHOW = """
async def handler(request):
    return [request.client and request.client.host, request.scheme, request.host, str(request.url)]
"""


def application(project: Project, entry: str) -> Application:
    return project(
        {
            "Api/v1/Get.py": SHOW,
            "Api/v1/Ws.py": "async def handler(websocket):\n    await websocket.accept()\n"
            "    await websocket.send_json([websocket.client.host, websocket.scheme])\n",
            "Middleware/__init__.py": "from treefold_http.middleware import ProxyHeaders\n"
            f"middlewares = [{entry}]\n",
        },
        root="with-host" if "host=True" in entry else "plain",  # one root has one Middleware
    )


def seen(
    project: Project, ask: Ask, headers: Fields, *, peer: Any = ("10.0.0.9", 1), entry: str = ""
) -> Any:
    app = application(project, entry or "ProxyHeaders(['10.0.0.0/8', '2001:db8::/32'])")
    return ask(app, "GET", "/v1", headers=headers, more={"client": peer}).json()


def forwarded(*values: str) -> Fields:
    return [("x-forwarded-for", value) for value in values]


@pytest.mark.parametrize(
    ("headers", "client"),
    [
        (forwarded("1.2.3.4"), "1.2.3.4"),
        (forwarded("6.6.6.6, 1.2.3.4"), "1.2.3.4"),
        (forwarded("6.6.6.6", "1.2.3.4"), "1.2.3.4"),
        (forwarded("6.6.6.6, 1.2.3.4, 10.1.1.1"), "1.2.3.4"),
        (forwarded("1.2.3.4", "10.1.1.1", "10.2.2.2"), "1.2.3.4"),
        (forwarded("10.1.1.1, 10.2.2.2"), "10.1.1.1"),
        (forwarded("1.2.3.4:5000"), "1.2.3.4"),
        (forwarded("2001:db9::1"), "2001:db9::1"),
        (forwarded("[2001:db9::1]:80"), "2001:db9::1"),
        (forwarded("1.2.3.4, 2001:db8::5"), "1.2.3.4"),
        (forwarded("::ffff:1.2.3.4"), "1.2.3.4"),
        (forwarded("1.2.3.4, ::ffff:10.0.0.1"), "1.2.3.4"),
        (forwarded("1.2.3.4, unknown"), "10.0.0.9"),
        (forwarded("1.2.3.4, evil, 10.1.1.1"), "10.1.1.1"),
        (forwarded("1.2.3.4, 10.1.1.1.1"), "10.0.0.9"),
        (forwarded("1.2.3.4,"), "10.0.0.9"),
        (forwarded(""), "10.0.0.9"),
        (forwarded("<script>"), "10.0.0.9"),
        ([], "10.0.0.9"),
        ([("x_forwarded_for", "1.2.3.4")], "10.0.0.9"),
        ([("x-forwarded-for", "1.2.3.4"), ("x_forwarded_for", "6.6.6.6")], "1.2.3.4"),
        ([("forwarded", "for=1.2.3.4")], "10.0.0.9"),
        ([("x-real-ip", "1.2.3.4")], "10.0.0.9"),
    ],
)
def test_s93_the_client_is_the_first_from_the_right_that_is_no_proxy(
    project: Project, ask: Ask, headers: Fields, client: str
) -> None:
    assert seen(project, ask, headers)[0] == client


@pytest.mark.parametrize("peer", [("1.1.1.1", 1), ("11.0.0.1", 1), ("10.0.0.1.evil", 1), None])
def test_s93_nobody_else_may_speak_for_a_client(project: Project, ask: Ask, peer: Any) -> None:
    headers = [*forwarded("6.6.6.6"), ("x-forwarded-proto", "https")]

    assert seen(project, ask, headers, peer=peer)[:2] == [peer and peer[0], "http"]


def test_a_peer_on_a_unix_socket_is_trusted_by_that_word(project: Project, ask: Ask) -> None:
    entry = "ProxyHeaders(['unix'])"

    assert seen(project, ask, forwarded("1.2.3.4"), peer=None, entry=entry)[0] == "1.2.3.4"
    assert seen(project, ask, forwarded("1.2.3.4"), entry=entry)[0] == "10.0.0.9"


@pytest.mark.parametrize(
    ("values", "scheme"),
    [
        (["https"], "https"),
        (["HTTPS"], "https"),
        (["http, https"], "https"),
        (["https", "http"], "http"),
        (["javascript"], "http"),
        ([""], "http"),
        ([], "http"),
    ],
)
def test_the_scheme_is_what_the_nearest_proxy_says(
    project: Project, ask: Ask, values: list[str], scheme: str
) -> None:
    found = seen(project, ask, [("x-forwarded-proto", value) for value in values])

    assert (found[1], found[3]) == (scheme, f"{scheme}://example.localhost/v1")


def test_s15_a_forwarded_host_is_believed_only_where_that_is_asked_for(
    project: Project, ask: Ask
) -> None:
    headers = [("x-forwarded-host", "evil, api.example.localhost")]
    entry = "ProxyHeaders(['10.0.0.0/8'], host=True)"

    assert seen(project, ask, headers)[2] == "example.localhost"
    assert seen(project, ask, headers, entry=entry)[2:] == [
        "api.example.localhost",
        "http://api.example.localhost/v1",
    ]
    assert seen(project, ask, headers, entry=entry, peer=("1.1.1.1", 1))[2] == "example.localhost"


def test_a_forwarded_host_that_is_none_is_400(project: Project, ask: Ask) -> None:
    entry = "ProxyHeaders(['10.0.0.0/8'], host=True)"
    found = seen(project, ask, [("x-forwarded-host", "a@evil")], entry=entry)

    assert (found["status"], found["detail"]) == (400, "X-Forwarded-Host must be host[:port]")


def test_a_forwarded_host_is_looked_at_by_what_comes_after(project: Project, ask: Ask) -> None:
    trusted = "__import__('treefold_http.middleware').middleware.TrustedHosts"
    hosts = f"{trusted}(['api.example.localhost'])"
    entry = f"ProxyHeaders(['10.0.0.0/8'], host=True), {hosts}"

    good = seen(project, ask, [("x-forwarded-host", "api.example.localhost")], entry=entry)
    assert good[2] == "api.example.localhost"
    assert seen(project, ask, [("x-forwarded-host", "evil")], entry=entry)["status"] == 400
    assert seen(project, ask, [], entry=entry)["status"] == 400


@pytest.mark.parametrize(
    ("origin", "status"), [("https://example.localhost", None), ("http://example.localhost", 403)]
)
def test_s70_the_origin_of_a_socket_is_compared_with_what_the_proxy_says(
    project: Project, socket: type[Socket], origin: str, status: int | None
) -> None:
    app = application(project, "ProxyHeaders(['10.0.0.0/8'])")
    headers = [("origin", origin), ("x-forwarded-proto", "https"), *forwarded("1.2.3.4")]

    async def main() -> None:
        one = socket("/v1", headers=headers, more={"client": ("10.0.0.9", 1)})
        await one.run(app)
        if status is None:
            assert one.texts == ['["1.2.3.4","wss"]']
        else:
            assert one.refusal.status == status

    asyncio.run(main())


@pytest.mark.parametrize("trusted", [[], "10.0.0.0/8", ["10.0.0.0/33"], ["proxy"], ["10.0.0.1/8"]])
def test_what_is_no_list_of_networks_is_refused_when_it_is_made(trusted: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ProxyHeaders(trusted)
