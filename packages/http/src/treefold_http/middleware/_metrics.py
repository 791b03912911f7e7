"""Count and time requests for Prometheus, through its client library (extra `metrics`).

Labels hold templates and known methods, never text that a client chose: their number is bounded.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from treefold_http._chains.middleware_chain import call_with_end_callback
from treefold_http._requests.usage import MAX_CALLERS, OTHER, Counts, Usage
from treefold_http._responses.response import Response
from treefold_http._runtime.boot_report import import_extra
from treefold_http._wire.addresses import Networks, parse_address, read_client_host
from treefold_http._wire.errors import NOTHING_HERE, NotFound
from treefold_http._wire.root_path import below_root
from treefold_http.middleware._relayed import is_from_untrusted_proxy, warn_of_untrusted_proxy
from treefold_router import METHODS

if TYPE_CHECKING:
    from treefold_http._plans.runtime import ProjectRuntime
    from treefold_http._requests.request import Request
    from treefold_http._responses.endpoints import CallNext
    from treefold_http._websockets.websocket import WebSocket
    from treefold_router import Route

_UNMATCHED = "unmatched"
_LEFT = 499
"""The status of a request whose client left before there was an answer; never sent."""
_LOOPBACK = ("127.0.0.1", "::1")
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Keep metrics of requests and sockets, and serve them at a path of their own.

    `http_requests_total` by method, route and status; `http_request_duration_seconds` by method and
    route, until the last byte was sent; `http_requests_in_progress`; `websockets_total` by route
    and outcome; `websockets_open`. With the setting `usage`, `treefold_usage_requests_total` by
    method, route and caller, and `treefold_usage_query_total` by method, route and query name. All
    of the library's default registry is served, those of the project included. With
    `PROMETHEUS_MULTIPROC_DIR` set, the workers of a server add up.

    Args:
        path: where they are read, such as `/metrics`; None serves them nowhere.
        allowed: addresses or networks that may read them; others get 404.
        buckets: upper bounds of the durations, in seconds; the first of a process count.

    Attributes:
        page: the path where they are read; an `under` that covers it runs before this entry.
        allowed: the networks that may read them.

    Raises:
        TreefoldError: if the `metrics` extra is not installed.
        ValueError: for a path without a slash, or a text that is not a network.
    """

    sees_every_answer = True  # also those that a cache around it has kept

    def __init__(
        self,
        *,
        path: str | None = "/metrics",
        allowed: Sequence[str] = _LOOPBACK,
        buckets: Sequence[float] = BUCKETS,
    ) -> None:
        if path is not None and not path.startswith("/"):
            raise ValueError(f"Metrics path must start with '/', got {path!r}")
        self.page = path
        self._path = None if path is None else path.encode()
        self.allowed = Networks(allowed, of="Metrics")
        self._library = _import_prometheus()
        self._families = _find_or_make_families(buckets)
        self._usage: Usage | None = None

    def prepare(self, app: ProjectRuntime, extensions: Sequence[Any]) -> None:
        """Take the counts of the setting `usage`."""
        if app.usage is not None:
            self._usage = app.usage
            self._families.watch_usage(app.usage)

    def for_route(self, route: Route | None, entries: Sequence[Any]) -> Any:
        """Return the layer of a route, with its labels."""
        return _Layer(self, self._families, route)

    def is_metrics_request(self, request: Request) -> bool:
        """Return True for a request to the path.

        Raises:
            NotFound: for a client that may not read it.
        """
        if self._path is None or request.method != "GET":
            return False
        if below_root(request.raw_path, request.root_path) != self._path:
            return False
        if parse_address(read_client_host(request.scope)) not in self.allowed:
            raise NotFound(NOTHING_HERE)
        # a proxy on this machine would make the page public: its address is one of the allowed
        if is_from_untrusted_proxy(request):
            warn_of_untrusted_proxy(request, "Metrics", "refused a request")
            raise NotFound(NOTHING_HERE)
        return True

    def render(self) -> Response:
        """Return the metrics as Prometheus reads them."""
        if self._usage is not None:
            self._usage.send_report()
        library = self._library
        registry = library.REGISTRY
        if folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            _remove_gauges_of_ended_processes(Path(folder))
            registry = library.CollectorRegistry()
            multiprocess = importlib.import_module("prometheus_client.multiprocess")
            multiprocess.MultiProcessCollector(registry)
        body: bytes = library.generate_latest(registry)
        headers = {"Content-Type": library.CONTENT_TYPE_LATEST, "Cache-Control": "no-store"}
        return Response.bytes(body, headers=headers)


class _Layer:
    def __init__(self, metrics: Metrics, families: _Families, route: Route | None) -> None:
        self._metrics = metrics
        self._families = families
        self._is_miss = route is None
        self._template = _UNMATCHED if route is None else route.template
        self._running = families.running
        self._children: dict[tuple[str, int], Any] = {}
        self._timers: dict[str, Any] = {}

    async def http(self, request: Request, call_next: CallNext) -> Response:
        if self._is_miss and self._metrics.is_metrics_request(request):
            # with several workers the library reads a file of each of them
            return await request.app.run_in_thread(self._metrics.render)
        began = perf_counter()
        self._running.inc()
        return await call_with_end_callback(
            request, call_next, lambda r: self._record_request(request, r, began)
        )

    def _record_request(self, request: Request, sent_status: int | None, start_time: float) -> None:
        method = request.method if request.method in METHODS else "OTHER"
        status = _LEFT if sent_status is None else sent_status
        # `labels()` checks its arguments and takes a lock; the counters of a route are few
        if (counter := self._children.get((method, status))) is None:
            counter = self._children[method, status] = self._families.requests.labels(
                method, self._template, str(status)
            )
        if (timer := self._timers.get(method)) is None:
            timer = self._timers[method] = self._families.duration.labels(method, self._template)
        counter.inc()
        timer.observe(perf_counter() - start_time)
        self._running.dec()

    async def websocket(self, websocket: WebSocket, call_next: Any) -> None:
        families = self._families
        families.sockets_open.inc()
        try:
            await call_next(websocket)
        finally:
            families.sockets_open.dec()
            outcome = "accepted" if websocket.accepted else "refused"
            families.sockets.labels(self._template, outcome).inc()


class _Families:
    """The metrics, made once in a process: the registry takes a name once."""

    def __init__(self, library: Any, buckets: Sequence[float]) -> None:
        labels = ["method", "route"]
        # one sum for all workers; the default, `all`, has a series for each process id
        alive: dict[str, Any] = {"multiprocess_mode": "livesum"}
        of_status = [*labels, "status"]
        self.requests = library.Counter("http_requests", "Requests that were answered.", of_status)
        self.duration = library.Histogram(
            "http_request_duration_seconds", "Until the last byte.", labels, buckets=buckets
        )
        about = "Requests that are worked on."
        self.running = library.Gauge("http_requests_in_progress", about, **alive)
        about = "Handshakes that were answered."
        self.sockets = library.Counter("websockets", about, ["route", "outcome"])
        self.sockets_open = library.Gauge("websockets_open", "Sockets that are served.", **alive)
        self.usage: Any = None
        self._callers: set[tuple[str, str, str]] = set()
        self.usage_query: Any = None
        self._library = library
        for gauge in (self.running, self.sockets_open):
            gauge.set(0)  # the file may be that of a former process with the same number

    def watch_usage(self, usage: Usage) -> None:
        """Add what an application counts to two more metrics, which others do not have."""
        if self.usage is None:
            labels = ["method", "route"]
            counter = self._library.Counter
            about = "Requests of each caller."
            self.usage = counter("treefold_usage_requests", about, [*labels, "caller"])
            about = "Requests that have a declared query name."
            self.usage_query = counter("treefold_usage_query", about, [*labels, "name"])
        usage.watch(self._add_usage)

    def _add_usage(self, route: Route, callers: Counts, query: Counts) -> None:
        labels = route.method, route.template
        for caller, count in callers.items():
            # a child stays for ever: those of callers must not grow with the hours
            if len(self._callers) >= MAX_CALLERS and (*labels, caller) not in self._callers:
                caller = OTHER
            else:
                self._callers.add((*labels, caller))
            self.usage.labels(*labels, caller).inc(count)
        for name, count in query.items():
            self.usage_query.labels(*labels, name).inc(count)


def _remove_gauges_of_ended_processes(folder: Path) -> None:
    """Remove what the library keeps of live processes for those that have ended.

    A process that is killed cannot take back its open sockets and requests in progress.
    """
    if sys.platform == "win32":  # signal 0 is Ctrl-C there
        return
    for file in folder.glob("gauge_live*_*.db"):
        try:
            os.kill(int(file.stem.rpartition("_")[2]), 0)
        except ProcessLookupError:
            file.unlink(missing_ok=True)  # other workers remove it too
        except (OSError, ValueError):  # a process of another user, or no file of the library
            continue


_made: dict[str, _Families] = {}


def _find_or_make_families(buckets: Sequence[float]) -> _Families:
    if "families" not in _made:
        _made["families"] = _Families(_import_prometheus(), buckets)
    return _made["families"]


def _import_prometheus() -> Any:
    message = 'Metrics needs prometheus-client; install it: pip install "treefold[metrics]"'
    return import_extra("prometheus_client", message)
