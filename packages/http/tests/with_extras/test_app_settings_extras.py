"""Settings of a project's own, as a model of pydantic and as a struct of msgspec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import Application, BootError

Project = Callable[..., Application]
Ask = Callable[..., Any]

HEADS = {
    "pydantic": "from pydantic import BaseModel\n\nclass ShopSettings(BaseModel):\n",
    "msgspec": "from msgspec import Struct\n\nclass ShopSettings(Struct):\n",
}
BODY = "    name: str\n    size: int = 5\n    tags: list[str] = []\n    api_token: str = ''\n"
HANDLER = """
    from settings import ShopSettings

    async def handler(settings: ShopSettings):
        return [settings.name, settings.size, settings.tags]
"""


@pytest.fixture(params=HEADS)
def files(request: pytest.FixtureRequest) -> dict[str, str]:
    text = f"{HEADS[request.param]}{BODY}\n\napp_settings = ShopSettings\n"
    return {"settings.py": text, "Api/v1/Get.py": HANDLER}


def test_the_model_types_the_table_and_the_variables(
    files: dict[str, str], project: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEFOLD_APP__SIZE", "7")
    monkeypatch.setenv("TREEFOLD_APP__TAGS", "a,b")
    app = project(files | {"treefold.toml": "[app]\nname = 'x'\n"})
    assert ask(app, "GET", "/v1").json() == ["x", 7, ["a", "b"]]


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("size = 5", "Setting app.name is missing; write name below [app] in treefold.toml, or"),
        ("name = 'x'\nsize = 'many'", "Setting app.size is not valid: "),
        ("name = 'x'\nsiez = 5", "Unknown setting app.siez; did you mean 'size'?"),
        ("name = 'x'\ntags = [5]", "Setting app.tags.0 is not valid: "),
    ],
)
def test_errors_name_the_key(
    files: dict[str, str], project: Project, toml: str, message: str
) -> None:
    with pytest.raises(BootError) as refused:
        project(files | {"treefold.toml": f"[app]\n{toml}\n"}).boot()
    assert str(refused.value).startswith(message)


def test_a_secret_that_does_not_fit_stays_unseen(files: dict[str, str], project: Project) -> None:
    app = project(files | {"treefold.toml": "[app]\nname = 'x'\napi_token = [73571]\n"})
    with pytest.raises(BootError, match=r"^Setting app\.api_token is not valid: ") as refused:
        app.boot()
    assert "73571" not in str(refused.value)


def test_secret_strings_aliases_and_extra_keys_of_pydantic(project: Project, ask: Ask) -> None:
    settings = """
        from pydantic import BaseModel, ConfigDict, Field, SecretStr

        class ShopSettings(BaseModel):
            model_config = ConfigDict(extra="allow")
            stripe: SecretStr = Field(min_length=40)
            page_size: int = Field(5, alias="pageSize")

        app_settings = ShopSettings
    """
    handler = """
        from settings import ShopSettings

        async def handler(settings: ShopSettings):
            return [settings.stripe.get_secret_value(), settings.page_size, settings.more]
    """
    files = {"settings.py": settings, "Api/v1/Get.py": handler}
    toml = "[app]\npageSize = 7\nmore = 1\nstripe = "
    app = project(files | {"treefold.toml": f"{toml}'{'s' * 40}'\n"})
    assert ask(app, "GET", "/v1").json() == ["s" * 40, 7, 1]
    short = project(files | {"treefold.toml": f"{toml}'s3cret'\n"})
    with pytest.raises(BootError, match=r"^Setting app\.stripe is not valid: ") as refused:
        short.boot()
    assert "s3cret" not in str(refused.value)
