"""Listening: TLS, its key, HSTS, and how long a client may keep a connection."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from treefold_http._deploy.deployment import MIDDLEWARE, Deployment
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._deploy.reach import describe_listen_address
from treefold_http.middleware._security_headers import SecurityHeaders
from treefold_http.middleware._sessions import Sessions

KINDS = make_kinds(
    """
    severe tls-missing: credentials are taken at a public address without TLS;
      an attacker reads passwords, cookies and tokens on the way, and changes answers
    warning hsts-missing: this server ends TLS and does not ask browsers to stay with it;
      an attacker answers the first request of a visit over http in the server's place, and stays in
      between
    severe tls-key-open: every account of the machine can read the key of the certificate;
      an attacker reads the key through a hole in any other program of the machine, and passes as
      this server
    warning slow-clients: idle connections of anybody stay open for long;
      an attacker opens connections, does nothing, and the server has no descriptor left for others
    """
)
NO_TLS, NO_HSTS, OPEN_KEY, SLOW = KINDS

_SHORTEST_HSTS = 86_400
"""Seconds: a day. Less protects no visitor who comes back tomorrow."""
_LONGEST_IDLE = 120.0
"""Seconds that an idle connection may stay open to the internet without a proxy in front."""


def check_transport_security(deployment: Deployment) -> Iterator[Finding]:
    """Find connections that others can read, or hold."""
    serve, reach = deployment.settings.serve, deployment.network_reach
    file = deployment.sources.find_setting_file("serve")
    if serve.tls_certificate is None and reach.is_public and not reach.has_trusted_proxy:
        taken = next(_describe_credential_uses(deployment), None)
        if taken is not None:
            text = f"{taken} at {describe_listen_address(serve)}, without TLS"
            write = 'tls_certificate = "cert.pem"  # or ProxyHeaders([...]) with the proxy'
            yield NO_TLS.make_finding(file, text, write)
    if serve.tls_certificate is not None:
        yield from _check_hsts(deployment)
        yield from _check_tls_key_mode(deployment)
    if reach.is_public and not reach.has_trusted_proxy and serve.keep_alive > _LONGEST_IDLE:
        where = describe_listen_address(serve)
        text = f"an idle connection to {where} stays open for {serve.keep_alive:g} s"
        yield SLOW.make_finding(file, text, "keep_alive = 5")


def _describe_credential_uses(deployment: Deployment) -> Iterator[str]:
    for entry in deployment.middleware_entries:
        if isinstance(entry, Sessions):
            yield "cookies of sessions are sent"
    for served in deployment.loaded_routes:
        if served.takes_password or served.needs_credentials:
            yield f"{served.display_name} takes credentials"


def _check_hsts(deployment: Deployment) -> Iterator[Finding]:
    entries = [each for each in deployment.middleware_entries if isinstance(each, SecurityHeaders)]
    if entries and all(entry.hsts_seconds < _SHORTEST_HSTS for entry in entries):
        seconds = max(entry.hsts_seconds for entry in entries)
        text = f"SecurityHeaders sends HSTS for {seconds} s" if seconds else "there is no HSTS"
        yield NO_HSTS.make_finding(MIDDLEWARE, text, "SecurityHeaders(hsts=True)")


def _check_tls_key_mode(deployment: Deployment) -> Iterator[Finding]:
    serve = deployment.settings.serve
    name = serve.tls_key or serve.tls_certificate or ""
    try:
        mode = os.stat(deployment.root / name).st_mode
        text = (deployment.root / name).read_bytes()
    except OSError:
        return  # `serve` reports it
    # a certificate is public; without `tls_key` its file has the key beside it
    if mode & stat.S_IROTH and (serve.tls_key is not None or b"PRIVATE KEY" in text):
        said = f"{name} has the mode {stat.S_IMODE(mode):o}"
        yield OPEN_KEY.make_finding(name, said, f"chmod 600 {name}")
