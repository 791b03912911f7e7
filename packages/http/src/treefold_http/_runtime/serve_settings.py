"""Settings of the server `treefold serve`: the table `[serve]`, `TREEFOLD_SERVE_<NAME>`.

Names, types and ranges only; `settings` reads them, and the server applies them. Another server
has options of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from treefold_http._runtime.boot_report import SettingsError

SERVE_PREFIX = "TREEFOLD_SERVE_"
"""Begins the variable of a setting of the server."""

_RANGES = {
    "port": (0, 65535),
    "workers": (1, 1000),
    "fd": (0, 2**31 - 1),
    "backlog": (1, 2**31 - 1),
    "max_requests": (1, math.inf),
    "max_requests_jitter": (0, math.inf),
    "limit_concurrency": (1, math.inf),
    "send_rate": (0, math.inf),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The settings of `treefold serve`.

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
        limit_concurrency: the most requests that one process works on; None for the setting
            `limit_concurrency` outside of this table.
        backlog: the most connections that wait to be accepted.
        max_requests: end a process after this number of requests; another takes its place.
        max_requests_jitter: up to this number more, at random, so that not all end at once.
        worker_timeout: seconds in which a process that serves must answer its supervisor; one that
            does not is replaced, and its requests are lost.
        send_timeout: seconds over which a client must read while bytes of a response wait for it;
            without progress in them the connection is closed.
        send_rate: the fewest bytes a second, on average over `send_timeout`, that such a client
            must read; 0 accepts any progress.
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
    limit_concurrency: int | None = None
    backlog: int = 2048
    max_requests: int | None = None
    max_requests_jitter: int = 0
    worker_timeout: float = 5.0
    send_timeout: float = 60.0
    send_rate: int = 500

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                wanted = f"from {low} to {high}" if high < math.inf else f"from {low}"
                raise SettingsError(f"Setting serve.{name} must be a number {wanted}, got {value}")
        for name in ("send_timeout", "keep_alive", "worker_timeout"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingsError(
                    f"Setting serve.{name} must be a number above 0, got {getattr(self, name)!r}"
                )
        if self.uds is not None and self.fd is not None:
            raise SettingsError("Settings serve.uds and serve.fd exclude each other; give one")
        if self.tls_certificate is None:
            for name in ("tls_key", "tls_client_ca"):
                if getattr(self, name) is not None:
                    raise SettingsError(f"Setting serve.{name} needs serve.tls_certificate")
