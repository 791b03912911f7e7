"""A proxy that is not trusted speaks for others: its address admits no client (S-142)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Lines, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

FIELDS = [
    ("forwarded", "for=203.0.113.9"),
    ("x-forwarded-for", "203.0.113.9"),
    ("x-forwarded-for", "127.0.0.1"),
    ("x-forwarded-proto", "https"),
    ("x-forwarded-anything", "1"),
    ("x-real-ip", "203.0.113.9"),
    ("via", "1.1 proxy"),
    ("cf-connecting-ip", "203.0.113.9"),
]
LOCAL = "['127.0.0.0/8', '10.0.0.0/8', '::1', 'unix', '8.8.8.8']"


def application(project: Project, entries: str) -> Application:
    return project(
        {
            "Api/v1/Get.py": "async def handler(request):\n    return 'ok'\n",
            "Api/v1/Ws.py": "async def handler(websocket):\n    await websocket.accept()\n",
            "Middleware/__init__.py": "from treefold_http.middleware import *\n"
            f"middlewares = [{entries}]\n",
        }
    )


def ask_from(ask: Ask, app: Application, client: Any, *fields: tuple[str, str]) -> Answer:
    return ask(app, "GET", "/v1", headers=fields, more={"client": client})


@pytest.mark.parametrize("client", [("127.0.0.1", 4), ("::1", 4), ("10.1.2.3", 4), None, ("", 4)])
@pytest.mark.parametrize("field", FIELDS, ids=lambda field: ": ".join(field))
def test_s142_an_allowlist_refuses_a_local_proxy_that_is_not_trusted(
    project: Project, ask: Ask, talk: Talk, client: Any, field: tuple[str, str]
) -> None:
    app = application(project, f"IPAllowlist({LOCAL})")
    assert ask_from(ask, app, client, field).status == 403
    more = {"client": client}
    assert talk(app, "/v1", headers=[field], more=more).refusal.status == 403
    assert ask_from(ask, app, client).status == 200


def test_s142_one_warning_names_the_line_to_add(project: Project, ask: Ask, lines: Lines) -> None:
    app = application(project, f"IPAllowlist({LOCAL})")
    for _ in range(3):
        ask_from(ask, app, ("127.0.0.1", 4), FIELDS[1])
    (warning,) = [text for text in lines.texts(30) if "IPAllowlist" in text]
    assert "IPAllowlist refused a request" in warning
    assert "ProxyHeaders(['127.0.0.1']) as the first entry of middlewares" in warning


def test_s142_a_public_address_of_the_list_may_be_a_proxy_of_its_own(
    project: Project, ask: Ask
) -> None:
    app = application(project, f"IPAllowlist({LOCAL})")
    assert ask_from(ask, app, ("8.8.8.8", 4), ("via", "1.1 office")).status == 200


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ([("x-forwarded-for", "10.9.9.9")], 200),
        ([("x-forwarded-for", "10.9.9.9"), ("x-real-ip", "10.9.9.9"), ("via", "x")], 200),
        ([("x-forwarded-for", "203.0.113.9")], 403),
        ([("x-forwarded-for", "10.9.9.9, 203.0.113.9")], 403),
        ([("x-forwarded-for", "unknown")], 403),
        ([("x-real-ip", "10.9.9.9")], 403),
        ([("forwarded", "for=10.9.9.9")], 403),
        ([], 200),
    ],
)
def test_s142_a_trusted_proxy_must_name_its_client(
    project: Project, ask: Ask, fields: list[tuple[str, str]], status: int
) -> None:
    app = application(project, f"ProxyHeaders(['127.0.0.1']), IPAllowlist({LOCAL})")
    assert ask_from(ask, app, ("127.0.0.1", 4), *fields).status == status


def test_s142_a_server_that_has_read_the_fields_is_believed(project: Project, ask: Ask) -> None:
    app = application(project, f"IPAllowlist({LOCAL})")
    assert ask_from(ask, app, ("10.9.9.9", 0), FIELDS[1]).status == 200


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: ": ".join(field))
def test_s142_a_limit_by_address_warns(
    project: Project, ask: Ask, lines: Lines, field: tuple[str, str]
) -> None:
    app = application(project, "RateLimit('2/hour')")
    for _ in range(3):
        ask_from(ask, app, ("127.0.0.1", 4), field)
    (warning,) = lines.texts(30)
    assert "RateLimit counts all clients as one: the proxy 127.0.0.1" in warning
    assert "ProxyHeaders(['127.0.0.1'])" in warning


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: ": ".join(field))
def test_s142_a_refusal_warns_though_the_first_request_came_from_this_machine(
    project: Project, ask: Ask, lines: Lines, field: tuple[str, str]
) -> None:
    app = application(project, "RateLimit('2/hour')")
    ask_from(ask, app, ("127.0.0.1", 4))
    assert lines.texts(30) == []
    assert [ask_from(ask, app, ("127.0.0.1", 4), field).status for _ in range(2)] == [200, 429]
    assert len(lines.texts(30)) == 1


@pytest.mark.parametrize(
    ("entries", "client", "fields"),
    [
        ("RateLimit('1/hour')", ("127.0.0.1", 4), []),
        ("RateLimit('1/hour')", ("8.8.8.8", 4), [FIELDS[1]]),
        ("RateLimit('1/hour', key=lambda request: 'k')", ("127.0.0.1", 4), [FIELDS[1]]),
        ("ProxyHeaders(['127.0.0.1']), RateLimit('1/hour')", ("127.0.0.1", 4), [FIELDS[1]]),
    ],
)
def test_a_limit_that_knows_its_clients_does_not_warn(
    project: Project,
    ask: Ask,
    lines: Lines,
    entries: str,
    client: Any,
    fields: list[tuple[str, str]],
) -> None:
    app = application(project, entries)
    assert [ask_from(ask, app, client, *fields).status for _ in range(2)] == [200, 429]
    assert lines.texts(30) == []
