"""All checks of a deployment, and what a project has silenced."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from treefold_http._deploy import (
    answers,
    cors,
    databases,
    exposed,
    guards,
    headers,
    hosts,
    listening,
    logins,
    proxies,
    secrets,
    sessions,
    workers,
)
from treefold_http._deploy.deployment import Deployment
from treefold_http._deploy.finding import Finding, Kind, make_kinds

if TYPE_CHECKING:
    from treefold_http._serving.host import Host

(STALE,) = make_kinds(
    """
    warning silenced-nothing: the setting silenced names what is not found;
      an attacker gains nothing by it; but the next mistake of that name would not be told
    """
)

SUBJECTS: Mapping[str, Sequence[Kind]] = {
    "Hosts": hosts.KINDS,
    "Proxies": proxies.KINDS,
    "Listening": listening.KINDS,
    "Header fields": headers.KINDS,
    "Sessions and other sites": sessions.KINDS,
    "CORS": cors.KINDS,
    "Several processes": workers.KINDS,
    "Logins": logins.KINDS,
    "Guards": guards.KINDS,
    "What everybody can reach": exposed.KINDS,
    "Answers": answers.KINDS,
    "Secrets": secrets.KINDS,
    "Databases and Redis": databases.KINDS,
    "Silenced findings": (STALE,),
}
"""The kinds of findings by subject, for the documentation."""

_OF_SETTINGS: Sequence[Callable[[Deployment], Iterator[Finding]]] = (
    secrets.check_secrets,
    databases.check_databases,
    exposed.check_public_exposure,
)
_OF_PROJECT: Sequence[Callable[[Deployment], Iterator[Finding]]] = (
    hosts.check_trusted_hosts,
    proxies.check_proxy_trust,
    listening.check_transport_security,
    headers.check_security_headers,
    sessions.check_sessions,
    cors.check_cors,
    workers.check_per_process_state,
    logins.check_logins,
    guards.check_guards,
    answers.check_response_secrets,
)


def check_deployment(
    host: Host, *, is_booted: bool = True, more: Iterable[Finding] = ()
) -> list[Finding]:
    """Return the findings of an application that are not silenced.

    Args:
        host: the application, booted if it can be.
        is_booted: False if its boot failed: only the settings are checked.
        more: findings of tools, which `silenced` covers too.
    """
    deployment = Deployment(host, os.environ, is_booted)
    checks = (*_OF_PROJECT, *_OF_SETTINGS) if is_booted else _OF_SETTINGS
    found = [finding for check in checks for finding in check(deployment)]
    found += more
    silenced = deployment.settings.silenced
    named = {name for finding in found for name in finding.names}
    kept = [finding for finding in found if not any(name in silenced for name in finding.names)]
    # without a boot most checks have not run, and what they would find may be silenced rightly
    if is_booted:
        kept += _find_unused_silenced_names(deployment, set(silenced) - named)
    return list(dict.fromkeys(kept))


def _find_unused_silenced_names(deployment: Deployment, names: set[str]) -> Iterator[Finding]:
    known = {kind.id for kinds in SUBJECTS.values() for kind in kinds}
    for name in sorted(names):
        is_known = name.partition(" ")[0] in known
        why = "which is not found" if is_known else "which is the id of no finding"
        file = deployment.sources.find_setting_file("silenced", name)
        write = f"[silenced]  # without {name!r}"
        yield STALE.make_finding(file, f"silenced has {name!r}, {why}", write)
