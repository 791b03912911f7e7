"""The names of one application in what several share: keys and channels of Redis, and its locks.

`treefold:shop:production:session:...` is a key of the application `shop` in production. Nothing
here connects to a server; `_redis.own_redis` makes the keys.

| Process | Environment, unless the setting `environment` says otherwise |
|---|---|
| `treefold dev`, `worker --dev`, `Application(dev=True)` | `development` |
| a test run: pytest with the plugin, or an application of a `TestClient` | `test-` and a number |
| `serve`, `worker`, `shell`, scripts, another server | `production` |

A test run keeps its number also where the setting names an environment: a variable that is meant
for a deployment must not lead tests to its sessions.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from treefold_http._runtime.boot_report import TreefoldError
from treefold_http._runtime.settings import Settings, read_project_name

TEST_RUN = "TREEFOLD_TEST_RUN"
"""The variable that the pytest plugin sets, for this process and those that it starts."""

_MAX_NAME = 64
"""Characters of a name in a key; a longer one is cut, and gets a part of its digest."""
_DIGEST = 8
"""Hexadecimal digits of that part."""
_process_run = f"test-{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class NameSpace:
    """The names of one application in one environment.

    Attributes:
        name, environment: as in the settings, or their defaults.
        is_test: True in a test run.
        is_folder: True if the name is that of a folder, which the next release may not have.
        secrets: sign what its processes tell each other, the newest first.
        databases: addresses of its database, without logins; any of them tells it apart.
        own: begins every name that this application alone uses.
        shared: begins names that all applications of the environment use, if they ask for it.
    """

    name: str
    environment: str
    is_test: bool = field(default=False, compare=False)
    is_folder: bool = field(default=False, compare=False)
    secrets: tuple[str, ...] = field(default=(), compare=False, repr=False)
    databases: tuple[str, ...] = field(default=(), compare=False)
    own: str = field(init=False, compare=False)
    shared: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "own", f"treefold:{self.name}:{self.environment}:")
        object.__setattr__(self, "shared", f"treefold-shared:{self.environment}:")

    @classmethod
    def from_settings(
        cls, settings: Settings, root: Path, *, dev: bool = False, is_test: bool = False
    ) -> NameSpace:
        """Return the names of an application.

        Args:
            root: its root folder.
            dev: True in development.
            is_test: True for an application that a test client calls.
        """
        name = settings.name or read_project_name(root)
        run = os.environ.get(TEST_RUN) or (_process_run if is_test else None)
        environment = settings.environment
        if run is not None:
            environment = f"{run}.{environment}" if environment else run
        newest = () if settings.secret_key is None else (settings.secret_key,)
        return cls(
            _escape_and_shorten_name(name or root.resolve().name),
            environment or ("development" if dev else "production"),
            is_test=run is not None,
            is_folder=name is None,
            secrets=(*newest, *settings.secret_key_fallbacks),
            databases=_collect_database_addresses(settings),
        )


def load_project_namespace() -> NameSpace:
    """Return the names of the project of this process, for a script without an application.

    Raises:
        TreefoldError: neither `TREEFOLD_APP_DIR` nor the working directory is a project.
    """
    settings, root = load_project_settings(), _read_app_dir_or_cwd()
    if settings is None:
        raise TreefoldError(
            f"Names in Redis must belong to an application, got none in {str(root)!r}; make one"
            " first with Application(folder), or set TREEFOLD_APP_DIR"
        )
    return NameSpace.from_settings(settings, root)


def load_project_settings() -> Settings | None:
    """Return the settings of the project of this process; None where there is no project.

    Raises:
        SettingsError: they cannot be read.
    """
    root = _read_app_dir_or_cwd()
    return Settings.load(root) if (root / "Api").is_dir() else None


def _read_app_dir_or_cwd() -> Path:
    return Path(os.environ.get("TREEFOLD_APP_DIR", ".")).absolute()


def _escape_and_shorten_name(text: str) -> str:
    """Return a text without colons and the signs of patterns, different for different texts."""
    name = quote(text, safe="") or "root"
    if len(name) <= _MAX_NAME:
        return name
    # of the whole text, so that two long names with one beginning stay apart
    suffix = f"-{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]}"
    return f"{name[: _MAX_NAME - len(suffix)]}{suffix}"


def _collect_database_addresses(settings: Settings) -> tuple[str, ...]:
    """Return the addresses of the database `default`, or without one of all of them together."""
    addresses = dict(settings.databases)
    chosen = [addresses["default"]] if "default" in addresses else sorted(addresses.values())
    own = " ".join(map(_normalize_database_address, chosen))
    return (own, *settings.same_databases) if own else settings.same_databases


def _normalize_database_address(address: str) -> str:
    """Return `host:port/name` of a server, or the path of a file."""
    scheme, _, rest = address.partition("://")
    if scheme.startswith("sqlite"):
        path = rest.partition("?")[0].removeprefix("/")
        return path if path.startswith(":") or not path else str(Path(path).absolute())
    try:
        parts = urlsplit(address)
        return f"{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path}"
    except ValueError:  # the database reports it
        return scheme
