"""Security headers: what answers let browsers do."""

from __future__ import annotations

from collections.abc import Iterator

from treefold_http._deploy.deployment import MIDDLEWARE, Deployment
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http.middleware._security_headers import SecurityHeaders

KINDS = make_kinds(
    """
    warning headers-missing: answers carry no security headers;
      an attacker frames an answer in a page of his own, or has a browser run text of his as a page
    warning headers-framing: any site may frame the pages;
      an attacker lays a page invisibly over his own, and has a logged-in user click in it
    warning headers-scripts: pages run scripts that they carry, or from anywhere;
      an attacker has a text of his that a page shows run as a script of the page
    """
)
NONE, FRAMES, SCRIPTS = KINDS

_POLICY = "content-security-policy"


def check_security_headers(deployment: Deployment) -> Iterator[Finding]:
    """Find routes without security headers, and headers that allow too much."""
    if not deployment.network_reach.is_reached:
        return
    bare = [
        served.display_name
        for served in deployment.loaded_routes
        if served.route.method != "WEBSOCKET"
        and not any(isinstance(entry, SecurityHeaders) for entry in served.entries)
    ]
    if bare:
        more = f" and {len(bare) - 1} more routes" if bare[1:] else ""
        text = f"{bare[0]}{more} answer without security headers"
        yield NONE.make_finding(MIDDLEWARE, text, "SecurityHeaders()")
    for entry in deployment.middleware_entries:
        if isinstance(entry, SecurityHeaders):
            yield from _check_fields(entry, deployment.find_middleware_file(entry))


def _check_fields(entry: SecurityHeaders, file: str) -> Iterator[Finding]:
    policy = entry.fields.get(_POLICY, "")
    directives = dict(_parse_directives(policy))
    if "x-frame-options" not in entry.fields and "frame-ancestors" not in directives:
        text = "SecurityHeaders sends neither X-Frame-Options nor frame-ancestors"
        yield FRAMES.make_finding(file, text, 'SecurityHeaders(frame_options="DENY")')
    scripts = directives.get("script-src", directives.get("default-src", []))
    loose = [each for each in scripts if each in ("*", "'unsafe-inline'", "http:", "https:")]
    if loose and not any(each.startswith(("'nonce-", "'sha")) for each in scripts):
        text = f"the Content-Security-Policy allows {loose[0]} for scripts"
        policy = "default-src 'self'; frame-ancestors 'none'"
        write = f'SecurityHeaders(content_security_policy="{policy}")'
        yield SCRIPTS.make_finding(file, text, write)


def _parse_directives(policy: str) -> Iterator[tuple[str, list[str]]]:
    for directive in policy.lower().split(";"):
        name, *values = directive.split() or [""]
        yield name, values
