"""What everybody can read or fill: documents, metrics, files, errors, memory, disk."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from treefold_http._deploy.deployment import Deployment, is_guard, unwrap_scoped_entry
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._deploy.reach import covers_many_public_addresses, networks_contain
from treefold_http._responses.static import StaticFiles
from treefold_http._runtime.settings import SPELLINGS
from treefold_http.middleware._metrics import Metrics

KINDS = make_kinds(
    """
    warning docs-public: the documents of the API are public;
      an attacker reads every route and parameter, the internal ones too
    warning metrics-public: everybody can read the metrics;
      an attacker reads routes, load and errors, and sees when an attack works
    severe dev-on: development mode is on;
      an attacker provokes errors, whose answers show exceptions, paths and values
    severe static-private: a folder of public files holds private ones;
      an attacker downloads the database, a key or the source
    warning body-memory: the bodies of all requests together may take more memory than a machine
      has;
      an attacker sends a few large bodies at the same time, and the process is ended
    warning upload-open: anybody may send very large bodies, as often as he likes;
      an attacker fills memory and disk
    """
)
DOCS, METRICS, DEVELOPMENT, FILES, MEMORY, UPLOAD = KINDS

_DOCUMENTS = ("docs", "openapi.json")
_GIB = 1024**3
_MOST_MEMORY = 32 * _GIB
"""Bytes of all bodies that one process may have to hold; few machines have more."""
_LARGE_BODY = 64 * 1024 * 1024
"""Bytes from which on an upload of anybody is worth a finding."""
_MOST_FILES = 10_000
"""Files of one mounted folder that are looked at: the check must end soon, whatever lies there."""
_PRIVATE = frozenset(
    {".sqlite3", ".sqlite", ".db", ".dump", ".bak", ".key", ".p12", ".pfx", ".kdbx"}
)
"""Endings of files that no page needs."""
_OWN = frozenset({"__init__.py", "treefold.toml", "pyproject.toml", "settings.py", "hooks.py"})
"""Files of a project, which show that the folder was not made for the public."""


def check_public_exposure(deployment: Deployment) -> Iterator[Finding]:
    """Find what is open to everybody."""
    settings, sources = deployment.settings, deployment.sources
    if SPELLINGS.get(deployment.environment.get("TREEFOLD_DEV", "").strip().lower(), False):
        text = "TREEFOLD_DEV is set, and servers such as uvicorn then run in development mode"
        yield DEVELOPMENT.make_finding("environment", text, "unset TREEFOLD_DEV")
    for path in _DOCUMENTS if settings.docs else ():
        if _is_guarded(deployment, path):
            continue
        text = f"the setting docs is on, and nothing guards /{path}"
        yield DOCS.make_finding(sources.find_setting_file("docs"), text, "docs = false")
        break
    yield from _check_metrics(deployment)
    yield from _check_served_files(deployment)
    yield from _check_body_limits(deployment)


def _is_guarded(deployment: Deployment, path: str) -> bool:
    """Return True if a guard runs for a path that is no route."""
    entries = deployment.middleware_folder_entries
    below = [each for each in entries if getattr(each, "prefix", None) == (path,)]
    chain = [*deployment.non_route_middleware, *map(unwrap_scoped_entry, below)]
    return any(is_guard(entry, deployment.reader) for entry in chain)


def _check_metrics(deployment: Deployment) -> Iterator[Finding]:
    reach = deployment.network_reach
    for entry in deployment.middleware_entries:
        if not isinstance(entry, Metrics) or entry.page is None:
            continue
        file = deployment.find_middleware_file(entry)
        if covers_many_public_addresses(entry.allowed):
            text = f"{entry.page} may be read from most addresses"
            yield METRICS.make_finding(file, text, "Metrics(allowed=['10.0.0.5'])  # Prometheus")
        elif reach.peer and not reach.trusts_peer and networks_contain(entry.allowed, reach.peer):
            text = f"{entry.page} may be read from {reach.peer!r}, which is the proxy's address"
            write = f"ProxyHeaders([{reach.peer!r}])  # first in the list, before Metrics"
            yield METRICS.make_finding(file, text, write)


def _check_served_files(deployment: Deployment) -> Iterator[Finding]:
    for target in deployment.host.mounts.mount_targets if deployment.is_booted else ():
        if not isinstance(target, StaticFiles):
            continue
        folder = deployment.root / target.directory
        for path in itertools.islice(sorted(folder.rglob("*")), _MOST_FILES):
            if _is_exposed_private_file(path, folder):
                name = f"{target.directory.as_posix()}/{path.relative_to(folder).as_posix()}"
                text = f"{name} lies in a folder of public files"
                write = f"mv {name!r} .  # out of {target.directory.as_posix()}/"
                yield FILES.make_finding(name, text, write)
                break
        yield from _check_folder_databases(deployment, folder, target.directory.as_posix())


def _is_exposed_private_file(path: Path, folder: Path) -> bool:
    if any(part.startswith(".") for part in path.relative_to(folder).parts):
        return False  # it is not served
    is_named = path.suffix.lower() in _PRIVATE or path.name in _OWN
    return path.is_file() and (is_named or (path.suffix == ".pem" and _holds_private_key(path)))


def _holds_private_key(path: Path) -> bool:
    try:
        return b"PRIVATE KEY" in path.read_bytes()
    except OSError:
        return False


def _check_folder_databases(deployment: Deployment, folder: Path, shown: str) -> Iterator[Finding]:
    """Yield databases in the folder that need not exist yet."""
    for alias, url in deployment.settings.databases.items():
        scheme, _, place = url.partition(":///")
        path = Path(place.partition("?")[0])
        inside = path.resolve()  # relative to the working directory, as the databases say
        is_new = not inside.exists() and inside.is_relative_to(folder.resolve())
        if scheme == "sqlite" and place and is_new:
            text = f"database {alias!r} is written into {shown}/, a folder of public files"
            file = deployment.sources.find_setting_file("databases", alias)
            yield FILES.make_finding(file, text, f'{alias} = "sqlite:///{path.name}"')


def _check_body_limits(deployment: Deployment) -> Iterator[Finding]:
    settings = deployment.settings
    number = settings.serve.limit_concurrency or settings.limit_concurrency
    if settings.max_body * number > _MOST_MEMORY:
        gib = settings.max_body * number // _GIB
        text = f"{number} bodies of {settings.max_body} bytes are {gib} GiB in each process"
        file = deployment.sources.find_setting_file("max_body")
        yield MEMORY.make_finding(file, text, "max_body = 1048576")
    for served in deployment.loaded_routes:
        size = served.module.max_body
        if size and size >= _LARGE_BODY and not served.is_guarded and not served.is_rate_limited:
            size_text = f"{size // 1024**2} MiB from anybody"
            text = f"{served.display_name} takes {size_text}, without a limit"
            write = 'middlewares = [RateLimit("10/hour")]'
            yield UPLOAD.make_finding(served.file_path, text, write)
