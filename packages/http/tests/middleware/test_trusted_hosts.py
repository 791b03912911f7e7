"""TrustedHosts: whole names only, by label, for requests and sockets (S-15, D-08)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http.middleware import TrustedHosts

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

OWN = "api.example.localhost"
NAMES = [OWN, "*.Example.org", "only.example.localhost:8443", "[::1]", "10.0.0.1"]


@pytest.mark.parametrize(
    "host",
    [
        "api.example.localhost",
        "API.Example.LOCALHOST",
        "api.example.localhost:80",
        "api.example.localhost.",
        "a.example.org",
        "a.b.EXAMPLE.org:5",
        "only.example.localhost:8443",
        "[::1]",
        "[::1]:80",
        "10.0.0.1:8000",
    ],
)
def test_s15_a_host_that_is_named_is_served(host: str) -> None:
    middleware = TrustedHosts(NAMES)

    assert [middleware.allows(host) for _ in range(2)] == [True, True]


@pytest.mark.parametrize(
    "host",
    [
        "",
        "apiXexample.localhost",
        "api.example.localhost.evil",
        "evil.api.example.localhost",
        "api.example.localhost@evil",
        "api.example.localhost:80:80",
        "api.example.localhost/",
        "api.example.localhost\n",
        "api.example.localhost..",
        "example.org",
        ".example.org",
        "aexample.org",
        "a..example.org",
        "a.example.org.evil",
        "only.example.localhost",
        "only.example.localhost:84430",
        "10.0.0.10",
        "10.0.0.1.evil",
        "[::2]",
        "[::1",
        "*.example.org",
        "*",
        "\xe4pi.example.localhost",
        "localhost",
    ],
)
def test_s15_no_other_host_is(host: str) -> None:
    assert not TrustedHosts(NAMES).allows(host)


@pytest.mark.parametrize(
    "name", ["*", "", "a b", "*.", "http://a", "a/b", "*.*.a", "a.*", "\xe4", "@"]
)
def test_what_is_no_host_name_is_refused_when_it_is_made(name: str) -> None:
    expected = "A trusted host must be a name such as 'api.example.com' or '*.example.com', got "
    with pytest.raises(ValueError, match=f"^{re.escape(expected + repr(name))}$"):
        TrustedHosts([name])


def test_one_text_is_no_list_of_names() -> None:
    with pytest.raises(
        ValueError, match=r"^TrustedHosts must have a list of names, got the text 'a.b'$"
    ):
        TrustedHosts("a.b")


def test_many_hosts_below_a_name_are_not_all_remembered() -> None:
    middleware = TrustedHosts(["*.example.localhost"])

    assert all(middleware.allows(f"h{number}.example.localhost") for number in range(3000))
    assert len(vars(middleware)["_known"]) == 1024


def application(project: Project, entry: str, **options: Any) -> Application:
    return project(
        {
            "Api/v1/Get.py": "async def handler(request):\n    return 'ok'\n",
            "Api/v1/Ws.py": "async def handler(websocket):\n    await websocket.accept()\n",
            "Middleware/__init__.py": "from treefold_http.middleware import TrustedHosts\n"
            f"middlewares = [{entry}]\n",
        },
        **options,
    )


@pytest.mark.parametrize("target", ["/v1", "/v1/none", "/nowhere"])
def test_s15_another_host_is_400_whatever_it_asks_for(
    project: Project, ask: Ask, target: str
) -> None:
    app = application(project, "TrustedHosts(['api.example.localhost'])")
    forwarded = ("x-forwarded-host", "api.example.localhost")

    assert ask(app, "GET", target, host=False, headers=[forwarded]).status == 400
    answer = ask(app, "GET", target, host=False, headers=[("host", "evil.example"), forwarded])
    assert (answer.status, answer.json()["detail"]) == (400, "This host is not served here")


@pytest.mark.parametrize(("host", "status"), [(OWN, None), ("evil.example", 400)])
def test_s71_a_socket_for_another_host_is_refused(
    project: Project, socket: type[Socket], host: str, status: int | None
) -> None:
    app = application(project, "TrustedHosts(['api.example.localhost'])")

    async def main() -> None:
        one = socket("/v1", headers=[("host", host)], host=False)
        await one.run(app)
        assert one.kinds[0] == ("http.response.start" if status else "accept")
        assert status is None or one.refusal.status == status

    asyncio.run(main())


@pytest.mark.parametrize(
    ("entry", "dev", "host", "status"),
    [
        ("TrustedHosts()", False, "localhost:8000", 200),
        ("TrustedHosts()", False, "127.0.0.1", 200),
        ("TrustedHosts()", False, "example.localhost", 400),
        ("TrustedHosts(['example.localhost'])", False, "localhost", 400),
        ("TrustedHosts(['example.localhost'])", True, "localhost:8000", 200),
        ("TrustedHosts(['example.localhost'])", True, "[::1]:8000", 200),
        ("TrustedHosts(['example.localhost'])", True, "evil.example", 400),
        ("TrustedHosts(['example.localhost'])", False, "testserver", 400),
    ],
)
def test_d08_the_names_of_this_machine_are_for_development(
    project: Project, ask: Ask, entry: str, dev: bool, host: str, status: int
) -> None:
    app = application(project, entry, dev=dev)

    assert ask(app, "GET", "/v1", host=False, headers=[("host", host)]).status == status


def test_the_test_client_is_served(project: Project, ask: Ask) -> None:
    app = application(project, "TrustedHosts(['example.localhost'])")
    more: dict[str, Any] = {"extensions": {"treefold.errors": []}}
    headers = [("host", "testserver")]

    assert ask(app, "GET", "/v1", host=False, headers=headers, more=more).status == 200
