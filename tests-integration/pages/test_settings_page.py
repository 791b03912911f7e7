"""The tables of `docs/guides/settings.md` are those of the code, and their variables work."""

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from treefold_http import ContractSettings, ServeSettings, Settings

ROOT = Path(__file__).resolve().parents[2]
SERVE = "TREEFOLD_SERVE_"
TEXTS = {
    "true or false": "true",
    "whole number": "7",
    "number": "7",
    "list of texts": "one, two",
    "text": "latest",
    "table": "memory://",
}
OTHERS = {
    "root_path": "/api",
    "log_format": "json",
    "log_level": "DEBUG",
    "tls_key": "tls_certificate",
    "tls_client_ca": "tls_certificate",
}


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("settings_page", ROOT / "tools/docs/settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = tool()
SECTIONS = (ServeSettings, ContractSettings)
ROWS: list[Any] = [row for kind in (Settings, *SECTIONS) for row in TOOL.rows(kind)]


def test_the_tables_of_the_page_are_current() -> None:
    """`python tools/docs/settings.py --write` writes them."""
    page = TOOL.PAGE.read_text(encoding="utf-8")
    assert page.partition(TOOL.BEGIN)[2].partition(TOOL.END)[0].strip() == TOOL.tables().strip()


def test_every_setting_has_a_row() -> None:
    tables = ("serve", "contract")
    own = [field.name for field in dataclasses.fields(Settings) if field.name not in tables]
    inside = [field.name for kind in SECTIONS for field in dataclasses.fields(kind)]
    assert [row.name for row in ROWS] == [*own, *inside]


@pytest.mark.parametrize("row", [r for r in ROWS if r.variable], ids=lambda row: row.variable)
def test_the_variable_of_a_row_sets_it(
    row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = row.variable.replace("<NAME>", "COLOUR")
    if row.name.startswith("tls_"):
        monkeypatch.setenv(f"{SERVE}TLS_CERTIFICATE", "site.pem")
    before = Settings.load(tmp_path)
    monkeypatch.setenv(variable, OTHERS.get(row.name, TEXTS.get(row.kind, "")))
    after = Settings.load(tmp_path)
    if variable.startswith(SERVE):
        before, after = before.serve, after.serve
    assert getattr(after, row.name) != getattr(before, row.name)
