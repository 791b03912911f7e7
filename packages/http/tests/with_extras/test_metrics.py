"""Metrics: what is counted, with which labels, and who may read it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import REGISTRY

from treefold_http import Application
from treefold_http.middleware import Metrics

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange, Lines, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]


def tree(name: str, options: str = "") -> dict[str, str]:
    """Routes that no other test has counted."""
    return {
        f"Api/v1/{name}/[id]/Get.py": "async def handler(request):\n    return 'ok'\n",
        f"Api/v1/{name}/[id]/Ws.py": "async def handler(websocket, id):\n"
        "    if id == '1':\n        await websocket.accept()\n",
        f"Api/v1/{name}/Get.py": "async def handler(request):\n    raise LookupError('no')\n",
        f"Api/v1/{name}/Post.py": "import asyncio\n"
        "async def handler(request):\n    await asyncio.Event().wait()\n",
        f"Api/v1/{name}/Put.py": "import asyncio\n"
        "async def handler(request):\n"
        "    for part in 'abc':\n        yield part\n        await asyncio.sleep(0.02)\n",
        "Middleware/__init__.py": "from treefold_http.middleware import Metrics, ProxyHeaders\n"
        f"middlewares = [ProxyHeaders(['127.0.0.1']), Metrics({options})]\n",
    }


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def requests(method: str, route: str, status: int) -> float:
    labels = {"method": method, "route": route, "status": str(status)}
    return REGISTRY.get_sample_value("http_requests_total", labels) or 0.0


def test_requests_count_by_template_method_and_status(project: Project, ask: Ask) -> None:
    app = project(tree("Count"))
    before = [requests("GET", "unmatched", 404), requests("OTHER", "unmatched", 404)]
    for number in range(3):
        ask(app, "GET", f"/v1/count/{number}")
    ask(app, "GET", "/v1/count")
    ask(app, "GET", "/v1/nothing-1")
    ask(app, "EVIL1", "/v1/nothing-2")

    assert requests("GET", "/v1/count/{id}", 200) == 3
    assert requests("GET", "/v1/count", 500) == 1
    after = [requests("GET", "unmatched", 404), requests("OTHER", "unmatched", 404)]
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 1]
    labels = {"method": "GET", "route": "/v1/count/{id}"}
    assert value("http_request_duration_seconds_count", **labels) == 3
    assert value("http_requests_in_progress") == 0


def test_a_stream_counts_to_its_last_byte(project: Project, ask: Ask) -> None:
    ask(project(tree("Stream")), "PUT", "/v1/stream")

    labels = {"method": "PUT", "route": "/v1/stream"}
    assert value("http_request_duration_seconds_sum", **labels) > 0.04


def test_a_cancelled_request_counts_once_and_is_not_in_progress(
    project: Project, exchange: type[Exchange]
) -> None:
    app = project(tree("Cancel"))

    async def main() -> None:
        task = asyncio.ensure_future(exchange("POST", "/v1/cancel").run(app))
        for _ in range(20):  # nothing in it waits before the handler does
            await asyncio.sleep(0)
        assert value("http_requests_in_progress") == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert requests("POST", "/v1/cancel", 499) == 1
    assert value("http_requests_in_progress") == 0


def test_sockets_count_by_outcome(project: Project, talk: Talk) -> None:
    app = project(tree("Socket"))
    talk(app, "/v1/socket/1")
    talk(app, "/v1/socket/2")

    route = "/v1/socket/{id}"
    found = [value("websockets_total", route=route, outcome=o) for o in ("accepted", "refused")]
    assert found == [1, 1]
    assert value("websockets_open") == 0


def test_the_metrics_are_read_where_it_is_allowed(project: Project, ask: Ask) -> None:
    app = project(tree("Read"))
    ask(app, "GET", "/v1/read/1")

    answer = ask(app, "GET", "/metrics")
    assert answer.status == 200
    assert answer.fields("content-type")[0].startswith("text/plain; version=")
    assert re.search(
        rb'^http_requests_total\{method="GET",route="/v1/read/\{id\}",status="200"\} 1\.0$',
        answer.body,
        re.MULTILINE,
    )
    outside = ask(app, "GET", "/metrics", headers=[("x-forwarded-for", "192.0.2.1")])
    assert (outside.status, b"http_requests" in outside.body) == (404, False)
    assert ask(app, "POST", "/metrics").status == 404


@pytest.mark.parametrize("target", ["/metrics", "/inside"])
def test_the_path_is_an_option(project: Project, ask: Ask, target: str) -> None:
    app = project(tree("Path", "path='/inside'"), root="one")
    none = project(tree("Path", "path=None"), root="two")

    assert ask(app, "GET", target).status == (200 if target == "/inside" else 404)
    assert ask(none, "GET", target).status == 404


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "metrics"}, "Metrics path must start with '/'"),
        ({"allowed": []}, "Metrics must list networks"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Metrics(**options)


@pytest.mark.parametrize("field", ["x-forwarded-for", "x-real-ip", "via", "forwarded"])
def test_s142_a_local_proxy_that_is_not_trusted_does_not_read_them(
    project: Project, ask: Ask, lines: Lines, field: str
) -> None:
    entries = "from treefold_http.middleware import *\n"
    entries += "middlewares = [ProxyHeaders(['10.0.0.0/8']), Metrics()]\n"
    app = project({**tree(f"Relay{field[:3]}"), "Middleware/__init__.py": entries})
    assert ask(app, "GET", "/metrics", headers=[(field, "203.0.113.9")]).status == 404
    (warning,) = lines.texts(30)
    assert "Metrics refused a request: the proxy 127.0.0.1" in warning
    assert "ProxyHeaders(['127.0.0.1'])" in warning
    assert ask(app, "GET", "/metrics").status == 200


BEFORE = """
import os, sys
from treefold_http.middleware import Metrics
metrics = Metrics()
metrics._families.running.inc(3)
metrics._families.sockets_open.inc(2)
sys.stdout.write(metrics.render().body.decode())
sys.stdout.flush()
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], "", ""])
"""
AFTER = """
import sys
from treefold_http.middleware import Metrics
sys.stdout.write("after\\n" + Metrics().render().body.decode())
"""


def test_a_process_that_gets_the_number_of_a_former_one_begins_at_nothing(tmp_path: Path) -> None:
    """The library would go on with what the file of that number says."""
    done = subprocess.run(
        [sys.executable, "-c", BEFORE, AFTER],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    before, _, after = done.stdout.partition("after\n")
    line = re.compile(r"^(?:http_requests_in_progress|websockets_open) (.*)$", re.MULTILINE)
    assert sorted(line.findall(before)) == ["2.0", "3.0"]
    assert sorted(line.findall(after)) == ["0.0", "0.0"]


def usage_of(name: str, caller: str) -> float:
    labels = {"method": "GET", "route": f"/v1/{name}", "caller": caller}
    return REGISTRY.get_sample_value("treefold_usage_requests_total", labels) or 0.0


def test_usage_is_counted_by_caller_and_query_name(project: Project, ask: Ask) -> None:
    files = tree("UsageOn") | {
        "treefold.toml": "usage = true",
        "Api/v1/UsageOn/Get.py": "def handler(page: int = 1):\n    return page\n",
    }
    app = project(files)
    agent = [("user-agent", "shelf/1 x")]
    for target in ("/v1/usageon", "/v1/usageon?page=2"):
        ask(app, "GET", target, headers=agent)
    page = ask(app, "GET", "/metrics").body.decode()
    assert usage_of("usageon", "shelf/1 127.0.0.0/24") == 2
    name = 'treefold_usage_query_total{method="GET",name="page",route="/v1/usageon"} 1.0'
    assert name in page
    ask(app, "GET", "/v1/usageon", headers=agent)
    ask(app, "GET", "/metrics")
    assert usage_of("usageon", "shelf/1 127.0.0.0/24") == 3
    assert app.usage is not None
    app.usage.write_line()  # the hour is over, the metrics go on
    ask(app, "GET", "/v1/usageon", headers=agent)
    ask(app, "GET", "/metrics")
    assert usage_of("usageon", "shelf/1 127.0.0.0/24") == 4


def test_callers_beyond_the_bound_are_others(
    project: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treefold_http.middleware._metrics.MAX_CALLERS", 0)
    files = tree("UsageFull") | {
        "treefold.toml": "usage = true",
        "Api/v1/UsageFull/Get.py": "def handler():\n    return 1\n",
    }
    app = project(files)
    for number in range(5):
        ask(app, "GET", "/v1/usagefull", headers=[("user-agent", f"shelf/{number}")])
    ask(app, "GET", "/metrics")
    assert usage_of("usagefull", "other") == 5
