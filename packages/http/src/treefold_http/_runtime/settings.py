"""Settings of an application: names, types and sources.

Precedence: arguments, `TREEFOLD_<NAME>` in the environment, the same in `.env`, `treefold.toml`,
`[tool.treefold]` in `pyproject.toml`. An unknown name is an error that suggests the nearest one; a
secret is never shown.
"""

from __future__ import annotations

import dataclasses
import difflib
import logging
import math
import os
import re
import secrets
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

from treefold_http._runtime.boot_report import SettingsError
from treefold_http._runtime.contract_settings import ContractSettings
from treefold_http._runtime.dotenv import read_dotenv
from treefold_http._runtime.serve_settings import SERVE_PREFIX, ServeSettings
from treefold_http._runtime.threads import LIMIT
from treefold_logging import mask

_NO_DATABASES: Mapping[str, str] = MappingProxyType({})
ADDRESS_VARIABLES = {
    "databases": "TREEFOLD_DATABASE_URL",
    "test_databases": "TREEFOLD_TEST_DATABASE_URL",
    "caches": "TREEFOLD_CACHE_URL",
}
"""Settings that map aliases to addresses, and the variable that sets their `default`."""
_SECRETS = ("secret_key", "secret_key_fallbacks", "redis_url")
"""Settings that no message shows."""
_SECTIONS: Mapping[str, type[ContractSettings] | type[ServeSettings]] = {
    "contract": ContractSettings,
    "serve": ServeSettings,
}
"""Settings that are tables with settings of their own."""
_TABLES = (*ADDRESS_VARIABLES, *_SECTIONS, "app", "silenced")
"""Settings that are tables: no variable of their name sets them."""
APP_PREFIX = "TREEFOLD_APP__"
"""Begins the variable of a setting of the project's own; two, because `TREEFOLD_APP_DIR` is one of
the framework."""
SPELLINGS = {
    **dict.fromkeys(["true", "1", "on", "yes"], True),
    **dict.fromkeys(["false", "0", "off", "no"], False),
}


_is_prefix = re.compile(r"(?!/v[0-9]+(?:/|$))(?:/(?!\.{1,2}(?:/|$))[\w.~-]+)+", re.ASCII).fullmatch
"""A version could not be told from a version of the application itself."""

_is_name = re.compile(r"[\w.-]{1,64}", re.ASCII).fullmatch
"""Names with a colon could be taken for those of another application and environment."""


class VariableText(str):
    """The text of an environment variable, which is converted to the type of its setting.

    Attributes:
        variable: the name of the variable, for messages.
    """

    __slots__ = ("variable",)
    variable: str

    @classmethod
    def from_variable(cls, text: str, variable: str) -> VariableText:
        """Return the text with the name of its variable."""
        made = cls(text)
        made.variable = variable
        return made


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """The settings that can be configured from outside the code.

    Attributes:
        name: begins every name of this application in Redis. None for the name of the project in
            `pyproject.toml`, or else that of the root folder.
        environment: the second part of these names, such as `staging`. None for `development` under
            `treefold dev` and `production` in every other process; a test run has one of its own.
        default_version: serve unversioned requests from `latest` or a fixed `vN`; off when None.
        docs: serve the docs UI and the OpenAPI documents; None follows `dev`.
        health: serve `/livez` and `/readyz`.
        root_path: the prefix that the application is served below, such as `/api`. It is cut from
            requests that have it; a proxy may have cut it already.
        auto_head: answer HEAD from `Get.py` where there is no `Head.py`.
        auto_options: answer OPTIONS from the route table where there is no `Options.py`.
        log_format: `text` or `json`.
        log_level: the least level that is written, such as `INFO`.
        sensitive_words: words of keys whose values the log masks too, such as `kundennummer`.
        usage: count the callers and query names of every route: a line of the log each hour, for
            `treefold version usage`, and metrics where `Metrics` is.
        response_model: hold every handler to its return annotation, where that can be checked; a
            handler module may say `response_model = False`.
        max_body: the most bytes of a request body, except that a multipart form may have 32 MiB; a
            handler module's `max_body` wins over both.
        limit_concurrency: the most requests that one process works on; above it the server answers
            503. Open sockets and idle connections do not count.
        grace: seconds that shutdown waits for running work.
        startup_timeout: seconds that a startup hook may take.
        ws_allowed_origins: origins besides the site's own that may open a socket.
        secret_key: signs cookies and tokens; at least 32 bytes.
        secret_key_fallbacks: former secrets whose signatures still count.
        redis_url: the Redis of `Sessions(store="redis")`, `RateLimit(redis=True)`,
            `Rooms(redis=True)` and caches whose address is `redis`.
        databases: alias to database URL, for `treefold-orm`.
        test_databases: alias to the URL of the database that tests use instead; the table
            `[test.databases]`. Without one, tests make their own.
        same_databases: other addresses of the database `default`, such as `10.0.0.5:6432/shop`, by
            which processes of this deployment reach it.
        caches: alias to address of a cache: `memory://`, a Redis URL, or `redis` for `redis_url`.
        worker_threads: the most plain functions, such as sync handlers, that run at once.
        job_log_days: how long `treefold worker` keeps the steps of jobs that have ended; 0 is for
            ever.
        contract: settings of the lock of the API; the table `[contract]`.
        serve: settings of the server `treefold serve`; the table `[serve]`.
        silenced: findings of `check --deploy` that it leaves out, each with the reason; the table
            `[silenced]`.
        app: settings of the project's own, as they are written; the table `[app]`. Their model is
            `app_settings` of `settings.py`.
        watch: folders besides the root, such as `../lib`, whose changes restart `treefold dev`.
        watch_include: patterns of further files, such as `*.html`, whose changes restart it.
        installed_extensions: look for extensions of installed distributions; None looks where the
            project has models or a `databases` setting.
    """

    name: str | None = None
    environment: str | None = None
    default_version: str | None = None
    docs: bool | None = None
    health: bool = False
    root_path: str = ""
    auto_head: bool = False
    auto_options: bool = False
    log_format: Literal["text", "json"] = "text"
    log_level: str = "INFO"
    sensitive_words: tuple[str, ...] = ()
    usage: bool = False
    response_model: bool = False
    max_body: int = 1024 * 1024
    limit_concurrency: int = 1000
    grace: float = 20.0
    startup_timeout: float = 60.0
    ws_allowed_origins: tuple[str, ...] = ()
    secret_key: str | None = None
    secret_key_fallbacks: tuple[str, ...] = ()
    redis_url: str | None = None
    databases: Mapping[str, str] = field(default_factory=lambda: _NO_DATABASES)
    test_databases: Mapping[str, str] = field(default_factory=lambda: _NO_DATABASES)
    same_databases: tuple[str, ...] = ()
    caches: Mapping[str, str] = field(default_factory=lambda: _NO_DATABASES)
    worker_threads: int = LIMIT
    job_log_days: int = 30
    contract: ContractSettings = field(default_factory=ContractSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    silenced: Mapping[str, str] = field(default_factory=lambda: _NO_DATABASES)
    app: Mapping[str, Any] = field(default_factory=lambda: _NO_DATABASES)
    watch: tuple[str, ...] = ()
    watch_include: tuple[str, ...] = ()
    installed_extensions: bool | None = None

    def __post_init__(self) -> None:
        for name in ("name", "environment"):
            value = getattr(self, name)
            if value is not None and not _is_name(value):
                raise SettingsError(
                    f"Setting {name} must be 1 to 64 letters, digits, '.', '_' or '-', got"
                    f" {value!r}"
                )
        version = self.default_version
        if version is not None and version != "latest" and not re.fullmatch("v[0-9]+", version):
            raise SettingsError(
                "Setting default_version must be 'latest' or a version such as 'v1', got"
                f" {version!r}"
            )

        if self.root_path and not _is_prefix(self.root_path):
            raise SettingsError(
                "Setting root_path must be a prefix such as '/api', without a final slash, a"
                f" version or an escape, got {self.root_path!r}"
            )
        for name, least in (("limit_concurrency", 1), ("worker_threads", 1), ("job_log_days", 0)):
            if (value := getattr(self, name)) < least:
                message = f"Setting {name} must be a number from {least}, got {value!r}"
                raise SettingsError(message)
        if any(map(_is_common_redis, self.caches.values())):
            caches = {alias: self._expand_redis(alias, at) for alias, at in self.caches.items()}
            object.__setattr__(self, "caches", caches)
        for name in ("grace", "startup_timeout", "max_body"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise SettingsError(f"Setting {name} must be a finite number from 0, got {value!r}")
        for name, reason in self.silenced.items():
            if not reason.strip():
                raise SettingsError(f"Setting silenced.{name} must be a reason, got {reason!r}")
        for word in self.sensitive_words:
            if not any(map(str.isalnum, word)):
                message = f"Setting sensitive_words must list words such as 'plate', got {word!r}"
                raise SettingsError(message)
        if self.log_level.upper() not in logging.getLevelNamesMapping():
            raise SettingsError(
                "Setting log_level must be a level such as 'INFO' or 'WARNING', got"
                f" {self.log_level!r}"
            )

    def _expand_redis(self, alias: str, address: str) -> str:
        """Return the URL for an address `redis`, with the options of the cache."""
        if not _is_common_redis(address):
            return address
        if not self.redis_url:
            raise SettingsError(
                f"Setting caches.{alias} is 'redis', the server of the setting redis_url, which is"
                " missing; set TREEFOLD_REDIS_URL"
            )
        options = address.partition("?")[2]
        joint = "&" if "?" in self.redis_url else "?"
        return f"{self.redis_url}{joint}{options}" if options else self.redis_url

    def __repr__(self) -> str:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in (*ADDRESS_VARIABLES, "app"):
            values[name] = dict.fromkeys(values[name], "***")
        for name in _SECRETS:
            values[name] = "***" if values[name] else values[name]
        shown = ", ".join(f"{name}={value!r}" for name, value in mask(values).items())
        return f"Settings({shown})"

    @classmethod
    def load(cls, app_dir: Path, **arguments: Any) -> Settings:
        """Read the settings of a project.

        Args:
            app_dir: the application root, where `treefold.toml` or `pyproject.toml` may lie.
            arguments: values that win over files and environment; None means not given.

        Raises:
            SettingsError: for an unknown name, a wrong type or a file that is not TOML.
        """
        values = _read_settings_files(app_dir)
        values.update(_read_environment_settings(cls.read_variables(app_dir), values))
        values.update({name: value for name, value in arguments.items() if value is not None})
        return cls.from_mapping(values)

    def with_secret(self) -> Settings:
        """Return these settings, with a random `secret_key` if they have none.

        For tests and tools, which boot a project without serving it to anyone.
        """
        if self.secret_key is not None:
            return self
        return dataclasses.replace(self, secret_key=secrets.token_urlsafe(48))

    @staticmethod
    def read_variables(app_dir: Path) -> Mapping[str, str]:
        """Return the variables that settings are read from: the environment, then `.env`.

        Raises:
            SettingsError: `.env` cannot be read.
        """
        return {**read_dotenv(app_dir), **os.environ}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], *, source: str = "settings") -> Settings:
        """Make settings of a mapping, each name and type checked.

        Raises:
            SettingsError: for an unknown name or a wrong type.
        """
        types = typing.get_type_hints(cls)
        checked = {k: _check_setting(k, value, types, source) for k, value in values.items()}
        return cls(**checked)


def _is_common_redis(address: str) -> bool:
    return address.partition("?")[0] == "redis"


def read_project_name(app_dir: Path) -> str | None:
    """Return the name of the project in `pyproject.toml`; None without one.

    Raises:
        SettingsError: the file cannot be read.
    """
    path = app_dir / "pyproject.toml"
    if not path.is_file():
        return None
    project: object = _read_toml(path).get("project")
    name = cast("dict[str, Any]", project).get("name") if isinstance(project, dict) else None
    return name if isinstance(name, str) and name else None


def _read_settings_files(app_dir: Path) -> dict[str, Any]:
    values: dict[str, Any] = {}
    types = typing.get_type_hints(Settings)
    for name, path in (("pyproject.toml", ("tool", "treefold")), ("treefold.toml", ())):
        if (app_dir / name).is_file():
            table = _find_table(_read_toml(app_dir / name), path, name)
            if "test" in table:
                table = _flatten_test_table(table, ".".join((*path, "test")), name)
            for section, kind in _SECTIONS.items():
                if (content := table.get(section)) is not None:
                    content = _validate_section(content, kind, ".".join((*path, section)), name)
                    values[section] = {**values.get(section, {}), **content}
            table = {key: value for key, value in table.items() if key not in _SECTIONS}
            values |= {key: _check_setting(key, value, types, name) for key, value in table.items()}
    return values


def _validate_section(table: object, kind: type, name: str, file: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise SettingsError(f"{name!r} in {file} must be a table; write [{name}]")
    types = typing.get_type_hints(kind)
    content = cast("dict[str, Any]", table)
    where = f"[{name}] of {file}"
    return {k: _check_setting(k, value, types, where) for k, value in content.items()}


def _find_table(content: dict[str, Any], path: Sequence[str], file: str) -> dict[str, Any]:
    for key in path:
        inner: object = content.get(key, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"{key!r} in {file} must be a table; write [{'.'.join(path)}]")
        content = cast("dict[str, Any]", inner)
    return content


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib  # 6 ms: not imported without a settings file

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"Cannot read {path.name}: {error}; correct the file") from error


def _flatten_test_table(settings_table: Mapping[str, Any], name: str, file: str) -> dict[str, Any]:
    """Return the settings with the table `test` in their flat form."""
    test: object = settings_table["test"]
    known = isinstance(test, dict) and not set(cast("dict[str, Any]", test)) - {"databases"}
    if not known:
        message = f"{name!r} in {file} must have one table, databases; write [{name}.databases]"
        raise SettingsError(message)
    flat = {key: value for key, value in settings_table.items() if key != "test"}
    return {**flat, **{f"test_{k}": v for k, v in cast("dict[str, Any]", test).items()}}


def _read_environment_settings(
    environment: Mapping[str, str], file_settings: Mapping[str, Any]
) -> dict[str, Any]:
    types = typing.get_type_hints(Settings)
    values: dict[str, Any] = {}
    for name in types:
        variable = f"TREEFOLD_{name.upper()}"
        if variable in environment and name not in _TABLES:
            values[name] = _parse_variable_text(environment[variable], name, types[name], variable)
    for name, variable in ADDRESS_VARIABLES.items():
        if url := environment.get(variable):
            values[name] = {**file_settings.get(name, _NO_DATABASES), "default": url}
    served = {
        name: _parse_variable_text(environment[variable], name, kind, variable)
        for name, kind in typing.get_type_hints(ServeSettings).items()
        if (variable := SERVE_PREFIX + name.upper()) in environment
    }
    if served:
        values["serve"] = {**file_settings.get("serve", {}), **served}
    own = {
        variable.removeprefix(APP_PREFIX).lower(): VariableText.from_variable(text, variable)
        for variable, text in environment.items()
        if variable.startswith(APP_PREFIX) and variable != APP_PREFIX
    }
    return {**values, "app": {**file_settings.get("app", _NO_DATABASES), **own}} if own else values


def _parse_variable_text(text: str, name: str, wanted_type: Any, variable: str) -> Any:
    kinds = _list_accepted_types(wanted_type)
    try:
        if bool in kinds:
            return SPELLINGS[text.strip().lower()]
        if int in kinds or float in kinds:
            return (int if int in kinds else float)(text)
    except (ValueError, KeyError):
        raise _make_wrong_value_error(name, text, wanted_type, variable) from None
    if tuple in kinds:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return _check_setting(name, text, {name: wanted_type}, variable)


def _list_accepted_types(annotation: Any) -> set[Any]:
    options = typing.get_args(annotation)
    if typing.get_origin(annotation) is None:
        options = (annotation,)
    if typing.get_origin(annotation) in (tuple, Mapping):
        options = (annotation,)
    return {typing.get_origin(option) or option for option in options}


def _check_setting(name: str, value: Any, types: Mapping[str, Any], source: str) -> Any:
    if name not in types:
        near = difflib.get_close_matches(name, types, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known settings: {', '.join(types)}"
        raise SettingsError(f"Unknown setting {name!r} in {source}; {hint}")
    wanted = types[name]
    if wanted is _SECTIONS.get(name):
        if isinstance(value, wanted):
            return value
        return wanted(**_validate_section(value, wanted, name, source))
    kinds = _list_accepted_types(wanted)
    if typing.get_origin(wanted) is Literal:
        good = value in typing.get_args(wanted)
    elif tuple in kinds and isinstance(value, (list, tuple)):
        value = tuple(cast("list[object]", value))
        good = all(isinstance(part, str) for part in value)
    elif Mapping in kinds:
        good = isinstance(value, Mapping) if name == "app" else _is_string_mapping(value)
    else:
        if float in kinds and type(value) is int:
            value = float(value)
        # the exact type, since `true` is an int by `isinstance`
        good = type(value) in kinds or (value is None and type(None) in kinds)
    if not good:
        raise _make_wrong_value_error(name, value, wanted, source)
    return value


def _is_string_mapping(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    items = cast("Mapping[object, object]", value).items()
    return all(isinstance(key, str) and isinstance(text, str) for key, text in items)


def _make_wrong_value_error(name: str, value: Any, wanted_type: Any, source: str) -> SettingsError:
    if name in ADDRESS_VARIABLES:  # its values carry passwords
        text = f'Setting {name} in {source} must be a table of alias = "url"'
        return SettingsError(text)
    if name == "silenced":
        return SettingsError(f'Setting silenced in {source} must be a table of finding = "reason"')
    if name == "severity":
        return SettingsError(f'Setting severity in {source} must be a table of rule = "verdict"')
    if name == "app":
        return SettingsError(f"Setting app in {source} must be a table; write [app]")
    shown_value = "a value of a wrong type" if name in _SECRETS else format_toml_value(value)
    wanted = _describe_type(wanted_type)
    return SettingsError(f"Setting {name} in {source} must be {wanted}, got {shown_value}")


def format_toml_value(value: object) -> str:
    """Return a value as it is written in a settings file, for messages."""
    if value is None:
        return "no value"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _describe_type(annotation: Any) -> str:
    """The allowed values of a type, in the words of a settings file."""
    if typing.get_origin(annotation) is Literal:
        return " or ".join(map(repr, typing.get_args(annotation)))
    kinds = _list_accepted_types(annotation)
    return next(words for kind, words in _WORDS.items() if kind in kinds)


_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    tuple: "a list of strings",
    str: "a string",
}
