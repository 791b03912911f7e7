"""The names of an application in Redis: project, environment, test run."""

from __future__ import annotations

from pathlib import Path

import pytest

from treefold_http import Application, Settings, SettingsError, TreefoldError, create_app
from treefold_http._runtime.name_space import TEST_RUN, NameSpace, load_project_namespace


@pytest.fixture(autouse=True)
def _no_test_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TEST_RUN, raising=False)


def project(folder: Path) -> Path:
    (folder / "Api/v1/Ping").mkdir(parents=True)
    (folder / "Api/v1/Ping/Get.py").write_text("def handler():\n    return {}\n")
    return folder


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({}, "corner"),
        ({"pyproject.toml": '[project]\nname = "shop"'}, "shop"),
        ({"pyproject.toml": "[tool.x]\ny = 1"}, "corner"),
        ({"pyproject.toml": '[project]\nname = "shop"', "treefold.toml": 'name = "mart"'}, "mart"),
        ({"pyproject.toml": '[project]\nname = "a"\n[tool.treefold]\nname = "b"'}, "b"),
    ],
)
def test_the_name_is_that_of_setting_project_or_folder(
    tmp_path: Path, files: dict[str, str], name: str
) -> None:
    root = tmp_path / "corner"
    root.mkdir()
    for file, text in files.items():
        (root / file).write_text(text)

    assert NameSpace.from_settings(Settings.load(root), root).own == f"treefold:{name}:production:"


@pytest.mark.parametrize(
    ("folder", "name"),
    [("a b", "a%20b"), ("a:b", "a%3Ab"), ("a*", "a%2A"), ("ü", "%C3%BC"), ("a.b-c_d", "a.b-c_d")],
)
def test_a_folder_name_has_no_colon_and_no_pattern(tmp_path: Path, folder: str, name: str) -> None:
    assert NameSpace.from_settings(Settings(), tmp_path / folder).name == name


def test_long_folder_names_stay_apart(tmp_path: Path) -> None:
    one, two = (
        NameSpace.from_settings(Settings(), tmp_path / ("x" * 80 + end)).name for end in "ab"
    )

    assert one != two
    assert len(one) == 64


@pytest.mark.parametrize("name", ["name", "environment"])
@pytest.mark.parametrize("value", ["", "a:b", "a b", "*", "x" * 65, "é"])
def test_a_setting_that_could_be_another_name_is_refused(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"Setting {name} must be 1 to 64 letters"):
        Settings.from_mapping({name: value})


@pytest.mark.parametrize(
    ("settings", "dev", "environment"),
    [
        (Settings(), False, "production"),
        (Settings(), True, "development"),
        (Settings(environment="staging"), False, "staging"),
        (Settings(environment="staging"), True, "staging"),
    ],
)
def test_the_environment_follows_dev_and_the_setting(
    tmp_path: Path, settings: Settings, dev: bool, environment: str
) -> None:
    assert Application(tmp_path, dev=dev, settings=settings).names.environment == environment


def test_the_environment_is_read_from_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEFOLD_ENVIRONMENT", "blue")

    assert Application(tmp_path, dev=True).names.environment == "blue"


def test_an_application_that_another_server_loads_is_in_production(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `uvicorn treefold.asgi:app` does."""
    monkeypatch.setenv("TREEFOLD_APP_DIR", str(tmp_path / "shop"))

    assert create_app().names.own == "treefold:shop:production:"


def test_a_test_run_stays_apart_where_a_setting_names_production(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TEST_RUN, "test-1")
    settings = Settings(environment="production")

    assert NameSpace.from_settings(settings, tmp_path).environment == "test-1.production"


def test_a_database_address_has_no_login(tmp_path: Path) -> None:
    address = "postgresql://ann:s3cret@db.internal/shop?pool_size=3"
    settings = Settings(databases={"default": address}, same_databases=("10.0.0.5:6432/shop",))

    found = NameSpace.from_settings(settings, tmp_path)

    assert found.databases == ("db.internal:5432/shop", "10.0.0.5:6432/shop")
    assert "s3cret" not in repr(found)


def test_relative_files_of_two_folders_are_two_databases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(databases={"default": "sqlite:///db.sqlite3"})
    found: list[tuple[str, ...]] = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        found.append(NameSpace.from_settings(settings, tmp_path).databases)

    assert found == [(str(tmp_path / "a/db.sqlite3"),), (str(tmp_path / "b/db.sqlite3"),)]


def test_the_secret_is_not_shown(tmp_path: Path) -> None:
    assert "s3cret" not in repr(
        NameSpace.from_settings(Settings(secret_key="s3cret" * 8), tmp_path)
    )


def test_a_script_without_an_application_has_the_names_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "shop")
    monkeypatch.chdir(root)
    assert load_project_namespace().own == "treefold:shop:production:"

    monkeypatch.chdir(tmp_path)
    with pytest.raises(TreefoldError, match=r"got none in .*; make one first with Application"):
        load_project_namespace()

    monkeypatch.setenv("TREEFOLD_APP_DIR", str(root))
    assert load_project_namespace().own == "treefold:shop:production:"
