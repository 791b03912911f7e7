"""The entries of the deployment guide, behind a proxy on this machine (S-142)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from serving import Process
from wire import ServeOnSocket

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/deployment.md"


def proxies_of_the_page() -> str:
    (entry,) = re.findall(r"^    (ProxyHeaders\(.+?\)),", PAGE.read_text("utf-8"), re.MULTILINE)
    return entry


def tree(entry: str, burst: int = 2) -> dict[str, str]:
    return {
        "Api/v1/Hello/Get.py": "async def handler(request): return 'hello'",
        "Api/v1/Inside/Get.py": """
            from treefold.middleware import IPAllowlist
            middlewares = [IPAllowlist(["127.0.0.1"])]
            async def handler(request): return 'inside'
            """,
        "Middleware/__init__.py": f"""
            from treefold.middleware import Metrics, ProxyHeaders, RateLimit
            middlewares = [{entry}, Metrics(), RateLimit("1/hour", burst={burst})]
            """,
    }


@pytest.fixture(scope="module")
def as_written(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(tree(proxies_of_the_page()))


@pytest.fixture(scope="module")
def elsewhere(serve_on_socket: ServeOnSocket) -> Process:
    """A list that does not hold the address of the proxy."""
    return serve_on_socket(tree('ProxyHeaders(["10.0.0.0/8"])', burst=50))


def forwarded(client: str) -> list[tuple[str, str]]:
    """Return the fields that nginx of the page sends."""
    return [("X-Forwarded-For", client), ("X-Forwarded-Proto", "http"), ("X-Request-ID", "abc")]


def statuses(server: Process, target: str, *clients: str) -> list[int]:
    return [server.get(target, *forwarded(client)).status for client in clients]


def test_s142_the_page_gives_each_client_its_own_limit(as_written: Process) -> None:
    clients = ["203.0.113.1"] * 3 + ["203.0.113.2"]
    assert statuses(as_written, "/v1/hello", *clients) == [200, 200, 429, 200]


@pytest.mark.parametrize(
    ("target", "status"), [("/metrics", 404), ("//metrics", 404), ("/v1/inside", 403)]
)
def test_s142_the_page_keeps_local_pages_from_clients_of_the_proxy(
    as_written: Process, target: str, status: int
) -> None:
    clients = ["203.0.113.3", "127.0.0.1, 203.0.113.4", "203.0.113.5, 127.0.0.9"]
    assert statuses(as_written, target, *clients) == [status] * 3
    assert as_written.get("/metrics").status == 200


@pytest.mark.parametrize(
    "field",
    ["X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via", "CF-Connecting-IP"],
)
def test_s142_a_proxy_that_is_not_listed_reads_nothing_local(
    elsewhere: Process, field: str
) -> None:
    assert elsewhere.get("/metrics", (field, "203.0.113.1")).status == 404
    assert elsewhere.get("/v1/inside", (field, "203.0.113.1")).status == 403
    assert elsewhere.get("/metrics").status == 200


def test_s142_each_warning_names_the_line_once(elsewhere: Process) -> None:
    for _ in range(2):
        elsewhere.get("/metrics", ("X-Real-IP", "203.0.113.1"))
        elsewhere.get("/v1/hello", ("X-Forwarded-For", "203.0.113.1"))
    elsewhere.line(elsewhere.get("/v1/hello"))  # the lines before it are written
    line = "add ProxyHeaders(['127.0.0.1']) as the first entry"
    warned = elsewhere.wait_for(lambda lines: [text for text in lines if line in text])
    for entry in ("Metrics refused", "RateLimit counts", "IPAllowlist refused"):
        assert len([text for text in warned if entry in text]) == 1
