"""Settings of a project's own: `[app]`, `TREEFOLD_APP__*`, their model and their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError, Settings

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

MODEL = """
    from dataclasses import dataclass, field
    from datetime import date

    @dataclass(frozen=True)
    class Mail:
        host: str
        port: int = 25

    @dataclass(frozen=True)
    class ShopSettings:
        shop_name: str
        page_size: int = 20
        is_open: bool = True
        rate: float = 1.0
        opened: date = date(2020, 1, 1)
        hosts: list[str] = field(default_factory=list)
        limits: list[int] = field(default_factory=list)
        mail: Mail = Mail("localhost")
        api_key: str = ""

    app_settings = ShopSettings
"""
HANDLER = """
    from settings import ShopSettings

    async def handler(settings: ShopSettings):
        return settings
"""
FILES = {"settings.py": MODEL, "Api/v1/Get.py": HANDLER}


def shown(ask: Ask, app: Application) -> Any:
    return ask(app, "GET", "/v1").json()


def test_a_handler_takes_the_settings_of_the_table(project: Project, ask: Ask) -> None:
    toml = """
        [app]
        shop_name = "x"
        page_size = 5
        is_open = false
        rate = 2
        opened = 2024-02-03
        hosts = ["a", "b"]
        [app.mail]
        host = "h"
    """
    found = shown(ask, project(FILES | {"treefold.toml": toml}))
    assert found["shop_name"] == "x"
    assert (found["page_size"], found["is_open"], found["rate"]) == (5, False, 2.0)
    assert (found["opened"], found["hosts"]) == ("2024-02-03", ["a", "b"])
    assert found["mail"] == {"host": "h", "port": 25}


def test_variables_are_converted_and_win_over_the_table(
    project: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "SHOP_NAME": "12",
        "PAGE_SIZE": "7",
        "IS_OPEN": "off",
        "RATE": "0.5",
        "OPENED": "2024-02-03",
        "HOSTS": "a, b,",
        "LIMITS": "[1, 2]",
        "MAIL": '{"host": "h", "port": 5}',
    }.items():
        monkeypatch.setenv(f"TREEFOLD_APP__{name}", text)
    toml = "[app]\nshop_name = 'x'\npage_size = 5\n"
    found = shown(ask, project(FILES | {"treefold.toml": toml}))
    assert found["shop_name"] == "12"
    assert (found["page_size"], found["is_open"], found["rate"]) == (7, False, 0.5)
    assert (found["opened"], found["hosts"], found["limits"]) == ("2024-02-03", ["a", "b"], [1, 2])
    assert found["mail"] == {"host": "h", "port": 5}


def test_the_settings_may_come_from_dotenv(project: Project, ask: Ask) -> None:
    files = FILES | {".env": "TREEFOLD_APP__SHOP_NAME=x\nTREEFOLD_APP__LIMITS=1,2\n"}
    found = shown(ask, project(files))
    assert (found["shop_name"], found["limits"]) == ("x", [1, 2])


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("", "Setting app.shop_name is missing; write shop_name below [app] in treefold.toml, or"),
        ("[app]\nshop_nam = 'x'", "Unknown setting app.shop_nam; did you mean 'shop_name'?"),
        ("[app]\nzzz = 1", "Unknown setting app.zzz; known are shop_name, page_size, is_open,"),
        ("app = 5", "Setting app in treefold.toml must be a table; write [app]"),
        ("[app]\nshop_name = 5", "Setting app.shop_name is not valid: "),
        ("[app]\nshop_name = 'x'\nis_open = []", "Setting app.is_open is not valid: "),
        ("[app]\nshop_name = 'x'\nmail = {host = 5}", "Setting app.mail.host is not valid: "),
        ("[app]\nshop_name = 'x'\npage_size = 'a'", "Setting app.page_size is not valid: "),
        ("[app]\nshop_name = 'x'\nrate = nan", "Setting app.rate must be a finite number, got nan"),
    ],
)
def test_a_setting_that_does_not_fit_stops_the_boot_by_its_name(
    project: Project, toml: str, message: str
) -> None:
    with pytest.raises(Exception, match="etting") as refused:
        project(FILES | {"treefold.toml": toml}).boot()
    assert str(refused.value).startswith(message)
    assert "None" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "PAGE_SIZE",
            "many",
            "Setting app.page_size in TREEFOLD_APP__PAGE_SIZE must be an ",
        ),
        ("LIMITS", "1,x", "Setting app.limits in TREEFOLD_APP__LIMITS must be an integer, got 'x'"),
        ("LIMITS", "[1", "Setting app.limits in TREEFOLD_APP__LIMITS must be JSON; correct it"),
        ("MAIL", "h", "Setting app.mail in TREEFOLD_APP__MAIL is not valid: "),
        ("MAIL", "[" * 5000, "Setting app.mail in TREEFOLD_APP__MAIL must be JSON; correct it"),
        ("OPENED", "today", "Setting app.opened in TREEFOLD_APP__OPENED must be "),
    ],
)
def test_a_variable_that_does_not_fit_stops_the_boot_by_its_name(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str
) -> None:
    monkeypatch.setenv(f"TREEFOLD_APP__{name}", text)
    app = project(FILES | {"treefold.toml": "[app]\nshop_name = 'x'\n"})
    with pytest.raises(BootError) as refused:
        app.boot()
    assert str(refused.value).startswith(message)


def test_secrets_stay_unseen(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREEFOLD_APP__SHOP_NAME", "s3cret")
    settings = Settings.load(project(FILES).root)
    assert "s3cret" not in repr(settings)
    assert "'shop_name': '***'" in repr(settings)
    model = MODEL.replace('api_key: str = ""', "api_key: int = 0")
    files = FILES | {"settings.py": model}
    for toml in ("[app]\nshop_name = 'x'\napi_key = 's3cret'\n", "[app]\nshop_name = 'x'\n"):
        app = project(files | {"treefold.toml": toml})
        with pytest.raises(BootError, match=r"^Setting app\.api_key ") as refused:
            app.boot()
        assert "s3cret" not in str(refused.value)
        monkeypatch.setenv("TREEFOLD_APP__API_KEY", "s3cret")


def test_a_table_without_a_model_stops_the_boot(project: Project) -> None:
    files = {"Api/v1/Get.py": "def handler():\n    return ''\n", "treefold.toml": "[app]\na = 1\n"}
    with pytest.raises(BootError, match=r"^Setting app\.a has no model; write app_settings = "):
        project(files).boot()


@pytest.mark.parametrize("model", ["int", "5", "list[int]", "'text'", "dict"])
def test_a_model_that_is_none_stops_the_boot(project: Project, model: str) -> None:
    with pytest.raises(BootError, match=r"^`app_settings` in settings\.py ") as refused:
        project({"settings.py": f"app_settings = {model}\n", "Api/v1/Get.py": ""}).boot()
    assert "\n" not in str(refused.value)


def test_a_settings_file_that_fails_is_the_only_complaint(project: Project) -> None:
    files = {"settings.py": "1 / 0\n", "Api/v1/Get.py": "", "treefold.toml": "[app]\na = 1\n"}
    with pytest.raises(BootError, match=r"^settings\.py cannot be used: Zero") as error:
        project(files).boot()
    assert error.value.report is not None
    assert "settings" not in [broken.file for broken in error.value.report.broken]


def test_a_module_settings_of_another_meaning_is_left_alone(project: Project, ask: Ask) -> None:
    handler = "from settings import DEBUG\n\ndef handler(request):\n    return str(DEBUG)\n"
    app = project({"settings.py": "DEBUG = True\n", "Api/v1/Get.py": handler})
    assert ask(app, "GET", "/v1").body == b"True"


def test_an_unknown_variable_is_named_in_the_log(
    project: Project, monkeypatch: pytest.MonkeyPatch, lines: Lines
) -> None:
    monkeypatch.setenv("TREEFOLD_APP__SHOP_NAME", "x")
    monkeypatch.setenv("TREEFOLD_APP__OLD", "s3cret")
    project(FILES).boot()
    text = "variable TREEFOLD_APP__OLD means nothing: no such setting"
    assert text in lines.texts()
    assert not any("s3cret" in line for line in lines.texts())


def test_tests_give_settings_in_code_and_may_override_them(project: Project, ask: Ask) -> None:
    app = project(FILES, settings=Settings(app={"shop_name": "x"}))
    assert shown(ask, app)["shop_name"] == "x"


def test_providers_may_replace_the_settings(project: Project, ask: Ask) -> None:
    providers = """
        from settings import ShopSettings

        providers = {ShopSettings: lambda: ShopSettings("mine")}
    """
    app = project(FILES | {"providers.py": providers, "treefold.toml": "[app]\nshop_name = 'x'"})
    assert shown(ask, app)["shop_name"] == "mine"
