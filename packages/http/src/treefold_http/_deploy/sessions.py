"""Sessions: protection against requests of other sites, and logins that no logout ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from treefold_http._deploy.deployment import MIDDLEWARE, Deployment
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._deploy.reach import is_loopback
from treefold_http.auth._login import login
from treefold_http.middleware._csrf import CSRF
from treefold_http.middleware._sessions import Sessions

KINDS = make_kinds(
    """
    severe csrf-off: sessions without protection against requests of other sites;
      an attacker has the browser of a logged-in user send a form from a page of his own
    warning csrf-same-site: sessions are protected by SameSite alone;
      an attacker has the browser send a form from another name of the site, such as a forgotten
      subdomain
    severe csrf-other-cookie: the protection looks at other cookies than that of the session;
      an attacker has the browser send a form with the session's cookie, at which nothing looks
    warning csrf-plain-origin: pages that are sent without TLS may send requests with the session;
      an attacker puts a form into the plain page on its way to the browser
    warning sockets-plain-origin: pages that are sent without TLS may open sockets;
      an attacker puts a script into the plain page on its way, which opens the socket of its user
    warning session-irrevocable: logins are kept in a cookie, which no logout ends;
      an attacker uses a stolen cookie until it expires, also after its user has logged out
    """
)
NO_CSRF, LAX, OTHER_COOKIE, PLAIN_ORIGIN, PLAIN_SOCKETS, IRREVOCABLE = KINDS


def check_sessions(deployment: Deployment) -> Iterator[Finding]:
    """Find sessions that other sites can use, or that cannot be ended."""
    yield from _check_csrf(deployment)
    for entry in deployment.middleware_entries:
        guard = entry.guard if isinstance(entry, Sessions) else entry
        if isinstance(guard, CSRF):
            for origin in filter(is_unencrypted_origin, sorted(guard.trusted)):
                text = f"{type(entry).__name__} trusts {origin!r}, whose pages are sent without TLS"
                write = f"trusted_origins=['https://{urlsplit(origin).netloc}']"
                yield PLAIN_ORIGIN.make_finding(deployment.find_middleware_file(entry), text, write)
        is_in_cookie = isinstance(entry, Sessions) and entry.store == "cookie"
        routes = deployment.loaded_routes
        logs_in = [r.display_name for r in routes if r.code_references.includes_any(login)]
        if is_in_cookie and logs_in:
            text = f"{logs_in[0]} logs users in, and Sessions(store='cookie') forgets no login"
            write = "Sessions(store='database')  # or 'redis'"
            yield IRREVOCABLE.make_finding(MIDDLEWARE, text, write)
    if any(served.route.method == "WEBSOCKET" for served in deployment.loaded_routes):
        file = deployment.sources.find_setting_file("ws_allowed_origins")
        for origin in filter(is_unencrypted_origin, deployment.settings.ws_allowed_origins):
            text = f"ws_allowed_origins has {origin!r}, whose pages are sent without TLS"
            write = f"ws_allowed_origins = ['https://{urlsplit(origin).netloc}']"
            yield PLAIN_SOCKETS.make_finding(file, text, write)


def is_unencrypted_origin(origin: str) -> bool:
    """Return True for an origin whose pages are sent without TLS, other than this machine."""
    parts = urlsplit(origin)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def _check_csrf(deployment: Deployment) -> Iterator[Finding]:
    told: set[int] = set()
    for served in deployment.loaded_routes:
        if not served.is_state_changing:
            continue
        for sessions in (each for each in served.entries if isinstance(each, Sessions)):
            found = _find_csrf_fault(sessions, served.entries, served.display_name)
            if found is not None and id(sessions) not in told:
                told.add(id(sessions))
                yield found


def _find_csrf_fault(sessions: Sessions, entries: Sequence[Any], route_name: str) -> Finding | None:
    guards = [each for each in entries if isinstance(each, CSRF)]
    if not guards:
        write = "Sessions(...)  # without csrf=False"
        if sessions.cookie.samesite != "none":
            text = f"{route_name} takes the cookie of the session from all pages of its site"
            return LAX.make_finding(MIDDLEWARE, text, write)
        text = f"{route_name} takes the cookie of the session from pages of any site"
        return NO_CSRF.make_finding(MIDDLEWARE, text, write)
    cookie = sessions.cookie.prefixed_name
    if all(each.cookies is not None and cookie not in each.cookies for each in guards):
        text = f"CSRF looks at {', '.join(guards[0].cookies or ())}, and the session is {cookie}"
        write = f"CSRF(cookies=[{cookie!r}])  # or leave it out"
        return OTHER_COOKIE.make_finding(MIDDLEWARE, text, write)
    return None
