"""Settings: where they come from, which source wins, what is refused, what is never shown."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from treefold_http import Settings, SettingsError
from treefold_http._runtime.contract_settings import ContractSettings
from treefold_http._runtime.serve_settings import ServeSettings

FULL: dict[str, Any] = {
    "name": "shop",
    "environment": "staging",
    "same_databases": ("10.0.0.5:6432/shop",),
    "default_version": "latest",
    "docs": True,
    "health": True,
    "root_path": "/api",
    "auto_head": True,
    "auto_options": True,
    "log_format": "json",
    "log_level": "DEBUG",
    "sensitive_words": ("plate", "kundennummer"),
    "usage": True,
    "response_model": True,
    "max_body": 5,
    "limit_concurrency": 7,
    "worker_threads": 9,
    "job_log_days": 3,
    "grace": 1.5,
    "startup_timeout": 2.0,
    "ws_allowed_origins": ("https://a.example",),
    "watch": ("../lib",),
    "watch_include": ("*.html",),
    "secret_key": "s" * 32,
    "secret_key_fallbacks": ("t" * 32,),
    "redis_url": "redis://h",
    "databases": {"default": "sqlite:///x"},
    "caches": {"default": "memory://"},
    "test_databases": {"default": "sqlite:///y"},
    "installed_extensions": False,
    "app": {"shop_name": "x"},
    "silenced": {"hosts": "the proxy knows them"},
    "contract": ContractSettings(auto=True, severity={"field-removed": "warning"}),
    "serve": ServeSettings(send_timeout=30.0, send_rate=0),
}

TOML = """
name = "shop"
environment = "staging"
same_databases = ["10.0.0.5:6432/shop"]
default_version = "latest"
docs = true
health = true
root_path = "/api"
auto_head = true
auto_options = true
log_format = "json"
log_level = "DEBUG"
sensitive_words = ["plate", "kundennummer"]
usage = true
response_model = true
max_body = 5
limit_concurrency = 7
worker_threads = 9
job_log_days = 3
grace = 1.5
startup_timeout = 2
ws_allowed_origins = ["https://a.example"]
watch = ["../lib"]
watch_include = ["*.html"]
secret_key = "ssssssssssssssssssssssssssssssss"
secret_key_fallbacks = ["tttttttttttttttttttttttttttttttt"]
redis_url = "redis://h"
installed_extensions = false

[databases]
default = "sqlite:///x"

[caches]
default = "memory://"

[test.databases]
default = "sqlite:///y"

[app]
shop_name = "x"

[silenced]
hosts = "the proxy knows them"

[contract]
auto = true

[contract.severity]
field-removed = "warning"

[serve]
send_timeout = 30
send_rate = 0
"""


def values(settings: Settings) -> dict[str, Any]:
    found = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    tables = ("databases", "test_databases", "caches", "app", "silenced")
    return found | {name: dict(getattr(settings, name)) for name in tables}


def test_without_any_source_the_defaults_hold(tmp_path: Path) -> None:
    assert Settings.load(tmp_path) == Settings()
    assert values(Settings()) == {
        "name": None,
        "environment": None,
        "same_databases": (),
        "default_version": None,
        "docs": None,
        "health": False,
        "root_path": "",
        "auto_head": False,
        "auto_options": False,
        "log_format": "text",
        "log_level": "INFO",
        "sensitive_words": (),
        "usage": False,
        "response_model": False,
        "max_body": 1024 * 1024,
        "limit_concurrency": 1000,
        "worker_threads": 40,
        "job_log_days": 30,
        "grace": 20.0,
        "startup_timeout": 60.0,
        "ws_allowed_origins": (),
        "watch": (),
        "watch_include": (),
        "secret_key": None,
        "secret_key_fallbacks": (),
        "redis_url": None,
        "databases": {},
        "caches": {},
        "test_databases": {},
        "installed_extensions": None,
        "app": {},
        "silenced": {},
        "contract": ContractSettings(),
        "serve": ServeSettings(send_timeout=60.0, send_rate=500),
    }


def test_every_setting_is_read_from_treefold_toml(tmp_path: Path) -> None:
    (tmp_path / "treefold.toml").write_text(TOML)

    assert values(Settings.load(tmp_path)) == FULL


def test_every_setting_is_read_from_pyproject(tmp_path: Path) -> None:
    text = TOML.replace("[databases]", "[tool.treefold.databases]")
    text = text.replace("[caches]", "[tool.treefold.caches]")
    text = text.replace("[contract]", "[tool.treefold.contract]")
    text = text.replace("[contract.severity]", "[tool.treefold.contract.severity]")
    text = text.replace("[serve]", "[tool.treefold.serve]")
    text = text.replace("[app]", "[tool.treefold.app]")
    text = text.replace("[silenced]", "[tool.treefold.silenced]")
    text = text.replace("[test.databases]", "[tool.treefold.test.databases]")
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname = 'x'\n[tool.treefold]\n{text}")

    assert values(Settings.load(tmp_path)) == FULL


def test_every_setting_is_read_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "NAME": "shop",
        "ENVIRONMENT": "staging",
        "SAME_DATABASES": "10.0.0.5:6432/shop",
        "DEFAULT_VERSION": "latest",
        "DOCS": "on",
        "HEALTH": "yes",
        "ROOT_PATH": "/api",
        "AUTO_HEAD": "True",
        "AUTO_OPTIONS": " 1 ",
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "DEBUG",
        "SENSITIVE_WORDS": "plate, kundennummer",
        "USAGE": "true",
        "RESPONSE_MODEL": "true",
        "MAX_BODY": "5",
        "LIMIT_CONCURRENCY": "7",
        "WORKER_THREADS": "9",
        "JOB_LOG_DAYS": "3",
        "GRACE": "1.5",
        "STARTUP_TIMEOUT": "2",
        "WS_ALLOWED_ORIGINS": " https://a.example, ",
        "WATCH": "../lib",
        "WATCH_INCLUDE": "*.html",
        "SECRET_KEY": "s" * 32,
        "SECRET_KEY_FALLBACKS": "t" * 32,
        "REDIS_URL": "redis://h",
        "DATABASE_URL": "sqlite:///x",
        "CACHE_URL": "memory://",
        "TEST_DATABASE_URL": "sqlite:///y",
        "INSTALLED_EXTENSIONS": "off",
        "APP__SHOP_NAME": "x",
        "SERVE_SEND_TIMEOUT": "30",
        "SERVE_SEND_RATE": "0",
    }.items():
        monkeypatch.setenv(f"TREEFOLD_{name}", text)

    # reasons, and what a lock is held to, are for readers of the project: in its files only
    assert values(Settings.load(tmp_path)) == FULL | {
        "silenced": {},
        "contract": ContractSettings(),
    }


def test_each_source_wins_over_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.treefold]\nmax_body = 1\ngrace = 1\nstartup_timeout = 1\nauto_head = true\n"
    )
    (tmp_path / "treefold.toml").write_text("max_body = 2\ngrace = 2\nstartup_timeout = 2\n")
    monkeypatch.setenv("TREEFOLD_MAX_BODY", "3")
    monkeypatch.setenv("TREEFOLD_GRACE", "3")
    settings = Settings.load(tmp_path, max_body=4)

    assert settings.auto_head
    assert (settings.startup_timeout, settings.grace, settings.max_body) == (2.0, 3.0, 4)


def test_an_argument_of_none_is_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREEFOLD_DEFAULT_VERSION", "v2")

    assert Settings.load(tmp_path, default_version=None).default_version == "v2"


def test_the_database_of_the_environment_stands_beside_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "treefold.toml").write_text("[databases]\ndefault = 'a'\nother = 'b'\n")
    monkeypatch.setenv("TREEFOLD_DATABASE_URL", "c")

    assert dict(Settings.load(tmp_path).databases) == {"default": "c", "other": "b"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "test = 1\n",
            "'test' in treefold.toml must have one table, databases; write [test.databases]",
        ),
        (
            "[test]\nspeed = 2\n",
            "'test' in treefold.toml must have one table, databases; write [test.databases]",
        ),
        (
            "[test.databases]\ndefault = 5\n",
            'Setting test_databases in treefold.toml must be a table of alias = "url"',
        ),
    ],
)
def test_a_table_of_tests_holds_addresses_only(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "treefold.toml").write_text(text)

    with pytest.raises(SettingsError) as refused:
        Settings.load(tmp_path)
    assert str(refused.value) == message


def test_names_of_other_programs_in_the_environment_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEFOLD_APP_DIR", "/x")
    monkeypatch.setenv("TREEFOLD_SOMETHING", "y")

    assert Settings.load(tmp_path) == Settings()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("max_bdy", "did you mean 'max_body'?"),
        ("default-version", "did you mean 'default_version'?"),
        ("database", "did you mean 'databases'?"),
        ("zzz", "known settings: name, environment, default_version,"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(
    tmp_path: Path, name: str, near: str
) -> None:
    (tmp_path / "treefold.toml").write_text(f'"{name}" = 1\n')
    with pytest.raises(SettingsError) as caught:
        Settings.load(tmp_path)

    assert str(caught.value).startswith(f"Unknown setting {name!r} in treefold.toml; {near}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("docs", "'yes'"),
        ("docs", "1"),
        ("auto_head", "'true'"),
        ("max_body", "'5'"),
        ("max_body", "1.5"),
        ("max_body", "true"),
        ("grace", "'5'"),
        ("grace", "true"),
        ("log_format", "'xml'"),
        ("log_format", "5"),
        ("log_level", "5"),
        ("default_version", "5"),
        ("ws_allowed_origins", "'https://a.example'"),
        ("ws_allowed_origins", "[5]"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_source(
    tmp_path: Path, name: str, value: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.treefold]\n{name} = {value}\n")
    with pytest.raises(SettingsError, match=rf"^Setting {name} in pyproject.toml must be .*, got "):
        Settings.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("log_format", "'xml'", "'text' or 'json'"),
        ("ws_allowed_origins", "'https://a.example'", "a list of strings"),
        ("max_body", "'5'", "an integer"),
        ("max_body", "true", "an integer"),
        ("grace", "'5'", "a number"),
        ("log_level", "[5]", "a string"),
        ("default_version", "5", "a string"),
        ("docs", "'yes'", "true or false"),
        ("redis_url", "5", "a string"),
    ],
)
def test_a_value_that_is_refused_is_told_what_it_may_be(
    tmp_path: Path, name: str, value: str, words: str
) -> None:
    (tmp_path / "treefold.toml").write_text(f"{name} = {value}\n")
    with pytest.raises(SettingsError) as caught:
        Settings.load(tmp_path)

    shown = "a value of a wrong type" if name == "redis_url" else value
    assert str(caught.value) == f"Setting {name} in treefold.toml must be {words}, got {shown}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DOCS", "maybe"),
        ("AUTO_HEAD", ""),
        ("MAX_BODY", "5MB"),
        ("MAX_BODY", "1.5"),
        ("MAX_BODY", ""),
        ("GRACE", "soon"),
        ("LOG_FORMAT", "xml"),
    ],
)
def test_a_text_of_another_type_is_refused_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(f"TREEFOLD_{name}", text)
    expected = rf"^Setting {name.lower()} in TREEFOLD_{name} must be .*, got {text!r}$"
    with pytest.raises(SettingsError, match=expected):
        Settings.load(tmp_path)


def test_each_source_of_a_server_setting_wins_over_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.treefold.serve]\nsend_timeout = 1\nsend_rate = 1\n"
    )
    (tmp_path / "treefold.toml").write_text("[serve]\nsend_timeout = 2\n")
    assert Settings.load(tmp_path).serve == ServeSettings(send_timeout=2.0, send_rate=1)

    monkeypatch.setenv("TREEFOLD_SERVE_SEND_RATE", "3")
    assert Settings.load(tmp_path).serve == ServeSettings(send_timeout=2.0, send_rate=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("serve = 5", "'serve' in treefold.toml must be a table; write [serve]"),
        (
            "[serve]\nsend_time = 5",
            "Unknown setting 'send_time' in [serve] of treefold.toml; did you mean 'send_timeout'?",
        ),
        (
            "[serve]\nsend_timeout = '5'",
            "Setting send_timeout in [serve] of treefold.toml must be a number, got '5'",
        ),
        (
            "[serve]\nsend_timeout = 0",
            "Setting serve.send_timeout must be a number above 0, got 0.0",
        ),
        (
            "[serve]\nsend_timeout = nan",
            "Setting serve.send_timeout must be a number above 0, got nan",
        ),
        ("[serve]\nsend_rate = -1", "Setting serve.send_rate must be a number from 0, got -1"),
    ],
)
def test_a_wrong_server_setting_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "treefold.toml").write_text(text + "\n")

    with pytest.raises(SettingsError) as refused:
        Settings.load(tmp_path)
    assert str(refused.value) == message


@pytest.mark.parametrize("text", ["nan", "inf", "-1"])
@pytest.mark.parametrize("name", ["GRACE", "STARTUP_TIMEOUT"])
def test_a_time_is_finite_and_not_negative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(f"TREEFOLD_{name}", text)
    with pytest.raises(SettingsError, match=f"{name.lower()}.*{text}"):
        Settings.load(tmp_path)


def test_a_size_is_not_negative() -> None:
    with pytest.raises(SettingsError, match=r"max_body.*-1"):
        Settings.from_mapping({"max_body": -1})
    with pytest.raises(
        SettingsError, match=r"^Setting limit_concurrency must be a number from 1, got 0$"
    ):
        Settings.from_mapping({"limit_concurrency": 0})


def test_a_log_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"log_level.*LOUD"):
        Settings.from_mapping({"log_level": "LOUD"})


@pytest.mark.parametrize("version", ["", "1", "V1", "v", "v1.2", "newest", "v1\n", "v٣"])
def test_a_default_version_is_latest_or_a_version_name(version: str) -> None:
    expected = "^Setting default_version must be 'latest' or a version such as 'v1', got "
    with pytest.raises(SettingsError, match=expected + re.escape(repr(version)) + "$"):
        Settings(default_version=version)


@pytest.mark.parametrize("version", ["latest", "v1", "v10", "v01"])
def test_latest_and_version_names_are_default_versions(version: str) -> None:
    assert Settings(default_version=version).default_version == version


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("treefold.toml", "max_body = "),
        ("treefold.toml", "a = 1\na = 2"),
        ("pyproject.toml", "\x00"),
        ("pyproject.toml", "[tool.treefold"),
    ],
)
def test_a_file_that_is_no_toml_is_refused_by_name(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(SettingsError, match=f"^Cannot read {file}: .*; correct the file$"):
        Settings.load(tmp_path)


def test_a_file_that_is_no_utf8_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "treefold.toml").write_bytes(b'log_level = "\xff"\n')
    with pytest.raises(SettingsError, match=r"^Cannot read treefold\.toml"):
        Settings.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "key"),
    [("tool = 5", "tool"), ("[tool]\ntreefold = 'x'", "treefold"), ("tool = []", "tool")],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(
        SettingsError, match=rf"^'{key}' in pyproject.toml must be a table; write \[tool"
    ):
        Settings.load(tmp_path)


@pytest.mark.parametrize("text", ["[project]\nname = 'x'\n", "", "[tool.other]\na = 1\n"])
def test_a_pyproject_without_our_table_changes_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)

    assert Settings.load(tmp_path) == Settings()


@pytest.mark.parametrize(
    "databases", ["postgresql://u:s3cret@h/d", {"default": ["s3cret"]}, {"default": 5}, ["s3cret"]]
)
def test_databases_of_another_type_are_refused_without_being_shown(databases: Any) -> None:
    with pytest.raises(SettingsError, match="databases") as caught:
        Settings.from_mapping({"databases": databases})

    assert "s3cret" not in str(caught.value)


def test_the_repr_never_shows_a_database_url() -> None:
    settings = Settings(databases={"default": "postgresql://u:s3cret@h/d", "other": "s3cret"})

    assert "s3cret" not in repr(settings)
    assert "s3cret" not in f"{settings}"
    assert "'default': '***'" in repr(settings)
    assert "max_body=1048576" in repr(settings)


def test_an_error_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "treefold.toml").write_text("zzz = '''a\nb'''\n")
    with pytest.raises(SettingsError) as caught:
        Settings.load(tmp_path)

    assert "\n" not in str(caught.value)


def test_settings_cannot_be_changed() -> None:
    settings: Any = Settings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.max_body = 1


def test_sensitive_words_need_a_letter() -> None:
    assert Settings(sensitive_words=("plate",)).sensitive_words == ("plate",)
    with pytest.raises(SettingsError, match=r"sensitive_words must list words .*, got '-'"):
        Settings(sensitive_words=("-",))


def test_a_cache_named_redis_is_on_the_common_server() -> None:
    url = "redis://:hunter2@host/1?socket_timeout=5"
    caches = {"a": "redis", "b": "redis?shared=true", "c": "memory://", "d": "redis://other"}
    made = Settings.from_mapping({"redis_url": url, "caches": caches})
    assert made.caches == {"a": url, "b": f"{url}&shared=true", "c": "memory://"} | {
        "d": "redis://other"
    }
    assert "hunter2" not in repr(made)
    assert Settings(redis_url="redis://h", caches={"a": "redis?shared=true"}).caches == {
        "a": "redis://h?shared=true"
    }
    with pytest.raises(SettingsError, match=r"Setting caches\.a is 'redis', .* TREEFOLD_REDIS_URL"):
        Settings.from_mapping({"caches": {"a": "redis"}})


@pytest.mark.parametrize(("name", "value"), [("worker_threads", 0), ("job_log_days", -1)])
def test_numbers_below_the_least_are_refused(name: str, value: int) -> None:
    with pytest.raises(SettingsError, match=f"Setting {name} must be a number from"):
        Settings.from_mapping({name: value})
