"""Who may call a route, as facts: credentials, guards and limits of requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from treefold_contract import Auth, Limit
from treefold_http._chains.cache_place import decides_access
from treefold_http._chains.middleware_chain import unwrap_middleware_entry
from treefold_http._chains.subtrees import Under
from treefold_http._description.credentials import build_security_requirements
from treefold_http._description.routes import RouteDescription
from treefold_http._injection.secured import read_middleware_security
from treefold_http.middleware._gcra import Rate

_PLACES = ("header", "query", "cookie")
_KINDS = {"openIdConnect": "openid", "mutualTLS": "tls"}
_OPEN = "none"
_MINUTE = 60_000_000_000
"""Nanoseconds."""


def list_credentials(described: RouteDescription) -> list[Auth]:
    """Return the ways to be authorised, of which any one is enough; none for an open route."""
    schemes = {each.name: _name_scheme(each.scheme) for each in described.security}
    return [
        Auth(
            "+".join(sorted(schemes[name] for name in way)) or _OPEN,
            tuple(dict.fromkeys(_to_word(scope) for scopes in way.values() for scope in scopes)),
        )
        for way in build_security_requirements(described.security)
    ]


def _name_scheme(scheme: Mapping[str, Any]) -> str:
    """Return what a client must send: `bearer`, `basic`, `header:x-key`, `cookie:session`."""
    kind = str(scheme.get("type"))
    if kind == "http":
        return _to_word(str(scheme.get("scheme")).lower())
    if kind == "apiKey" and scheme.get("in") in _PLACES:
        name = str(scheme.get("name"))
        return _to_word(f"{scheme['in']}:{name.lower() if scheme['in'] == 'header' else name}")
    return _KINDS.get(kind, kind)


def _to_word(text: str) -> str:
    return "_".join(text.split()) or "_"


def select_scoped_entries(
    described: RouteDescription, project_middlewares: Sequence[Any]
) -> list[Any]:
    """Return the middleware that covers a route and not all of them, without its prefix."""
    scoped = [
        each
        for each in project_middlewares
        if isinstance(each, Under) and each.covers_route(described.route)
    ]
    return [unwrap_middleware_entry(each) for each in (*scoped, *described.module.middlewares)]


def list_guards(entries: Iterable[Any]) -> list[str]:
    """Return the names of entries that may refuse a request; credentials are facts of their own."""
    return sorted({_name_entry(each) for each in entries if _may_refuse(each)})


def _may_refuse(entry: Any) -> bool:
    if read_middleware_security(entry) or _find_rate(entry) is not None:
        return False
    module = str(getattr(entry, "__module__", ""))
    is_own = module.partition(".")[0].startswith("treefold_")
    return decides_access(entry) or not is_own


def _name_entry(entry: Any) -> str:
    return str(getattr(entry, "__name__", None) or type(entry).__name__)


def iter_limits(described: RouteDescription, entries: Iterable[Any]) -> Iterable[Limit]:
    """Yield the limits: bytes of a body, seconds of the handler, requests in a minute."""
    module = described.module
    for name, value in (("body", module.max_body), ("timeout", module.timeout)):
        if value is not None:
            yield Limit(name, value)
    rates = [rate for rate in map(_find_rate, entries) if rate is not None]
    if rates:
        least = min(_MINUTE / rate.interval for rate in rates)
        least = round(least, 2)
        yield Limit("rate", int(least) if least.is_integer() else least)


def _find_rate(entry: Any) -> Rate | None:
    rate = getattr(entry, "rate", None)
    return rate if isinstance(rate, Rate) else None
