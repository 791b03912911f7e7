"""What a deployer sets: where the server listens, HTTPS, limits, processes."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from treefold_server._errors import ServerError

ASGIApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

_RANGES = {
    "port": (0, 65535),
    "workers": (1, 1000),
    "fd": (0, 2**31 - 1),
    "backlog": (1, 2**31 - 1),
    "limit_concurrency": (1, math.inf),
    "max_requests": (1, math.inf),
    "max_requests_jitter": (0, math.inf),
    "grace": (0, math.inf),
    "send_rate": (0, math.inf),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The options of a server.

    Attributes:
        host: the address to listen on.
        port: the port; 0 picks a free one.
        workers: how many processes serve.
        uds: the path of a Unix socket to listen on in place of an address.
        fd: the number of an open file, a listening socket that the process was started with.
        tls_certificate: a PEM file with the certificate and those that lead to its root.
        tls_key: the PEM file of its key, without a password; None if the certificate's file has it.
        tls_client_ca: a PEM file with authorities: clients must have a certificate of one of them.
        forwarded_allow_ips: addresses or networks of proxies whose `X-Forwarded-For` and
            `X-Forwarded-Proto` are believed; `*` for all, where clients reach only the proxy.
        keep_alive: seconds that an idle connection stays open.
        grace: seconds that the end waits for requests in progress.
        limit_concurrency: the most requests that one process works on; None is no limit.
        backlog: the most connections that wait to be accepted.
        max_requests: end a process after this number of requests; another takes its place.
        max_requests_jitter: up to this number more, at random, so that not all end at once.
        worker_timeout: seconds in which a process that serves must answer its supervisor; one that
            does not is replaced, and its requests are lost.
        send_timeout: seconds over which a client must read while bytes of a response wait for it;
            without progress in them the connection is closed.
        send_rate: the fewest bytes a second, on average over `send_timeout`, that such a client
            must read; 0 accepts any progress.
        lifespan: "on" if the application must answer the events of its start and end, "off" if it
            gets none, "auto" if it may fail them.
        overload_app: an ASGI application that answers requests above `limit_concurrency`; None for
            a 503 with `Retry-After` and a line of log.

    Raises:
        ServerError: for a value out of its range.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    uds: str | None = None
    fd: int | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None
    forwarded_allow_ips: tuple[str, ...] = ()
    keep_alive: float = 5.0
    grace: float = 20.0
    limit_concurrency: int | None = 1000
    backlog: int = 2048
    max_requests: int | None = None
    max_requests_jitter: int = 0
    worker_timeout: float = 5.0
    send_timeout: float = 60.0
    send_rate: int = 500
    lifespan: Literal["auto", "on", "off"] = "auto"
    overload_app: ASGIApp | None = None

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                wanted = f"from {low} to {high}" if high < math.inf else f"from {low}"
                raise _make_option_error(f"Option {name} must be a number {wanted}, got {value}")
        for name in ("keep_alive", "worker_timeout", "send_timeout"):
            if not 0 < (value := getattr(self, name)) < math.inf:
                raise _make_option_error(f"Option {name} must be a number above 0, got {value}")
        if self.lifespan not in ("auto", "on", "off"):
            wanted = "'auto', 'on' or 'off'"
            raise _make_option_error(f"Option lifespan must be {wanted}, got {self.lifespan!r}")
        if self.uds is not None and self.fd is not None:
            raise _make_option_error("Options uds and fd exclude each other; give one")
        if self.tls_certificate is None:
            for name in ("tls_key", "tls_client_ca"):
                if getattr(self, name) is not None:
                    raise _make_option_error(f"Option {name} needs tls_certificate")


def _make_option_error(message: str) -> ServerError:
    return ServerError(message, exit_code=2)
