"""The outermost layer with `dev=True`: watches to the end, tells on a terminal, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http._chains.middleware_chain import compose_middleware_chain
from treefold_http._project.development import Development, build_development_entries

if TYPE_CHECKING:
    from conftest import Answer

Serving = Callable[..., Application]
Ask = Callable[..., "Answer"]


class Watcher:
    """Says what it saw of each request."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.told: list[tuple[object, ...]] = []

    def write(
        self, method: str, target: str, status: int, *, seconds: float, notes: Sequence[str]
    ) -> None:
        assert 0 < seconds < 20
        self.told.append((method, target, status, *notes))

    def watch(self) -> Callable[[], str]:
        self.seen.append("began")

        def end() -> str:
            self.seen.append("ended")
            return "2 queries in 0.10ms"

        return end


def told(app: Application, watcher: Watcher, ask: Ask, target: str, **options: Any) -> Answer:
    """Ask with the layer of a terminal in front of the application's middleware."""
    from treefold_http._project.route_plans import plan_routes

    entry = Development([watcher.watch], write=watcher.write)
    app.boot()
    site, fallback = app.project, app.project.fallback
    site.plans.update(plan_routes(app, site.modules, [entry]))
    around = replace(fallback, run=compose_middleware_chain(app, [entry], fallback.run))
    app.replace_project(replace(site, fallback=around))
    return ask(app, "GET", target, **options)


@pytest.mark.parametrize(
    ("handler", "status"),
    [
        ("async def handler(request): return {}", 200),
        ("async def handler(request): raise NotFound('x')", 404),
        ("async def handler(request): raise LookupError('x')", 500),
        ("async def handler(request): return StreamingResponse(iter([b'a', b'b']))", 200),
        ("def handler(token: str, n: int): ...", 422),
    ],
)
def test_a_request_is_summed_up_once_when_it_is_over(
    serving: Serving, ask: Ask, handler: str, status: int
) -> None:
    watcher = Watcher()
    app = serving(handler, "Api/v1/[token]/Get.py")
    answer = told(app, watcher, ask, "/v1/hunter2?n=many")
    assert answer.status == status
    assert watcher.seen == ["began", "ended"]
    assert watcher.told == [("GET", "/v1/***", status, "2 queries in 0.10ms")]


def test_the_secret_of_a_path_is_not_told_where_no_route_serves_it(
    serving: Serving, ask: Ask
) -> None:
    watcher = Watcher()
    app = serving("async def handler(request): ...", "Api/v1/[token]/Put.py")
    told(app, watcher, ask, "/v1/hunter2")

    assert watcher.told == [("GET", "/v1/***", 405, "2 queries in 0.10ms")]


def test_a_stream_is_watched_to_its_end(serving: Serving, ask: Ask) -> None:
    watcher = Watcher()
    app = serving(
        "seen = []\ndef body():\n    yield b'a'\n    seen.append(list(app_seen))\n    yield b'b'\n"
        "async def handler(request):\n    return StreamingResponse(body())\n"
    )
    app.boot()
    (module,) = app.project.modules.values()
    names = getattr(module, "handler").__globals__  # noqa: B009 - a union
    names["app_seen"] = watcher.seen
    assert told(app, watcher, ask, "/v1/x").body == b"ab"
    assert names["seen"] == [["began"]]
    assert watcher.seen == ["began", "ended"]


def test_without_a_watcher_and_a_terminal_there_is_no_layer() -> None:
    assert build_development_entries([None, object()]) == []
    assert len(build_development_entries([Watcher()])) == 1
