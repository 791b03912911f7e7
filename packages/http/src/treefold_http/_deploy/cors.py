"""CORS: origins that may read too much, and settings that browsers do not honour.

The hosts of the application come from `TrustedHosts` and the domain of the session cookie; without
either, sites are not compared. Two names count as two sites only if their last two labels differ:
longer public suffixes are not known here, and a false warning is worse than a missing one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from treefold_http._deploy.deployment import CHANGING, MIDDLEWARE, Deployment, unwrap_scoped_entry
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._deploy.sessions import is_unencrypted_origin
from treefold_http.middleware._cors import CORS
from treefold_http.middleware._csrf import CSRF
from treefold_http.middleware._ip_allowlist import IPAllowlist
from treefold_http.middleware._rate_limit import RateLimit
from treefold_http.middleware._sessions import Sessions
from treefold_http.middleware._trusted_hosts import TrustedHosts

KINDS = make_kinds(
    """
    severe cors-pattern: a pattern of origins matches names that anybody can register;
      an attacker registers such a name, and its pages read the answers of logged-in users
    severe cors-internal: pages of every site may read a service of an internal network;
      an attacker reads the service through the browser of somebody in the network who visits his
      page
    warning cors-plain: credentials for pages that are sent without TLS;
      an attacker changes the plain page on its way, and reads the answers that its user may read
    warning cors-twice: two entries answer one origin, and browsers refuse both;
      an attacker gains nothing by it; but pages that do not work are mended with '*'
    warning cors-after-limit: a limit comes before CORS, and pages cannot read its 429;
      an attacker gains nothing by it; but pages repeat what they cannot read
    warning cors-method: a method in small letters allows nothing;
      an attacker gains nothing by it; but pages that do not work are mended with '*'
    warning cors-header: a header field that pages need is not allowed;
      an attacker gains nothing by it; but pages that do not work are mended with '*'
    warning cors-site: credentials for another site, whose pages get no session cookie;
      an attacker gains nothing by it; but pages that do not work are mended with SameSite=None
    warning cors-csrf: credentials for an origin that CSRF does not trust;
      an attacker gains nothing by it; but pages that do not work are mended with csrf=False
    """
)
PATTERN, INTERNAL, PLAIN, TWICE, LATE, METHOD, HEADER, SITE, UNTRUSTED = KINDS

_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class _PlacedEntry:
    """An entry with the prefix below which it runs."""

    entry: Any
    prefix: tuple[str, ...]

    def shares_routes(self, other: _PlacedEntry) -> bool:
        """Return True if both entries run for a common route."""
        pairs = zip(self.prefix, other.prefix, strict=False)
        return all(one == another or "*" in (one, another) for one, another in pairs)


def check_cors(deployment: Deployment) -> Iterator[Finding]:
    """Find origins that may read too much, and settings that browsers refuse or ignore."""
    placed = [_pair_with_prefix(entry) for entry in deployment.middleware_folder_entries]
    hosts = [host for p in _filter_by_type(placed, TrustedHosts) for host in p.entry.allowed]
    for number, one in enumerate(placed):
        if not isinstance(one.entry, CORS):
            continue
        yield from _check_origins(one.entry, deployment, hosts)
        yield from _check_preflight(one.entry, deployment)
        yield from _check_overlapping_cors(one, _filter_by_type(placed[number + 1 :], CORS))
        if any(one.shares_routes(limit) for limit in _filter_by_type(placed[:number], RateLimit)):
            text = "RateLimit comes before CORS: pages cannot read its 429"
            yield LATE.make_finding(MIDDLEWARE, text, "middlewares = [CORS(...), RateLimit(...)]")
        if one.entry.has_credentials:
            yield from _check_cors_with_sessions(one, placed, hosts)


def _pair_with_prefix(entry: Any) -> _PlacedEntry:
    return _PlacedEntry(unwrap_scoped_entry(entry), getattr(entry, "prefix", ()))


def _filter_by_type(placed: Sequence[_PlacedEntry], kind: type) -> list[_PlacedEntry]:
    return [one for one in placed if isinstance(one.entry, kind)]


def _check_origins(entry: CORS, deployment: Deployment, hosts: Sequence[str]) -> Iterator[Finding]:
    """Yield origins of anybody whose pages read more than what is public."""
    if "*" in entry.origins:
        shared = [s for s in deployment.loaded_routes if entry in s.entries]
        guarded = [s for s in shared if any(isinstance(e, IPAllowlist) for e in s.entries)]
        if guarded or entry.reaches_private_network:
            why = "it is for a network"
            if guarded:
                why = f"IPAllowlist guards {guarded[0].display_name}"
            text = f"CORS(['*']) lets pages of every site read answers, and {why}"
            yield INTERNAL.make_finding(MIDDLEWARE, text, "CORS(['https://app.example.com'])")
    if entry.pattern is not None and entry.has_credentials:
        origins = _generate_attacker_origins(entry.pattern.pattern, hosts)
        if (foreign := next(filter(entry.allows, origins), None)) is not None:
            text = f"allow_origin_pattern={entry.pattern.pattern!r} matches {foreign!r}"
            yield PATTERN.make_finding(MIDDLEWARE, text, "CORS(['https://*.example.com'], ...)")


def _generate_attacker_origins(pattern: str, hosts: Sequence[str]) -> Iterator[str]:
    """Yield origins of other people that a careless pattern matches.

    For `https://.*example\\.com`: `https://evil.attacker.example`, then `https://evilexample.com`,
    made of the pattern with `evil` for what repeats and `x` for a dot that is not escaped.
    """
    yield "https://evil.attacker.example"
    yield from (f"https://{host}.attacker.example" for host in hosts)
    if re.search(r"(?<!\\)[.\]][*+]\??(?=\w)", pattern):
        yield _build_hostile_origin(pattern)
    if re.search(r"(?<!\\)\.(?![*+?{])", pattern):
        yield _build_hostile_origin(pattern)


def _build_hostile_origin(pattern: str) -> str:
    text = re.sub(r"\\?\^|\\A|\\Z|\$", "", pattern)
    text = re.sub(r"(?<!\\)(?:\.|\[[^\]]*\])[*+]\??", "evil", text)
    text = re.sub(r"(?<!\\)\.", "x", text)
    return text.replace("\\", "")


def _check_preflight(entry: CORS, deployment: Deployment) -> Iterator[Finding]:
    """Yield methods and header fields that the preflight response does not allow."""
    for name in entry.methods or ():
        if name != name.upper():
            text = f"CORS(allow_methods=[{name!r}]) allows nothing: methods are in capitals"
            write = f"CORS(allow_methods=[{name.upper()!r}], ...)"
            yield METHOD.make_finding(MIDDLEWARE, text, write)
    headers = {name.lower() for name in entry.headers}
    shared = [each for each in deployment.loaded_routes if entry in each.entries]
    needed = {"Content-Type": ("JSON", any(each.route.method in _WITH_BODY for each in shared))}
    has_login = any(_needs_authorization_header(each.contract) for each in shared)
    needed["Authorization"] = ("a token", has_login)
    for name, (sent, is_needed) in needed.items():
        if is_needed and not headers & {"*", name.lower()}:
            shown = f"CORS(allow_headers={list(entry.headers)!r})"
            text = f"{shown} leaves {name} out: pages cannot send {sent}"
            write = f"CORS(allow_headers={[*entry.headers, name]!r}, ...)"
            yield HEADER.make_finding(MIDDLEWARE, text, write)


def _needs_authorization_header(contract: Any) -> bool:
    return any(one.scheme.get("type") == "http" for one in contract.security)


def _check_overlapping_cors(one: _PlacedEntry, later: Sequence[_PlacedEntry]) -> Iterator[Finding]:
    """Yield origins that two entries answer: a browser refuses a repeated header field."""
    for other in filter(one.shares_routes, later):
        named = [text for text in (*one.entry.origins, *other.entry.origins) if "*" not in text]
        for origin in named or ["https://any.example"]:
            if one.entry.allows(origin) and other.entry.allows(origin):
                below = max(one.prefix, other.prefix, key=len)
                where = f"below /{'/'.join(below)}" if below else "for every route"
                shown = repr(origin) if named else "every origin"
                text = f"two CORS entries allow {shown} {where}: browsers refuse such answers"
                write = "CORS(...)  # one of them for each route"
                yield TWICE.make_finding(MIDDLEWARE, text, write)
                break


def _check_cors_with_sessions(
    one: _PlacedEntry, placed: Sequence[_PlacedEntry], hosts: Sequence[str]
) -> Iterator[Finding]:
    for session in filter(one.shares_routes, _filter_by_type(placed, Sessions)):
        own = [host for host in (*hosts, session.entry.cookie.domain) if host]
        guards = [guard.entry for guard in _filter_by_type(placed, CSRF)] or [session.entry.guard]
        trusted = None if guards[0] is None else guards[0].trusted
        for origin in one.entry.origins:
            yield from _check_origin_with_session(origin, session.entry, own, trusted)


def _check_origin_with_session(
    origin: str,
    sessions: Sessions,
    own_hosts: Sequence[str],
    trusted_origins: Collection[str] | None,
) -> Iterator[Finding]:
    """Yield the reasons why pages of an origin do not get the session cookie, or should not."""
    parts = urlsplit(origin)
    host = (parts.hostname or "").removeprefix("*.")
    if host in _LOOPBACK:
        return  # a page on loopback is in development and may use any host
    samesite = sessions.cookie.samesite
    if is_unencrypted_origin(origin):
        text = f"CORS allows credentials for {origin!r}, whose pages are sent without TLS"
        yield PLAIN.make_finding(MIDDLEWARE, text, f"CORS(['https://{parts.netloc}'], ...)")
    elif (
        own_hosts
        and samesite != "none"
        and all(_are_different_sites(host, each) for each in own_hosts)
    ):
        text = f"CORS allows credentials for {origin!r}, which is another site than"
        text += f" {own_hosts[0]!r}: its pages have no session"
        text += f", whose cookie is SameSite={samesite.capitalize()}"
        write = "Sessions(samesite='none')  # or serve both below one domain"
        yield SITE.make_finding(MIDDLEWARE, text, write)
    if trusted_origins is not None and origin not in trusted_origins:
        text = f"CORS allows credentials for {origin!r}, which CSRF does not trust"
        text += f": {', '.join(sorted(CHANGING))} with a session are 403"
        named = "..." if "*" in origin else repr(origin)
        yield UNTRUSTED.make_finding(MIDDLEWARE, text, f"Sessions(trusted_origins=[{named}])")


def _are_different_sites(one: str, other: str) -> bool:
    first, second = (_extract_site_labels(host) for host in (one, other))
    return first != second


def _extract_site_labels(host: str) -> list[str]:
    name = host.removeprefix("*.").lower().removesuffix(".")
    if not name.startswith("["):
        name = name.partition(":")[0]
    return name.split(".")[-2:] if not name.replace(".", "").isdigit() else [name]
