"""The checks of `doctor`: one function for each question, which yields findings.

Reads metadata, settings, names in the tree and one connection per server; boots the project without
serving it.
How findings are printed, and the exit code, is decided in the command.
"""

import contextlib
import dataclasses
import os
import sys
from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from treefold_cli._checks.redis_login import (
    DriverMissing,
    Unreachable,
    find_redis_urls,
    log_in_and_ping_redis,
)
from treefold_cli._console.errors import format_error_line
from treefold_cli._console.output import format_count

if TYPE_CHECKING:
    from treefold_http import Settings

OK = "ok"
WARN = "warn"
FAIL = "fail"

MINIMUM = (3, 11)
"""The oldest Python that is supported."""

SHORTEST_SECRET = 32
"""Bytes that a signing secret has at least (S-66)."""

_PREFIX = "treefold"
_EXTRAS: Mapping[str, tuple[str, ...]] = {
    "watch": ("watchfiles",),
    "postgres": ("asyncpg",),
    "jobs": ("pgqueuer",),
    "files": ("python-multipart",),
    "redis": ("redis",),
    "pydantic": ("pydantic",),
    "fast": ("uvloop", "httptools", "msgspec"),
    "argon2": ("argon2-cffi",),
    "jwt": ("pyjwt", "cryptography"),
    "compress": ("brotli", "zstandard"),
    "metrics": ("prometheus-client",),
    "tracing": ("opentelemetry-api",),
    "test": ("httpx",),
}
_FOR_DEVELOPMENT = ("test",)
"""Extras that a server has no use for: their absence is no finding."""
_KNOWN_VARIABLES = frozenset(
    {
        *("TREEFOLD_APP_DIR", "TREEFOLD_DEV", "TREEFOLD_TEST_RUN"),
        *("TREEFOLD_DATABASE_URL", "TREEFOLD_TEST_DATABASE_URL", "TREEFOLD_CACHE_URL"),
    }
)
_FOLDERS = ("Api", "Middleware", "Models", "Services", "Tests", "Utils")
_FILES = ("hooks.py", "providers.py", "extensions.py", "settings.py")


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer.

    Attributes:
        status: `ok`, `warn` or `fail`.
        topic: the subject of the check.
        text: the result.
        advice: the remedy; empty if there is nothing to do.
    """

    status: str
    topic: str
    text: str
    advice: str = ""


def check_python_version() -> Iterator[Finding]:
    """Look at the version of Python."""
    version = ".".join(map(str, sys.version_info[:3]))
    old = sys.version_info < MINIMUM
    advice = "install Python 3.11 or newer" if old else ""
    yield Finding(FAIL if old else OK, "python", f"{version} at {sys.executable}", advice)


def check_framework_packages() -> Iterator[Finding]:
    """Check every installed package of the framework, and the requirements of each."""
    found = {dist.name: dist for dist in distributions()}
    ours = {n: found[n] for n in found if n == _PREFIX or n.startswith(f"{_PREFIX}-")}
    for name in sorted(ours):
        wrong = list(_find_unmet_requirements(ours[name]))
        for text in wrong:
            yield Finding(FAIL, "packages", f"{name} {ours[name].version} {text}", _UPGRADE)
        if not wrong:
            yield Finding(OK, "packages", f"{name} {ours[name].version}")


_UPGRADE = "pip install --upgrade treefold"


def _find_unmet_requirements(dist: Distribution) -> Iterator[str]:
    for text in dist.requires or ():
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            yield f"has metadata that cannot be read: {text!r}"
            continue
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        if (installed := _installed_version(wanted.name)) is None:
            yield f"requires {wanted.name}, which is not installed"
        elif not wanted.specifier.contains(installed, prereleases=True):
            yield f"requires {wanted.name}{wanted.specifier}, but {installed} is installed"


def _installed_version(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


def check_extras(used_auth_names: Mapping[str, str]) -> Iterator[Finding]:
    """Yield which optional dependencies are installed; a missing one fails if the project uses it.

    Args:
        used_auth_names: names of `treefold.auth` that the project uses, and where.
    """
    for extra, names in _EXTRAS.items():
        missing = [name for name in names if _installed_version(name) is None]
        if not missing:
            shown = ", ".join(f"{name} {_installed_version(name)}" for name in names)
            yield Finding(OK, "extras", f"{extra}: {shown}")
            continue
        if extra in _FOR_DEVELOPMENT:
            continue
        status, why = _classify_missing_extra(extra, used_auth_names)
        install = f"pip install 'treefold[{extra}]'"
        yield Finding(status, "extras", f"{extra}: not installed{why}", install)


_HASHING = ("hash_password", "ahash_password", "verify_password", "averify_password")


def _classify_missing_extra(extra: str, used: Mapping[str, str]) -> tuple[str, str]:
    """Return status and text for a missing extra: a failure or warning if the project needs it."""
    if extra == "jwt" and "jwt" in used:
        return FAIL, f", and {used['jwt']} uses jwt"
    hashing = [name for name in _HASHING if name in used]
    if extra == "argon2" and hashing:
        name = hashing[0]
        return WARN, f": {name} of {used[name]} uses scrypt, and verifies no hash of argon2"
    return OK, ""


def check_layout(root: Path) -> Iterator[Finding]:
    """Look at the folders and files of the project, by name only."""
    names = {entry.name for entry in root.iterdir()}
    for wanted in (*_FOLDERS, *_FILES):
        for name in sorted(names - {wanted}):
            if name.lower() == wanted.lower():
                yield Finding(WARN, "layout", f"{name!r} is not read", f"rename it to {wanted!r}")
    if "Api" not in names:
        text = f"there is no folder 'Api' in {os.fspath(root)!r}"
        yield Finding(FAIL, "layout", text, "name the project with --app-dir, or 'treefold new'")
        return
    yield from _check_route_table(root / "Api")


def _check_route_table(api: Path) -> Iterator[Finding]:
    from treefold_router import RouterError, RouteTable

    try:
        table = RouteTable.scan(api)
    except RouterError as error:
        yield Finding(FAIL, "layout", str(error))
        return
    versions = ", ".join(table.versions) or "no version"
    found = f"{format_count(len(table.routes), 'route')} in {versions}"
    if not table.routes:
        yield Finding(WARN, "layout", found, "make one with 'treefold create v1/health get'")
    else:
        yield Finding(OK, "layout", found)
    if table.skipped or table.duplicates:
        skipped = format_count(len(table.skipped), "file")
        twice = format_count(len(table.duplicates), "route")
        text = f"{skipped} skipped, {twice} defined twice"
        yield Finding(WARN, "layout", text, "see 'treefold check'")


def read_settings_with_findings(root: Path) -> "tuple[Settings | None, list[Finding]]":
    """Read the settings as the application does.

    Returns:
        The settings, None where they cannot be read, and the findings.
    """
    from treefold_http import Settings, SettingsError

    settable = {f"TREEFOLD_{name.upper()}" for name in Settings.__slots__}
    settable -= {"TREEFOLD_APP", "TREEFOLD_SERVE", "TREEFOLD_SILENCED"}
    settable |= {f"TREEFOLD_SERVE_{name.upper()}" for name in Settings().serve.__slots__}
    found: list[Finding] = []
    try:
        found += _find_unknown_variables(settable, Settings.read_variables(root))
        read = Settings.load(root)
    except SettingsError as error:
        return None, [Finding(FAIL, "settings", str(error)), *found]
    files = ("pyproject.toml", "treefold.toml", ".env")
    sources = [name for name in files if (root / name).is_file()]
    text = f"read from {', '.join(sources)}" if sources else "defaults"
    return read, [Finding(OK, "settings", text), *found]


def _find_unknown_variables(settable: set[str], variables: Collection[str]) -> Iterator[Finding]:
    import difflib

    known = settable | _KNOWN_VARIABLES
    for name in sorted(variables):
        if not name.startswith("TREEFOLD_") or name in known or _is_secret_name(name):
            continue
        if name.startswith("TREEFOLD_APP__"):  # the boot compares these with their model
            continue
        near = difflib.get_close_matches(name, known, 1)
        advice = f"did you mean {near[0]}?" if near else "unset it"
        yield Finding(WARN, "settings", f"variable {name} means nothing", advice)


def check_secret_lengths(settings: "Settings | None") -> Iterator[Finding]:
    """Look at the length of signing secrets in environment and settings; values stay unseen."""
    for name in sorted(filter(_is_secret_name, os.environ)):
        length = len(os.environ[name].encode(errors="surrogateescape"))
        if length < SHORTEST_SECRET:
            text = f"{name} has {length} bytes, fewer than {SHORTEST_SECRET}"
            # The framework signs with its own secrets; another program may need a short one.
            ours = name == "SECRET_KEY" or name.startswith("TREEFOLD_")
            yield Finding(FAIL if ours else WARN, "secrets", text, _NEW_SECRET)
        else:
            yield Finding(OK, "secrets", f"{name} has {length} bytes")
    if settings is None:
        return
    of_files = [] if "TREEFOLD_SECRET_KEY" in os.environ else [("secret_key", settings.secret_key)]
    of_files += [("secret_key_fallbacks", secret) for secret in settings.secret_key_fallbacks]
    for name, secret in of_files:
        if secret is not None and (length := len(secret.encode())) < SHORTEST_SECRET:
            text = f"setting {name} has {length} bytes, fewer than {SHORTEST_SECRET}"
            yield Finding(FAIL, "secrets", text, _NEW_SECRET)


_NEW_SECRET = "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"  # noqa: S105 - advice


def _is_secret_name(name: str) -> bool:
    words = name.upper().split("_")
    return words[-1] == "SECRET" or words[-2:] in (["SECRET", "KEY"], ["SIGNING", "KEY"])


def check_extensions(root: Path, settings: "Settings") -> Iterator[Finding]:
    """Ask every extension of the project if it is ready, above all databases.

    Args:
        root: the project.
        settings: its settings.
    """
    import asyncio

    from treefold_cli._checks.pending import load_models_and_find_pending
    from treefold_http import Application, TreefoldError
    from treefold_http.extensions import install, readiness

    failures: list[Finding] = []
    app = Application(root, settings=settings)
    app.role = "command"
    install(app, lambda name, error: failures.append(Finding(FAIL, name, format_error_line(error))))
    checks = asyncio.run(readiness(app, timeout=_LONGEST))
    for check in checks:
        text = f"{check.name}: {check.text}"
        yield Finding(OK if check.ok else FAIL, check.topic, text, check.advice)
    if all(check.ok for check in checks):  # otherwise the same fault is reported twice
        yield from failures
        if not failures:
            try:
                for missing in load_models_and_find_pending(app):
                    yield Finding(WARN, "pending", missing.text, missing.advice)
            except TreefoldError as error:
                yield Finding(FAIL, "models", format_error_line(error))


def check_by_booting(root: Path, settings: "Settings") -> Iterator[Finding]:
    """Boot the project without serving it; report broken files.

    Args:
        root: the project.
        settings: its settings.
    """
    import asyncio

    from treefold_cli._checks.broken_files import format_broken_path
    from treefold_cli._checks.later_mounts import describe_unserved_prefixes
    from treefold_http import Application, BootError, TreefoldError
    from treefold_http.extensions import release
    from treefold_router import RouterError, RouteTable

    try:
        table = RouteTable.scan(root / "Api")
    except RouterError:
        return  # `layout` reports the missing folder
    app = Application(root, settings=dataclasses.replace(settings, log_level="CRITICAL"))
    app.role = "command"
    try:
        # Output of modules goes to standard error; an exception becomes a finding.
        with contextlib.redirect_stdout(sys.stderr), _preserve_log_level():
            app.boot()
        report = app.report
        for message in describe_unserved_prefixes(app):
            yield Finding(FAIL, "boot", f"Middleware/__init__.py: {message}")
    except TreefoldError as error:
        report = error.report if isinstance(error, BootError) else None
        if report is None:
            yield Finding(FAIL, "boot", format_error_line(error))
            return
    finally:
        asyncio.run(release(app))
    for broken in report.broken:
        # Other checks ask the extensions and import the models.
        if broken.file == "settings":
            yield Finding(FAIL, "settings", broken.error)
        elif broken.file.endswith(".py") and not broken.file.startswith("Models"):
            yield Finding(FAIL, "boot", f"{format_broken_path(broken, table)}: {broken.error}")


@contextlib.contextmanager
def _preserve_log_level() -> Generator[None, None, None]:
    """Restore the level of the framework's log after a block."""
    from treefold_logging import get_logger

    log = get_logger()
    level = log.level
    try:
        yield
    finally:
        log.setLevel(level)


_LONGEST = 10.0
"""Seconds for all extensions together; each limits its own questions."""


def check_redis_connections(settings: "Settings | None") -> Iterator[Finding]:
    """Check the connection to each Redis of environment and settings, once per server."""
    for name, url in find_redis_urls(settings):
        try:
            yield Finding(OK, "redis", f"{name} at {log_in_and_ping_redis(url)}")
        except Unreachable as error:
            # Without the driver, the project uses no Redis: the variable may be another program's.
            status = WARN if isinstance(error, DriverMissing) else FAIL
            yield Finding(status, "redis", f"{name}: {error}", error.advice)
