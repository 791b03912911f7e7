"""Logins: how often a password can be guessed, and passwords in places that are logged."""

from __future__ import annotations

from collections.abc import Iterator

from treefold_http._deploy.deployment import PASSWORDS, Deployment, ServedRoute, normalize_name
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._deploy.references import collect_code_names

KINDS = make_kinds(
    """
    severe login-unlimited: passwords can be guessed without a limit;
      an attacker tries the most common passwords on every account, thousands a minute
    warning login-limit-loose: a login allows more than 100 guesses a minute;
      an attacker has tried the ten thousand most common passwords of an account within two hours
    severe login-limit-key: the client chooses what its guesses are counted by;
      an attacker sends another value with each guess, and is never counted
    warning secret-in-query: a password or key is sent in the query of a URL;
      an attacker reads it in the log of a proxy, in the history of a browser or in a Referer
    """
)
UNLIMITED, LOOSE, CHOSEN_KEY, IN_QUERY = KINDS

_MOST = 100
"""Guesses a minute at one login that are not worth a finding."""
_MINUTE = 60_000_000_000
_CHOSEN = frozenset({"headers", "query", "cookies"})
_SECRET_INPUTS = PASSWORDS | {"secret", "clientsecret", "apikey", "accesskey"}


def check_logins(deployment: Deployment) -> Iterator[Finding]:
    """Find routes whose passwords can be guessed or read."""
    for served in deployment.loaded_routes:
        if served.is_login and served.route.method != "WEBSOCKET":
            yield from _check_login_rate_limit(served)
        for one in served.client_inputs:
            if one.place == "query" and normalize_name(one.name) in _SECRET_INPUTS:
                text = f"{served.display_name} takes {one.name!r} from the query"
                write = f"{one.name}: Annotated[str, Header()]  # or a field of the body"
                yield IN_QUERY.make_finding(served.file_path, text, write)


def _check_login_rate_limit(served: ServedRoute) -> Iterator[Finding]:
    line = 'middlewares = [RateLimit("10/min")]'
    if not served.is_rate_limited:
        text = f"{served.display_name} checks a password, and nothing limits how often"
        yield UNLIMITED.make_finding(served.file_path, text, line)
        return
    if not served.rate_limits:
        return  # the project's own
    by_address = [limit for limit in served.rate_limits if limit.key is None]
    keys = [limit.key for limit in served.rate_limits if limit.key is not None]
    chosen = [key for key in keys if not _CHOSEN.isdisjoint(collect_code_names(key))]
    # a limit by address beside it counts a client that invents keys
    if chosen and not by_address:
        by = "by what a header field, the query or a cookie says"
        text = f"{served.display_name} is limited {by}"
        yield CHOSEN_KEY.make_finding(served.file_path, text, line)
    # all limits of a route have to let a guess pass, so the strictest one decides
    a_minute = min(_MINUTE / limit.rate.interval for limit in served.rate_limits)
    if a_minute > _MOST:
        text = f"{served.display_name} allows {a_minute:.0f} guesses a minute"
        yield LOOSE.make_finding(served.file_path, text, line)
