"""Find `CORS` settings that browsers do not honour, for `doctor`.

Pure functions from entries of `Middleware/` to findings. The hosts of the application come from
`TrustedHosts` and the domain of the session cookie; without either, sites are not compared. Two
names count as two sites only if their last two labels differ: longer public suffixes are not known
here, and a false warning is worse than a missing one.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from treefold_cli._checks.diagnosis import FAIL, WARN, Finding

if TYPE_CHECKING:
    from treefold_http.middleware import CORS, Sessions

_CHANGES = ("POST", "PUT", "PATCH", "DELETE")
_WITH_BODY = {"POST", "PUT", "PATCH"}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class _PlacedEntry:
    """An entry with the prefix below which it runs."""

    entry: Any
    prefix: tuple[str, ...]

    def meets(self, other: "_PlacedEntry") -> bool:
        """Return True if both entries run for a common route."""
        shorter = min(len(self.prefix), len(other.prefix))
        return self.prefix[:shorter] == other.prefix[:shorter]


def check_cors(
    entries: Sequence[Any], *, methods: Collection[str], sends_tokens: bool
) -> Iterator[Finding]:
    """Yield findings for settings that browsers refuse or ignore.

    Args:
        entries: those of `Middleware/`, the outermost first.
        methods: of the routes.
        sends_tokens: the project takes credentials from the field `Authorization`.
    """
    from treefold_http.middleware import CORS, CSRF, RateLimit, Sessions, TrustedHosts

    placed = [_place(entry) for entry in entries]
    hosts = [host for p in _of_kind(placed, TrustedHosts) for host in p.entry.allowed]
    for number, one in enumerate(placed):
        if not isinstance(one.entry, CORS):
            continue
        yield from _check_preflight(one.entry, methods, sends_tokens)
        yield from _check_overlap(one, _of_kind(placed[number + 1 :], CORS))
        if any(one.meets(limit) for limit in _of_kind(placed[:number], RateLimit)):
            text = "RateLimit comes before CORS: pages cannot read its 429"
            yield Finding(WARN, "cors", text, "list CORS first")
        if not one.entry.has_credentials:
            continue
        for session in filter(one.meets, _of_kind(placed, Sessions)):
            own = [host for host in (*hosts, session.entry.cookie.domain) if host]
            guards = [guard.entry for guard in _of_kind(placed, CSRF)] or [session.entry.guard]
            trusted = None if guards[0] is None else guards[0].trusted
            for origin in one.entry.origins:
                yield from _check_session(origin, session.entry, own, trusted)


def _place(entry: Any) -> _PlacedEntry:
    prefix = getattr(entry, "prefix", None)
    return _PlacedEntry(entry, ()) if prefix is None else _PlacedEntry(entry.entry, prefix)


def _of_kind(placed: Sequence[_PlacedEntry], kind: type) -> list[_PlacedEntry]:
    return [one for one in placed if isinstance(one.entry, kind)]


def _check_preflight(
    entry: "CORS", methods: Collection[str], sends_tokens: bool
) -> Iterator[Finding]:
    """Yield methods and header fields that the preflight response does not allow."""
    for name in entry.methods or ():
        if name != name.upper():
            text = f"CORS(allow_methods=[{name!r}]) allows nothing: methods are in capitals"
            yield Finding(FAIL, "cors", text, f"write {name.upper()!r}")
    headers = {name.lower() for name in entry.headers}
    if "*" in headers:
        return
    shown = f"CORS(allow_headers={list(entry.headers)!r})"
    if "content-type" not in headers and _WITH_BODY & set(methods):
        text = f"{shown} leaves Content-Type out: pages cannot send JSON"
        yield Finding(WARN, "cors", text, "add 'Content-Type'")
    if sends_tokens and "authorization" not in headers:
        text = f"{shown} leaves Authorization out: pages cannot send a token"
        yield Finding(WARN, "cors", text, "add 'Authorization'")


def _check_overlap(one: _PlacedEntry, later: Sequence[_PlacedEntry]) -> Iterator[Finding]:
    """Yield origins that two entries answer: a browser refuses a repeated header field."""
    for other in filter(one.meets, later):
        named = [text for text in (*one.entry.origins, *other.entry.origins) if "*" not in text]
        for origin in named or ["https://any.example"]:
            if one.entry.allows(origin) and other.entry.allows(origin):
                below = max(one.prefix, other.prefix, key=len)
                where = f"below /{'/'.join(below)}" if below else "for every route"
                shown = repr(origin) if named else "every origin"
                text = f"two CORS entries allow {shown} {where}: browsers refuse such answers"
                yield Finding(FAIL, "cors", text, "leave one of them for each route")
                break


def _check_session(
    origin: str, sessions: "Sessions", own: Sequence[str], trusted: Collection[str] | None
) -> Iterator[Finding]:
    """Yield the reasons why pages of an origin do not get the session cookie."""
    parts = urlsplit(origin)
    host = (parts.hostname or "").removeprefix("*.")
    if host in _LOOPBACK:
        return  # a page on loopback is in development and may use any host
    samesite = sessions.cookie.samesite
    is_kept_home = samesite != "none"
    if parts.scheme == "http" and is_kept_home:
        text = f"CORS allows credentials for {origin!r}, whose pages are sent without TLS"
        text += (
            f": browsers send them no cookie that is Secure and SameSite={samesite.capitalize()}"
        )
        yield Finding(WARN, "cors", text, f"serve them at 'https://{parts.netloc}'")
    elif own and is_kept_home and all(_are_two_sites(host, each) for each in own):
        text = f"CORS allows credentials for {origin!r}, which is another site than {own[0]!r}"
        text += f": its pages have no session, whose cookie is SameSite={samesite.capitalize()}"
        advice = "serve both below one domain, or set Sessions(samesite='none')"
        yield Finding(WARN, "cors", text, advice)
    if trusted is not None and origin not in trusted:
        text = f"CORS allows credentials for {origin!r}, which CSRF does not trust"
        text += f": {', '.join(_CHANGES[:-1])} and {_CHANGES[-1]} with a session are 403"
        named = "its origins by name" if "*" in origin else repr(origin)
        yield Finding(WARN, "cors", text, f"add {named} to trusted_origins of Sessions or CSRF")


def _are_two_sites(one: str, other: str) -> bool:
    first, second = (_site_of(host) for host in (one, other))
    return first != second


def _site_of(host: str) -> list[str]:
    name = host.removeprefix("*.").lower().removesuffix(".")
    if not name.startswith("["):
        name = name.partition(":")[0]
    return name.split(".")[-2:] if not name.replace(".", "").isdigit() else [name]
